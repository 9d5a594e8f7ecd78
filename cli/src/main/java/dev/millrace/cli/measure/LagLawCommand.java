package dev.millrace.cli.measure;

import dev.millrace.experiments.Correction;
import dev.millrace.experiments.LagLawReport;
import dev.millrace.experiments.StalenessSettings;
import dev.millrace.report.Report;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/** {@code millrace experiment lag-law}: one correction over many lags, and the law between lag and effective sample size. */
@Command(
        name = "lag-law",
        description = "Trains the task inc under one correction at exact lags, from one warm start per seed, "
                + "and records each run's effective sample size. Fits L = c ESS^alpha with confidence intervals "
                + "and two published laws, and reports whether the runs support them. Runs are those of 'experiment staleness' with a "
                + "lower learning rate.",
        footer = {
            "",
            "Exit codes: 0 the experiment ran, with any result; 1 it could not run; 2 a mistake in the"
                    + " command line."
        })
public final class LagLawCommand extends GridCommand {
    private static final int DIGITS = 5;
    private static final int GROUP_SIZE = 8;
    private static final int EVALUATE_EVERY = 16;
    private static final int EVALUATION_PROMPTS = 128;

    @Option(
            names = "--lags",
            split = ",",
            paramLabel = "K",
            defaultValue = "0,1,10,50,100,200,400,800",
            description = "Lags in versions; 0 is the on-policy control (default ${DEFAULT-VALUE}).")
    private List<Integer> lags;

    @Option(
            names = "--correction",
            paramLabel = "NAME",
            defaultValue = "sequence_tis",
            converter = CorrectionOption.class,
            completionCandidates = CorrectionOption.class,
            description =
                    "One of ${COMPLETION-CANDIDATES}, or as in 'experiment staleness' (default ${DEFAULT-VALUE}).")
    private Correction correction;

    @Option(
            names = "--steps",
            paramLabel = "N",
            defaultValue = "2400",
            description = "Steps after the warm start, more than the largest lag (default ${DEFAULT-VALUE}).")
    private int steps;

    @Option(
            names = "--batch-sequences",
            paramLabel = "N",
            defaultValue = "64",
            description =
                    "Sequences per step; the smallest possible ESS ratio is 1 over it (default " + "${DEFAULT-VALUE}).")
    private int batchSequences;

    @Option(
            names = "--learning-rate",
            paramLabel = "RATE",
            defaultValue = "3e-4",
            description = "Of AdamW (default ${DEFAULT-VALUE}).")
    private double learningRate;

    @Option(
            names = "--report",
            paramLabel = "DIR",
            defaultValue = "experiments/lag-law",
            description = "Where the runs, the table and the picture go (default ${DEFAULT-VALUE}).")
    private Path report;

    @Option(
            names = "--rows",
            paramLabel = "FILE",
            description = "Run nothing: fit the runs of an earlier lag-law.json again.")
    private Path rows;

    @Override
    public Integer call() throws IOException, InterruptedException {
        if (rows != null) {
            return show(written(LagLawReport.read(rows)), report);
        }
        return run(
                lags,
                List.of(correction),
                this::settings,
                report,
                runs -> written(LagLawReport.of(runs.grid(), runs.rows())));
    }

    private Report written(LagLawReport law) throws IOException {
        law.write(report, spec.commandLine().getErr()::println);
        return law.report();
    }

    private StalenessSettings settings() {
        return new StalenessSettings(
                StalenessSettings.SMALL_MODEL,
                DIGITS,
                batchSequences,
                GROUP_SIZE,
                learningRate,
                warmUp,
                steps,
                EVALUATE_EVERY,
                EVALUATION_PROMPTS);
    }
}
