package dev.millrace.cli.measure;

import dev.millrace.experiments.Correction;
import dev.millrace.experiments.Grid;
import dev.millrace.experiments.GridRunner;
import dev.millrace.experiments.LagLawReport;
import dev.millrace.experiments.RunFiles;
import dev.millrace.experiments.StalenessReport;
import dev.millrace.experiments.StalenessRuns;
import dev.millrace.experiments.StalenessSettings;
import dev.millrace.report.ReportText;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.Callable;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/** {@code millrace experiment lag-law}: one correction over many lags, and the law between lag and effective sample size. */
@Command(
        name = "lag-law",
        mixinStandardHelpOptions = true,
        sortOptions = false,
        description = "Trains the task inc under one correction at exact lags, from one warm start per seed, "
                + "and records each run's effective sample size. Fits L = c ESS^alpha with confidence intervals "
                + "and reports whether the runs support it. Runs are those of 'experiment staleness' with a "
                + "lower learning rate.",
        footer = {
            "",
            "Exit codes: 0 the experiment ran, with any result; 1 it could not run; 2 a mistake in the"
                    + " command line."
        })
public final class LagLawCommand implements Callable<Integer> {
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
            defaultValue = "SEQUENCE_TIS",
            description = "One of ${COMPLETION-CANDIDATES} (default ${DEFAULT-VALUE}).")
    private Correction correction;

    @Option(
            names = "--seeds",
            split = ",",
            paramLabel = "N",
            defaultValue = "1,2,3",
            description = "Of initial weights, prompts and draws (default ${DEFAULT-VALUE}).")
    private List<Long> seeds;

    @Option(
            names = "--steps",
            paramLabel = "N",
            defaultValue = "2400",
            description = "Steps after the warm start, more than the largest lag (default ${DEFAULT-VALUE}).")
    private int steps;

    @Option(
            names = "--warm-up",
            paramLabel = "N",
            defaultValue = "100",
            description = "On-policy steps of the warm start (default ${DEFAULT-VALUE}).")
    private int warmUp;

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
            names = "--parallel",
            paramLabel = "N",
            defaultValue = "1",
            description = "Runs at the same time, a thread each (default ${DEFAULT-VALUE}).")
    private int parallel;

    @Option(
            names = "--report",
            paramLabel = "DIR",
            defaultValue = "experiments/lag-law",
            description = "Where the runs, the table and the picture go (default ${DEFAULT-VALUE}).")
    private Path report;

    @Option(names = "--resume", description = "Resume from the report's directory; finished runs are kept.")
    private boolean resume;

    @Option(names = "--no-runs", description = "Run nothing: fit the runs that are there.")
    private boolean noRuns;

    @Spec
    private CommandSpec spec;

    @Override
    public Integer call() throws IOException, InterruptedException {
        Grid grid = grid();
        PrintWriter out = spec.commandLine().getOut();
        RunFiles files = RunFiles.open(report, grid.settings(), resume || noRuns);
        if (!noRuns) {
            new GridRunner(new StalenessRuns(grid.settings()), files, parallel, out).run(grid);
        }
        LagLawReport made = LagLawReport.of(
                grid, StalenessReport.of(grid, files.readAll(grid)).rows());
        made.write(report, spec.commandLine().getErr()::println);
        out.println();
        ReportText.lines(made.report()).forEach(out::println);
        out.println("written to " + report);
        out.flush();
        return 0;
    }

    private Grid grid() {
        try {
            if (parallel < 1) {
                throw new IllegalArgumentException("parallel must be at least 1: " + parallel);
            }
            return new Grid(
                    lags,
                    List.of(correction),
                    seeds,
                    new StalenessSettings(
                            StalenessSettings.SMALL_MODEL,
                            DIGITS,
                            batchSequences,
                            GROUP_SIZE,
                            learningRate,
                            warmUp,
                            steps,
                            EVALUATE_EVERY,
                            EVALUATION_PROMPTS));
        } catch (IllegalArgumentException e) {
            throw new CommandLine.ParameterException(spec.commandLine(), "--" + e.getMessage(), e);
        }
    }
}
