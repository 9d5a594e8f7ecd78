package dev.millrace.cli.measure;

import dev.millrace.experiments.Correction;
import dev.millrace.experiments.Grid;
import dev.millrace.experiments.GridRunner;
import dev.millrace.experiments.RunFiles;
import dev.millrace.experiments.StalenessReport;
import dev.millrace.experiments.StalenessRuns;
import dev.millrace.experiments.StalenessSettings;
import dev.millrace.report.Report;
import dev.millrace.report.ReportText;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.function.Supplier;
import picocli.CommandLine;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/** Options and course of an experiment over a grid of lags, corrections and seeds. */
abstract class GridCommand implements Callable<Integer> {
    @Option(
            names = "--seeds",
            split = ",",
            paramLabel = "N",
            defaultValue = "1,2,3",
            description = "Of initial weights, prompts and draws (default ${DEFAULT-VALUE}).")
    private List<Long> seeds;

    @Option(
            names = "--warm-up",
            paramLabel = "N",
            defaultValue = "100",
            description = "On-policy steps of the warm start (default ${DEFAULT-VALUE}).")
    int warmUp;

    @Option(
            names = "--parallel",
            paramLabel = "N",
            defaultValue = "1",
            description = "Runs at the same time, a thread each (default ${DEFAULT-VALUE}).")
    private int parallel;

    @Option(names = "--resume", description = "Resume from the report's directory; finished runs are kept.")
    private boolean resume;

    @Option(names = "--no-runs", description = "Run nothing: report the existing runs, also during an experiment.")
    private boolean noRuns;

    @Spec
    CommandSpec spec;

    /** Writes what the runs show into the report's directory, and returns it for the screen. */
    interface Reporting {
        Report write(StalenessReport runs) throws IOException;
    }

    final int run(
            List<Integer> lags,
            List<Correction> corrections,
            Supplier<StalenessSettings> settings,
            Path report,
            Reporting reporting)
            throws IOException, InterruptedException {
        Grid grid;
        try {
            if (parallel < 1) {
                throw new IllegalArgumentException("parallel must be at least 1: " + parallel);
            }
            grid = new Grid(lags, corrections, seeds, settings.get());
        } catch (IllegalArgumentException e) {
            throw new CommandLine.ParameterException(spec.commandLine(), "--" + e.getMessage(), e);
        }
        RunFiles files = RunFiles.open(report, grid.settings(), resume || noRuns);
        if (!noRuns) {
            new GridRunner(
                            new StalenessRuns(grid.settings()),
                            files,
                            parallel,
                            spec.commandLine().getOut())
                    .run(grid);
        }
        return show(reporting.write(StalenessReport.of(grid, files.readAll(grid))), report);
    }

    final int show(Report made, Path report) {
        PrintWriter out = spec.commandLine().getOut();
        out.println();
        ReportText.lines(made).forEach(out::println);
        out.println("written to " + report);
        out.flush();
        return 0;
    }
}
