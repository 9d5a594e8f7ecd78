package dev.millrace.cli.model;

import dev.millrace.cli.ScreenCommand;
import dev.millrace.cli.audit.RunOptions;
import dev.millrace.cli.run.BestVersion;
import dev.millrace.log.EvaluationLog;
import dev.millrace.log.Evaluations;
import dev.millrace.runtime.RefusedRequestException;
import dev.millrace.runtime.pipeline.ModelExport;
import dev.millrace.runtime.pipeline.ModelExport.Done;
import dev.millrace.runtime.report.AuditedRun;
import dev.millrace.weights.VersionUnavailableException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.util.Locale;
import java.util.Optional;
import java.util.OptionalLong;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** {@code millrace model export}: writes a version of a run as a Hugging Face directory. */
@Command(
        name = "export",
        description = "Writes a version of a run as a Hugging Face directory, atomically: config.json, weights and "
                + "a model card. Configuration, dtype and tokenizer come from the start checkpoint if it still "
                + "exists, else from the run's log. Reads only; works during and after the run.",
        footer = {
            "",
            "millrace model export --run-dir runs/<run id> --to my-model",
            "millrace model export --bootstrap-servers kafka:9092 --run my-run --version 40 --to my-model",
            "millrace model export --run-dir runs/<run id> --version best --to my-model",
            "millrace model export --run-dir runs/<run id> --adapter --to my-adapter",
            "",
            "Exit codes: 0 it is written; 1 a failure; 2 a mistake in the command line; 5 --version"
                    + " best, and there is",
            "no such version any more."
        })
public final class ExportModelCommand extends ScreenCommand {
    enum Type {
        FLOAT32("F32"),
        BFLOAT16("BF16"),
        FLOAT16("F16");

        final String name;

        Type(String name) {
            this.name = name;
        }
    }

    private static final String BEST = "best";
    private static final String LAST = "last";

    @Option(
            names = "--version",
            paramLabel = "V",
            description = "Version to write: a number, last, or best by recorded held-out reward (default: last). "
                    + "Its weights must still be kept.")
    private String version = LAST;

    @Option(names = "--to", paramLabel = "DIR", required = true, description = "New directory; nothing is overwritten.")
    private Path to;

    @Option(
            names = "--dtype",
            paramLabel = "TYPE",
            description = "float32 (bit for bit), bfloat16 or float16; default: the start checkpoint's, else "
                    + "weights.dtype.")
    private Type type;

    @Option(
            names = "--adapter",
            description = "Only the adapter in PEFT's layout, bit for bit; default: merged into the weights. For "
                    + "runs with learner.lora.rank.")
    private boolean adapter;

    @Mixin
    private RunOptions run;

    @Override
    public Integer call() {
        requireNew(to); // before a broker is started
        if (adapter && type != null) {
            throw mistake("--adapter writes the adapter unchanged, bit for bit; leave --dtype out");
        }
        OptionalLong number = version.equals(BEST) ? OptionalLong.empty() : numbered();
        try (AuditedRun audited = run.open()) {
            out().println(audited.title());
            ModelExport export = new ModelExport(audited.connection(), audited.config());
            Done done = version.equals(BEST) ? best(audited, export) : write(export, number);
            paragraph(
                    "  ",
                    String.format(
                            Locale.ROOT,
                            "version %d, weights %s, is in %s: %,d bytes, %s",
                            done.manifest().getVersion(),
                            done.manifest().getWeights().getSha256(),
                            to,
                            done.bytes(),
                            done.isExact()
                                    ? "the version bit for bit"
                                    : "rounded to " + String.join(", ", done.types())
                                            + " (--dtype float32 keeps every bit)"));
            done.start()
                    .lack()
                    .ifPresent(
                            lack -> paragraph(
                                    "  ",
                                    lack
                                            + (done.start().files().isPresent()
                                                    ? ", so config.json, tokenizer and dtype come from the run's log, in one file"
                                                    : ", so config.json is derived from the shape, the dtype is the"
                                                            + " version's unless --dtype is given, and there is no tokenizer")));
            return 0;
        }
    }

    /** Checks the target before anything is read. */
    static void requireNew(Path to) {
        if (Files.exists(to, LinkOption.NOFOLLOW_LINKS)) {
            throw new RefusedRequestException(to + " exists and is not overwritten; name a new directory");
        }
    }

    private Done write(ModelExport export, OptionalLong wanted) {
        return adapter
                ? export.adapterTo(to, wanted)
                : export.to(to, wanted, Optional.ofNullable(type).map(given -> given.name));
    }

    private Done best(AuditedRun audited, ModelExport export) {
        Evaluations evaluations = EvaluationLog.read(audited.connection(), RunOptions.PATIENCE);
        try {
            return write(export, OptionalLong.of(BestVersion.of(evaluations).getVersion()));
        } catch (RefusedRequestException e) {
            if (e.getCause() instanceof VersionUnavailableException gone) {
                throw BestVersion.gone(
                        evaluations,
                        String.valueOf(gone.getMessage()),
                        each -> BestVersion.isKept(
                                audited.connection(), audited.config().weights(), each));
            }
            throw e;
        }
    }

    private OptionalLong numbered() {
        if (version.equals(LAST)) {
            return OptionalLong.empty();
        }
        try {
            return OptionalLong.of(Long.parseLong(version));
        } catch (NumberFormatException e) {
            throw mistake("--version must be a number, last or best: '" + version + "'", e);
        }
    }
}
