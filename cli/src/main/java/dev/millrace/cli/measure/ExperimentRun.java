package dev.millrace.cli.measure;

import dev.millrace.cli.ScreenCommand;
import dev.millrace.report.Report;
import dev.millrace.report.ReportText;
import java.nio.file.Path;
import java.util.List;
import java.util.function.Supplier;
import picocli.CommandLine.Option;

/** Seeds of an experiment, the refusal of its settings, and its report on the screen. */
abstract class ExperimentRun extends ScreenCommand {
    @Option(
            names = "--seeds",
            split = ",",
            paramLabel = "N",
            defaultValue = "1,2,3",
            description = "Of initial weights and draws (default ${DEFAULT-VALUE}).")
    List<Long> seeds;

    /** Makes the settings; what they refuse, whose message begins with the option's name, is a mistake of the user. */
    final <T> T checked(Supplier<T> settings) {
        try {
            return settings.get();
        } catch (IllegalArgumentException e) {
            throw mistake("--" + e.getMessage(), e);
        }
    }

    final int show(Report made, Path report) {
        out().println();
        ReportText.lines(made).forEach(out()::println);
        out().println("written to " + report);
        return 0;
    }
}
