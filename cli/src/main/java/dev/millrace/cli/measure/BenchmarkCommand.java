package dev.millrace.cli.measure;

import dev.millrace.report.Report;
import dev.millrace.report.ReportText;
import dev.millrace.workloads.Goal;
import dev.millrace.workloads.JsonFile;
import dev.millrace.workloads.Scratch;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.function.Consumer;
import java.util.function.Function;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/** A benchmark on its own broker: measures, writes the figures as JSON, prints the report. */
abstract class BenchmarkCommand implements Callable<Integer> {
    @Option(names = "--report", paramLabel = "DIR", required = true, description = "Where ${COMMAND-NAME}.json goes.")
    private Path report;

    @Spec
    CommandSpec spec;

    interface Measurement<R> {
        /**
         * @param scratch directory that is deleted afterwards
         * @param progress receives a line per measurement
         */
        R run(Path scratch, Consumer<String> progress) throws IOException, InterruptedException;
    }

    /** @param missed exit status if a goal does not hold */
    final <R> int run(Measurement<R> measurement, Function<R, Report> page, Function<R, List<Goal>> goals, int missed)
            throws IOException, InterruptedException {
        PrintWriter out = spec.commandLine().getOut();
        R measured;
        try (Scratch scratch = Scratch.make()) {
            measured = measurement.run(scratch.directory(), line -> {
                out.println(line);
                out.flush();
            });
        }
        JsonFile.write(report.resolve(spec.name() + ".json"), measured);
        ReportText.lines(page.apply(measured)).forEach(out::println);
        out.flush();
        return goals.apply(measured).stream().allMatch(Goal::holds) ? 0 : missed;
    }
}
