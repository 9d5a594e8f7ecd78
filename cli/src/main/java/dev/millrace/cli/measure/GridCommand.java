package dev.millrace.cli.measure;

import dev.millrace.experiments.Correction;
import dev.millrace.experiments.Grid;
import dev.millrace.experiments.GridRunner;
import dev.millrace.experiments.RunFiles;
import dev.millrace.experiments.StalenessReport;
import dev.millrace.experiments.StalenessRuns;
import dev.millrace.experiments.StalenessSettings;
import dev.millrace.report.Report;
import dev.millrace.runtime.config.ConfigException;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Iterator;
import java.util.List;
import java.util.function.Supplier;
import picocli.CommandLine.ITypeConverter;
import picocli.CommandLine.Option;
import picocli.CommandLine.TypeConversionException;

/** Options and course of an experiment over a grid of lags, corrections and seeds. */
abstract class GridCommand extends ExperimentRun {
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
        Grid grid = checked(() -> {
            if (parallel < 1) {
                throw new IllegalArgumentException("parallel must be at least 1: " + parallel);
            }
            return new Grid(lags, corrections, seeds, settings.get());
        });
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

    /** Value of {@code --corrections}; lists those with a short name. */
    static final class CorrectionOption implements ITypeConverter<Correction>, Iterable<String> {
        @Override
        public Correction convert(String named) {
            try {
                return Correction.of(named);
            } catch (ConfigException e) {
                throw new TypeConversionException(String.valueOf(e.getMessage()));
            }
        }

        @Override
        public Iterator<String> iterator() {
            return Correction.all().stream().map(Correction::key).iterator();
        }
    }
}
