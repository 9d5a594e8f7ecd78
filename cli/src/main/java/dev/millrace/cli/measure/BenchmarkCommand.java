package dev.millrace.cli.measure;

import dev.millrace.cli.ScreenCommand;
import dev.millrace.report.Report;
import dev.millrace.report.ReportText;
import dev.millrace.workloads.Goal;
import dev.millrace.workloads.JsonFile;
import dev.millrace.workloads.Scratch;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.function.Consumer;
import java.util.function.Function;
import picocli.CommandLine.Option;

/** A benchmark on its own broker: measures, writes the figures as JSON, prints the report. */
abstract class BenchmarkCommand extends ScreenCommand {
    /** Exit status if a load test misses a goal. */
    private static final int MISSED = 1;

    @Option(names = "--report", paramLabel = "DIR", required = true, description = "Where ${COMMAND-NAME}.json goes.")
    private Path report;

    interface Measurement<R> {
        /**
         * @param scratch directory that is deleted afterwards
         * @param progress receives a line per measurement
         */
        R run(Path scratch, Consumer<String> progress) throws IOException, InterruptedException;
    }

    final <R> int run(Measurement<R> measurement, Function<R, Report> page, Function<R, List<Goal>> goals)
            throws IOException, InterruptedException {
        R measured;
        try (Scratch scratch = Scratch.make()) {
            measured = measurement.run(scratch.directory(), out()::println);
        }
        JsonFile.write(report.resolve(spec.name() + ".json"), measured);
        ReportText.lines(page.apply(measured)).forEach(out()::println);
        return goals.apply(measured).stream().allMatch(Goal::holds) ? 0 : MISSED;
    }
}
