package dev.millrace.cli.measure;

import dev.millrace.experiments.Correction;
import dev.millrace.experiments.StalenessPicture;
import dev.millrace.experiments.StalenessSettings;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/** {@code millrace experiment staleness}: every correction at every lag. */
@Command(
        name = "staleness",
        description = "Trains the task inc under every correction at exact lags, from one warm start per seed, and "
                + "reports which runs collapse and which keep up with the on-policy ones. A run is a function "
                + "of lag, correction and seed.",
        footer = {
            "",
            "Exit codes: 0 the experiment ran, with any result; 1 it could not run; 2 a mistake in the"
                    + " command line."
        })
public final class StalenessCommand extends GridCommand {
    @Option(
            names = "--lags",
            split = ",",
            paramLabel = "K",
            defaultValue = "0,64",
            description = "Lags in versions (default ${DEFAULT-VALUE}).")
    private List<Integer> lags;

    @Option(
            names = "--corrections",
            split = ",",
            paramLabel = "NAME",
            converter = CorrectionOption.class,
            completionCandidates = CorrectionOption.class,
            description =
                    "Corrections to compare: ${COMPLETION-CANDIDATES} (default all of these), an algorithm or preset of"
                            + " the method catalogue, or a YAML file with keys of algorithm.")
    private List<Correction> corrections = Correction.all();

    @Option(
            names = "--steps",
            paramLabel = "N",
            defaultValue = "512",
            description = "Steps of a run after the warm start (default ${DEFAULT-VALUE}).")
    private int steps;

    @Option(
            names = "--digits",
            paramLabel = "N",
            defaultValue = "5",
            description = "Of the task's questions (default ${DEFAULT-VALUE}).")
    private int digits;

    @Option(
            names = "--batch-sequences",
            paramLabel = "N",
            defaultValue = "32",
            description = "Sequences per step (default ${DEFAULT-VALUE}).")
    private int batchSequences;

    @Option(
            names = "--group-size",
            paramLabel = "N",
            defaultValue = "8",
            description = "Samples of one prompt (default ${DEFAULT-VALUE}).")
    private int groupSize;

    @Option(
            names = "--learning-rate",
            paramLabel = "RATE",
            defaultValue = "6e-3",
            description = "Of every correction alike (default ${DEFAULT-VALUE}).")
    private double learningRate;

    @Option(
            names = "--evaluate-every",
            paramLabel = "N",
            defaultValue = "16",
            description = "Steps between evaluations of the current policy (default ${DEFAULT-VALUE}).")
    private int evaluateEvery;

    @Option(
            names = "--evaluation-prompts",
            paramLabel = "N",
            defaultValue = "128",
            description = "Prompts of an evaluation, never trained on (default ${DEFAULT-VALUE}).")
    private int evaluationPrompts;

    @Option(
            names = "--report",
            paramLabel = "DIR",
            defaultValue = "experiments/staleness",
            description = "Where the runs, tables and pictures go (default ${DEFAULT-VALUE}).")
    private Path report;

    @Option(
            names = "--rows",
            paramLabel = "FILE",
            description = "Run nothing: draw the runs.csv of an experiment as staleness.png in the report's directory.")
    private Path rows;

    @Override
    public Integer call() throws IOException, InterruptedException {
        if (rows != null) {
            return drawn();
        }
        return run(lags, corrections, this::settings, report, runs -> {
            runs.write(report, spec.commandLine().getErr()::println);
            return runs.report();
        });
    }

    private StalenessSettings settings() {
        return new StalenessSettings(
                StalenessSettings.SMALL_MODEL,
                digits,
                batchSequences,
                groupSize,
                learningRate,
                warmUp,
                steps,
                evaluateEvery,
                evaluationPrompts);
    }

    private int drawn() throws IOException {
        try {
            StalenessPicture picture = StalenessPicture.of(rows);
            Files.createDirectories(report);
            picture.write(report.resolve("staleness.png"));
        } catch (IllegalArgumentException e) {
            throw new CommandLine.ParameterException(spec.commandLine(), "--rows: " + e.getMessage(), e);
        }
        out().println("written to " + report.resolve("staleness.png"));
        return 0;
    }
}
