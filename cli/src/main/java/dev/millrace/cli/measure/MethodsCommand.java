package dev.millrace.cli.measure;

import dev.millrace.cli.TypedCommand;
import dev.millrace.experiments.MethodRuns;
import dev.millrace.report.ReportOrigin;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Path;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/** {@code millrace experiment methods}: effect and processor time of every kind over a recorded batch. */
@Command(
        name = "methods",
        description =
                "Runs every built-in kind of reward, advantage, weight, mask and objective over the same recorded batch, "
                        + "stale and sampled in int8: the tokens that it acts on, and its processor time.",
        footer = {
            "",
            "Exit codes: 0 the experiment ran, with any result; 1 it could not run; 2 a mistake in the"
                    + " command line."
        })
public final class MethodsCommand extends ExperimentRun {
    @Option(
            names = "--lag",
            paramLabel = "K",
            defaultValue = "16",
            description = "Most steps between the policy that samples and the current one (default ${DEFAULT-VALUE}).")
    private int lag;

    @Option(
            names = "--warm-up",
            paramLabel = "N",
            defaultValue = "60",
            description = "On-policy steps before (default ${DEFAULT-VALUE}).")
    private int warmUp;

    @Option(
            names = "--repetitions",
            paramLabel = "N",
            defaultValue = "200",
            description = "Timed runs of a kind and seed, after as many untimed ones (default ${DEFAULT-VALUE}).")
    private int repetitions;

    @Option(
            names = "--report",
            paramLabel = "DIR",
            defaultValue = "experiments/methods",
            description = "Where the table goes (default ${DEFAULT-VALUE}).")
    private Path report;

    @Override
    public Integer call() throws IOException {
        MethodRuns runs = checked(() -> new MethodRuns(seeds, lag, warmUp, repetitions));
        PrintWriter out = spec.commandLine().getOut();
        return show(runs.write(report, ReportOrigin.here(TypedCommand.of(spec), null), out::println), report);
    }
}
