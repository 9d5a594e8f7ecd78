package dev.millrace.cli.measure;

import dev.millrace.report.Report;
import dev.millrace.report.ReportText;
import java.io.PrintWriter;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.function.Supplier;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/** Seeds of an experiment, the refusal of its settings, and its report on the screen. */
abstract class ExperimentRun implements Callable<Integer> {
    @Option(
            names = "--seeds",
            split = ",",
            paramLabel = "N",
            defaultValue = "1,2,3",
            description = "Of initial weights and draws (default ${DEFAULT-VALUE}).")
    List<Long> seeds;

    @Spec
    CommandSpec spec;

    /** Makes the settings; what they refuse, whose message begins with the option's name, is a mistake of the user. */
    final <T> T checked(Supplier<T> settings) {
        try {
            return settings.get();
        } catch (IllegalArgumentException e) {
            throw new ParameterException(spec.commandLine(), "--" + e.getMessage(), e);
        }
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
