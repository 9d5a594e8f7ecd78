package dev.millrace.cli.train;

import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.cli.config.ConfigOptions;
import dev.millrace.runtime.RefusedRequestException;
import dev.millrace.runtime.config.ConfigTree;
import dev.millrace.runtime.config.MillraceConfig;
import dev.millrace.runtime.pipeline.StopSignals;
import dev.millrace.runtime.train.ResumeCheck;
import dev.millrace.runtime.train.RunDirectory;
import dev.millrace.runtime.train.TrainRun;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.time.LocalDateTime;
import java.time.format.DateTimeFormatter;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/** {@code millrace train}: every role in one process, from random weights to a trained policy. */
@Command(
        name = "train",
        mixinStandardHelpOptions = true,
        sortOptions = false,
        description = {
            "Trains a policy while it generates: broker, generator, scorer, topology and learner in one process.",
            "Without options: the task 'inc' from random weights, until its mean reward is 0.9 over ten steps."
        },
        footer = {
            "",
            "Ctrl-C stops at the last finished step; the same --run-dir goes on from there.",
            "",
            "Exit codes: 0 the goal or the last step was reached; 3 the time was over before; 130 Ctrl-C; 1 a failure;",
            "2 a mistake in the configuration."
        })
public final class TrainCommand implements Callable<Integer> {
    @Mixin
    private ConfigOptions options;

    @Option(
            names = "--run-dir",
            paramLabel = "DIR",
            description = "Folder of the run (default runs/<run id>); one of an earlier run goes on with that run.")
    private Path runDirectory;

    @Option(names = "--summary", paramLabel = "FILE", description = "Write the summary to this file as well.")
    private Path summary;

    @Option(
            names = "--max-steps",
            paramLabel = "N",
            description = "End after N optimiser steps, counted from the run's beginning.")
    private Long maxSteps;

    @Option(names = "--plain", description = "Print lines even if the terminal could show a live view.")
    private boolean plain;

    @Spec
    private CommandSpec spec;

    @Override
    public Integer call() throws Exception {
        MillraceConfig config = runDirectory != null && RunDirectory.holdsRun(runDirectory)
                ? resumed(RunDirectory.config(runDirectory))
                : resolved(ConfigTree.empty());
        if (config.run().id().isEmpty()) {
            config = config.withRunId(newId(config.task().name()));
        }
        if (summary != null) {
            requireWritable(summary.toAbsolutePath());
        }
        Path folder = runDirectory != null
                ? runDirectory
                : Path.of("runs", config.run().id());
        try (RunDirectory directory = RunDirectory.open(folder);
                StopSignals signals = new StopSignals()) {
            System.setProperty("millrace.log", directory.log().toString());
            if (options.verbose()) {
                System.setProperty("millrace.log.level", "debug");
            }
            return new TrainRun(
                            config,
                            directory,
                            signals,
                            summary,
                            plain,
                            spec.commandLine().getOut(),
                            spec.commandLine().getErr())
                    .run()
                    .code();
        }
    }

    /** Task and time for people; the rest because two people may start in the same second on one cluster. */
    private static String newId(String task) {
        String time = LocalDateTime.now().format(DateTimeFormatter.ofPattern("yyyyMMdd-HHmmss"));
        return task + "-" + time + "-" + String.format("%04x", new SecureRandom().nextInt(1 << 16));
    }

    private MillraceConfig resumed(Path file) {
        ObjectNode begun = ConfigTree.read(file);
        ResumeCheck check = ResumeCheck.of(file, begun);
        MillraceConfig now = resolved(begun.deepCopy());
        check.require(now);
        return now;
    }

    /** Said before the run, not after it. */
    private static void requireWritable(Path file) {
        try {
            Files.createDirectories(file.getParent());
            if (Files.isDirectory(file) || !Files.isWritable(Files.exists(file) ? file : file.getParent())) {
                throw new IOException(Files.isDirectory(file) ? "it is a folder" : "permission denied");
            }
        } catch (IOException e) {
            throw new RefusedRequestException(
                    "cannot write the summary to " + file + " (" + RunDirectory.reason(e)
                            + "); give --summary a file that can be written",
                    e);
        }
    }

    private MillraceConfig resolved(ObjectNode base) {
        if (maxSteps != null) {
            ConfigTree.set(base, "learner.max_steps=" + maxSteps);
        }
        MillraceConfig config = options.resolve(base);
        config.requireTrainable();
        return config;
    }
}
