package dev.millrace.cli.replay;

import dev.millrace.cli.ScreenCommand;
import dev.millrace.cli.audit.RunOptions;
import dev.millrace.replay.StepRange;
import dev.millrace.replay.archive.ArchivedRun;
import dev.millrace.replay.archive.LiveRun;
import dev.millrace.replay.archive.RangeSelection;
import dev.millrace.replay.archive.RecordedRun.Range;
import dev.millrace.replay.archive.RunExport;
import dev.millrace.runtime.RefusedRequestException;
import dev.millrace.runtime.config.ConfigException;
import dev.millrace.runtime.pipeline.RunTokenizer;
import dev.millrace.runtime.report.AuditedRun;
import dev.millrace.schemas.run.RunTopics;
import java.nio.file.Path;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.common.TopicPartition;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** {@code millrace export}: writes a run to files. */
@Command(
        name = "export",
        description = "Exports a run to a folder: an Avro container file per partition, and index.json with hashes, "
                + "schemas and the run's identity. Reads only; works during and after the run. A range exports "
                + "some batches with everything they need, starting weights and optimizer state included. With "
                + "--parquet: three tables of the rollouts, their tokens and the steps, also of an archive.",
        footer = {
            "",
            "millrace export --run-dir runs/<run id> --to my-run.archive",
            "millrace export --bootstrap-servers kafka:9092 --run my-run --to my-run.archive --without weights,optimizer-state",
            "millrace export --run-dir runs/<run id> --to some-steps.archive --from-version 40 --to-version 60",
            "millrace export --run-dir runs/<run id> --parquet --to tables",
            "millrace export --archive my-run.archive --parquet --to tables"
        })
public final class ExportCommand extends ScreenCommand {
    @Mixin
    private RunOptions run;

    @Option(names = "--to", paramLabel = "DIR", required = true, description = "New or empty folder.")
    private Path to;

    @Option(
            names = "--parquet",
            description = "Write tables in place of an archive: rollouts.parquet, tokens.parquet and steps.parquet.")
    private boolean parquet;

    @Option(
            names = "--archive",
            paramLabel = "DIR",
            description = "With --parquet: archive of 'millrace export', in place of a run.")
    private Path archive;

    @Option(
            names = "--without",
            paramLabel = "TOPIC",
            split = ",",
            description = "Topics to leave out, without the prefix, such as optimizer-state.")
    private List<String> without = List.of();

    @Mixin
    private StepRangeOptions range;

    @Override
    public Integer call() {
        if (parquet) {
            return tables();
        }
        if (archive != null) {
            throw new ConfigException("--archive is read with --parquet; add it, or name a run to make an archive of");
        }
        try (AuditedRun audited = run.open();
                LiveRun recorded = new LiveRun(audited.connection(), audited.recorded())) {
            if (range.isGiven()) {
                return some(audited, recorded);
            }
            RunExport export = new RunExport(recorded);
            Map<TopicPartition, Range> ranges = export.everythingBut(left(recorded.topics()));
            long offsets = ranges.values().stream()
                    .mapToLong(range -> range.end() - range.from())
                    .sum();
            out().println(audited.title());
            long records =
                    ProgressLine.during("exporting", export::passed, offsets, err(), () -> export.to(to, ranges));
            out().printf("%,d records of %d partitions are in %s%n", records, ranges.size(), to);
            return 0;
        }
    }

    private int tables() {
        run.requireNotBeside(archive);
        if (!without.isEmpty() || range.isGiven()) {
            throw new ConfigException("--parquet writes all of a run; leave out --without and ranges, or export an"
                    + " archive of the range first and give that with --archive");
        }
        try (ReplayedRun read = archive != null ? ReplayedRun.open(archive, run.file()) : ReplayedRun.open(run)) {
            if (read.recorded() instanceof ArchivedRun archived
                    && archived.origin().isPresent()) {
                throw new RefusedRequestException("cannot export " + archive + " as Parquet: it was made of "
                        + archived.origin().get() + " and has no rollouts; read those");
            }
            ParquetExport export = new ParquetExport(
                    read.recorded(),
                    RunTokenizer.of(
                            read.config(),
                            read.connection(),
                            why -> err().println("the tables have no text, only token ids: " + why)));
            ParquetExport.Written written =
                    ProgressLine.during("exporting", export::passed, export.toPass(), err(), () -> export.to(to));
            out().printf(
                            "%,d rollouts, %,d tokens and %,d steps of run %s are in %s: %s%n",
                            written.rollouts(),
                            written.tokens(),
                            written.steps(),
                            read.recorded().run().runId(),
                            to,
                            String.join(", ", ParquetExport.ROLLOUTS, ParquetExport.TOKENS, ParquetExport.STEPS));
            return 0;
        }
    }

    private int some(AuditedRun audited, LiveRun recorded) {
        if (!without.isEmpty()) {
            throw new ConfigException(
                    "--without is for a whole run; an export of a range has the topics its batches need, so leave it out");
        }
        StepRange steps = range.range();
        out().println(audited.title());
        RangeSelection.Selected selected = new RangeSelection(
                        recorded, audited.config().weights())
                .select(steps::contains, steps.fromOffset(), steps.toOffset());
        RunExport export = new RunExport(recorded);
        long offsets = selected.ranges().values().stream()
                .mapToLong(part -> part.end() - part.from())
                .sum();
        long records = ProgressLine.during("exporting", export::passed, offsets, err(), () -> export.to(to, selected));
        out().printf(
                        "%,d records of %d partitions are in %s%n",
                        records, selected.ranges().size(), to);
        selected.held().sentences().forEach(sentence -> paragraph("  ", sentence));
        return 0;
    }

    private Set<String> left(RunTopics topics) {
        Set<String> names = new HashSet<>();
        for (String name : without) {
            if (!topics.all().contains(topics.prefix() + name)) {
                throw new ConfigException("a run has no topic '" + name + "'; --without takes some of "
                        + topics.all().stream()
                                .map(topic -> topic.substring(topics.prefix().length()))
                                .sorted()
                                .toList());
            }
            names.add(topics.prefix() + name);
        }
        return names;
    }
}
