package dev.millrace.cli.train;

import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.cli.config.ConfigBinder;
import dev.millrace.cli.config.ConfigOptions;
import dev.millrace.cli.config.ConfigTree;
import dev.millrace.cli.config.MillraceConfig;
import dev.millrace.cli.role.StopSignals;
import java.nio.file.Path;
import java.time.LocalDateTime;
import java.time.format.DateTimeFormatter;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/** {@code millrace train}: every role in one process, from random weights to a trained policy. */
@Command(name = "train", mixinStandardHelpOptions = true, sortOptions = false,
    description = {"Trains a policy while it generates: broker, generator, scorer, topology and learner in one process.",
        "Without options: the task 'inc' from random weights, until its mean reward is 0.9 over ten steps."},
    footer = {"", "Ctrl-C stops after the step in progress; the same --run-dir goes on from there.", "",
        "Exit codes: 0 the goal or the last step was reached; 3 the time was over before; 130 Ctrl-C; 1 a failure;",
        "2 a mistake in the configuration."})
public final class TrainCommand implements Callable<Integer> {
    @Mixin
    private ConfigOptions options;

    @Option(names = "--run-dir", paramLabel = "DIR",
        description = "Folder of the run (default runs/<run id>); one of an earlier run goes on with that run.")
    private Path runDirectory;

    @Option(names = "--summary", paramLabel = "FILE", description = "Write the summary to this file as well.")
    private Path summary;

    @Option(names = "--max-steps", paramLabel = "N", description = "End after N optimiser steps, counted from the run's beginning.")
    private Long maxSteps;

    @Option(names = "--plain", description = "Print lines even if the terminal could show a live view.")
    private boolean plain;

    @Spec
    private CommandSpec spec;

    @Override
    public Integer call() throws Exception {
        boolean resuming = runDirectory != null && RunDirectory.holdsRun(runDirectory);
        ObjectNode base = resuming ? ConfigTree.read(runDirectory.resolve("config.yaml")) : ConfigTree.empty();
        MillraceConfig config = resolved(base);
        if (config.run().id().isEmpty()) {
            config = config.withRunId(config.task().name() + "-" + LocalDateTime.now().format(DateTimeFormatter.ofPattern("yyyyMMdd-HHmmss")));
        }
        Path folder = runDirectory != null ? runDirectory : Path.of("runs", config.run().id());
        try (RunDirectory directory = RunDirectory.open(folder); StopSignals signals = new StopSignals()) {
            System.setProperty("millrace.log", directory.log().toString());
            if (options.verbose()) {
                System.setProperty("millrace.log.level", "debug");
            }
            directory.write(directory.config(), ConfigTree.write(ConfigBinder.unbind(config)));
            return new TrainRun(config, directory, signals, summary, plain, spec.commandLine().getOut(), spec.commandLine().getErr()).run().code();
        }
    }

    private MillraceConfig resolved(ObjectNode base) {
        if (maxSteps != null) {
            ConfigTree.set(base, "learner.max_steps=" + maxSteps);
        }
        return options.resolve(base);
    }
}
