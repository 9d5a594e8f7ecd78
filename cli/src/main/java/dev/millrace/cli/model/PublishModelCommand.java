package dev.millrace.cli.model;

import dev.millrace.cli.ScreenCommand;
import dev.millrace.cli.StopSignals;
import dev.millrace.cli.audit.RunOptions;
import dev.millrace.runtime.RefusedRequestException;
import dev.millrace.runtime.pipeline.ModelPublication;
import dev.millrace.runtime.pipeline.ModelPublication.Plan;
import dev.millrace.runtime.report.AuditedRun;
import dev.millrace.weights.store.ObjectStore;
import java.nio.file.Path;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.OptionalLong;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/**
 * {@code millrace model publish}: writes the versions of a run into a folder, for engines and programs without Kafka.
 */
@Command(
        name = "publish",
        description = "Writes the versions of a run into a folder as immutable files, full or as a delta, each with a "
                + "manifest. Engines and programs follow the folder without Kafka. Reads the run only. Started again, "
                + "it continues where the folder ends.",
        footer = {
            "",
            "millrace model publish --run-dir runs/<run id> --to versions",
            "millrace model publish --bootstrap-servers kafka:9092 --run my-run --to /shared/versions --follow --keep 2",
            "millrace model publish --run-dir runs/<run id> --to versions --copy-to s3://my-bucket/my-run",
            "",
            "Exit codes: 0 the folder is up to date, or --follow was stopped; 1 a failure; 2 a mistake in the command line."
        })
public final class PublishModelCommand extends ScreenCommand {
    @Option(
            names = "--to",
            paramLabel = "DIR",
            required = true,
            description = "Folder, new or of an earlier publication of the same run.")
    private Path to;

    @Option(names = "--follow", description = "Wait for further versions. Ends with Ctrl-C.")
    private boolean follow;

    @Option(
            names = "--from-version",
            paramLabel = "V",
            description = "First version of a new folder (default: the newest).")
    private Long from;

    @Option(
            names = "--full-every",
            paramLabel = "N",
            description = "One version in N is full, and any whose delta would not be smaller (default: "
                    + "${DEFAULT-VALUE}).")
    private int fullEvery = 10;

    @Option(
            names = "--keep",
            paramLabel = "N",
            description = "Full versions to keep, with the deltas after them (default: all).")
    private Integer keep;

    @Option(
            names = "--dtype",
            paramLabel = "TYPE",
            description = "float32, bfloat16 or float16; default: the versions' own, bit for bit.")
    private ExportModelCommand.Type type;

    @Option(
            names = "--adapter",
            description = "Write the versions of a LoRA run as adapters in PEFT's layout, not merged. Version 0, their "
                    + "base, is left out.")
    private boolean adapter;

    @Option(
            names = "--copy-to",
            paramLabel = "URI",
            description = "Also copy the folder to a bucket, s3://bucket/prefix, or to file:///path. Credentials and "
                    + "endpoint are those of any AWS client.")
    private String copy;

    @Mixin
    private RunOptions run;

    @Override
    public Integer call() throws Exception {
        require("--full-every", fullEvery, 1);
        require("--keep", keep == null ? 1 : keep, 1);
        require("--from-version", from == null ? 0 : from, 0);
        if (adapter && type != null) {
            throw mistake("--dtype is for merged versions; an adapter keeps its own type: leave --dtype out");
        }
        Plan plan = new Plan(
                to,
                Optional.ofNullable(type).map(given -> given.name),
                fullEvery,
                keep == null ? OptionalInt.empty() : OptionalInt.of(keep),
                adapter,
                store());
        try (AuditedRun audited = run.open()) {
            if (adapter && audited.config().learner().lora().rank() == 0) {
                throw new RefusedRequestException(audited.title()
                        + " trains all weights (learner.lora.rank=0), so it has no adapters; leave --adapter out");
            }
            try (ModelPublication publication = new ModelPublication(audited.connection(), audited.config(), plan)) {
                paragraph("  ", "versions of " + audited.title() + ", to " + to);
                return StopSignals.during(
                        () -> {
                            publication.run(
                                    from == null ? OptionalLong.empty() : OptionalLong.of(from),
                                    follow,
                                    sentence -> paragraph("  ", sentence));
                            return 0;
                        },
                        publication::stop);
            }
        }
    }

    private Optional<ObjectStore> store() {
        if (copy == null) {
            return Optional.empty();
        }
        try {
            return Optional.of(ObjectStore.of(copy).orElseThrow(IllegalArgumentException::new));
        } catch (IllegalArgumentException e) {
            throw mistake("--copy-to must be s3://bucket/prefix or file:///path: " + copy, e);
        }
    }

    private void require(String option, long value, long least) {
        if (value < least) {
            throw mistake(option + " must be at least " + least + ": " + value);
        }
    }
}
