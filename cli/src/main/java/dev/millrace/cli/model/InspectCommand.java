package dev.millrace.cli.model;

import dev.millrace.policy.huggingface.CheckpointDirectory;
import dev.millrace.policy.huggingface.CheckpointException;
import dev.millrace.policy.session.Device;
import dev.millrace.policy.session.Engine;
import dev.millrace.policy.session.InferenceException;
import dev.millrace.runtime.config.ConfigException;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.Callable;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** {@code millrace model inspect}: what a model directory is, what it costs, and whether it can be trained. */
@Command(
        name = "inspect",
        mixinStandardHelpOptions = true,
        sortOptions = false,
        description = {
            "Says what a Hugging Face directory is: family, shape, parameters, type, vocabulary, positions; what it costs in memory",
            "and on the log; and what in it is not supported. Reads config.json and the files' headers, not their numbers, unless it is to",
            "measure how fast the model is here."
        },
        footer = {
            "",
            "millrace model inspect models/Qwen2.5-0.5B",
            "millrace model inspect models/Qwen2.5-0.5B --measure",
            "",
            "Exit codes: 0 it can be trained; 1 it cannot be read; 2 a mistake in the command line; 4 something in it is not supported."
        })
public final class InspectCommand implements Callable<Integer> {
    /** Of a model that cannot be trained. */
    static final int UNSUPPORTED = 4;

    @Parameters(paramLabel = "DIR", description = "Directory with config.json and *.safetensors.")
    private Path directory;

    @Option(
            names = "--measure",
            description = {
                "Also load the model and take a few steps of generator, scorer and learner with it: tokens in a second and seconds",
                "of a step on this machine. Takes the memory that a run in one process takes."
            })
    private boolean measures;

    @Option(names = "--device", paramLabel = "DEVICE", description = "Where to measure: cpu, or cuda:N (default: cpu).")
    private String device = "cpu";

    @Option(
            names = "--lora-rank",
            paramLabel = "R",
            description = "Rank of the adapters whose cost is said beside, learner.lora.rank of a run (default: 8).")
    private int loraRank = 8;

    @Spec
    private CommandSpec spec;

    @Override
    public Integer call() throws IOException {
        if (loraRank < 1) {
            throw new CommandLine.ParameterException(spec.commandLine(), "--lora-rank must be at least 1: " + loraRank);
        }
        if (!Files.isDirectory(directory)) {
            throw new ConfigException(directory + " is no directory; give one with config.json and *.safetensors");
        }
        CheckpointDirectory checkpoint = new CheckpointDirectory(directory);
        ModelScreen screen;
        try {
            screen = ModelScreen.of(checkpoint, loraRank);
        } catch (CheckpointException e) {
            throw new ConfigException(String.valueOf(e.getMessage()), e);
        }
        PrintWriter out = spec.commandLine().getOut();
        screen.lines().forEach(out::println);
        out.flush();
        if (measures && screen.isSupported()) {
            MeasuredModel.of(checkpoint, engine()).lines().forEach(out::println);
            out.flush();
        }
        return screen.isSupported() ? 0 : UNSUPPORTED;
    }

    private Engine engine() {
        try {
            Engine engine = new Engine(Device.parse(device), 1);
            engine.requireUsable();
            return engine;
        } catch (IllegalArgumentException | InferenceException e) {
            throw new ConfigException(String.valueOf(e.getMessage()), e);
        }
    }
}
