package dev.millrace.cli.measure;

import dev.millrace.experiments.LengthSweep;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Path;
import java.util.List;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/** {@code millrace experiment lengths}: estimators of the gradient over the length of responses. */
@Command(
        name = "lengths",
        description =
                "Compares gradient estimators by the unit of their importance weights (token, prefix, turn, sequence) "
                        + "with the on-policy gradient, at several response lengths and otherwise the same policies, prompts and "
                        + "reward: bias, variance, cosine, norm, progress and effective sample size.",
        footer = {
            "",
            "Exit codes: 0 the experiment ran, with any result; 1 it could not run; 2 a mistake in the"
                    + " command line."
        })
public final class LengthsCommand extends ExperimentRun {
    @Option(
            names = "--lengths",
            split = ",",
            paramLabel = "TOKENS",
            defaultValue = "64,128,256",
            description = "Response lengths (default ${DEFAULT-VALUE}).")
    private List<Integer> lengths;

    @Option(
            names = "--lag",
            paramLabel = "K",
            defaultValue = "8",
            description = "Steps between the policy that samples and the current one (default ${DEFAULT-VALUE}).")
    private int lag;

    @Option(
            names = "--warm-up",
            paramLabel = "N",
            defaultValue = "60",
            description = "On-policy steps before, at the shortest length (default ${DEFAULT-VALUE}).")
    private int warmUp;

    @Option(
            names = "--learning-rate",
            paramLabel = "RATE",
            defaultValue = "2e-3",
            description = "Of all steps (default ${DEFAULT-VALUE}).")
    private double learningRate;

    @Option(
            names = "--batches",
            paramLabel = "N",
            defaultValue = "16",
            description = "Stale batches of 32 sequences (default ${DEFAULT-VALUE}).")
    private int batches;

    @Option(
            names = "--oracle-batches",
            paramLabel = "N",
            defaultValue = "32",
            description = "Batches of the on-policy gradient (default ${DEFAULT-VALUE}).")
    private int oracleBatches;

    @Option(
            names = "--report",
            paramLabel = "DIR",
            defaultValue = "experiments/lengths",
            description = "Where tables and picture go (default ${DEFAULT-VALUE}).")
    private Path report;

    @Override
    public Integer call() throws IOException {
        LengthSweep sweep =
                checked(() -> new LengthSweep(lengths, seeds, lag, warmUp, learningRate, batches, oracleBatches));
        PrintWriter out = spec.commandLine().getOut();
        return show(sweep.write(report, out::println), report);
    }
}
