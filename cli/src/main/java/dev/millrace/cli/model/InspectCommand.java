package dev.millrace.cli.model;

import dev.millrace.cli.ScreenCommand;
import dev.millrace.policy.decoder.Precision;
import dev.millrace.policy.huggingface.CheckpointDirectory;
import dev.millrace.policy.huggingface.CheckpointException;
import dev.millrace.policy.session.Device;
import dev.millrace.policy.session.Engine;
import dev.millrace.policy.session.InferenceException;
import dev.millrace.policy.session.WeightPlacement;
import dev.millrace.policy.weights.Weights;
import dev.millrace.report.Lines;
import dev.millrace.report.Sample;
import dev.millrace.runtime.RefusedRequestException;
import dev.millrace.runtime.config.ConfigException;
import dev.millrace.workloads.closed.EnginePlan;
import dev.millrace.workloads.closed.EngineRates;
import dev.millrace.workloads.closed.EngineTrial;
import dev.millrace.workloads.closed.MemoryNeed;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** {@code millrace model inspect}: describes a model directory, its cost, and whether it can be trained. */
@Command(
        name = "inspect",
        description = "Describes a Hugging Face directory: family, shape, parameters, dtype, vocabulary, positions; "
                + "costs in memory and on the log; unsupported parts. Reads config.json and file headers only, "
                + "unless --measure is given.",
        footer = {
            "",
            "millrace model inspect models/Qwen2.5-0.5B",
            "millrace model inspect models/Qwen2.5-0.5B --measure",
            "",
            "Exit codes: 0 it can be trained; 1 it cannot be read; 2 a mistake in the command line; 4 something in it is not supported."
        })
public final class InspectCommand extends ScreenCommand {
    /** Exit status if the model is unsupported. */
    static final int UNSUPPORTED = 4;

    @Parameters(paramLabel = "DIR", description = "Directory with config.json and *.safetensors.")
    private Path directory;

    @Option(
            names = "--measure",
            description = "Also run a few steps of generator, scorer and learner: tokens per second and seconds per "
                    + "step. Takes the memory of a run in one process.")
    private boolean measures;

    @Option(
            names = "--device",
            paramLabel = "DEVICE",
            description = "Where to measure: cpu, cuda:N or cuda:N:tf32 (default: cpu).")
    private String device = "cpu";

    @Option(
            names = "--lora-rank",
            paramLabel = "R",
            description = "Adapter rank for the cost estimate, learner.lora.rank of a run (default: 8).")
    private int loraRank = 8;

    @Override
    public Integer call() throws IOException {
        if (loraRank < 1) {
            throw mistake("--lora-rank must be at least 1: " + loraRank);
        }
        if (!Files.isDirectory(directory)) {
            throw new ConfigException(directory + " is not a directory; give one with config.json and *.safetensors");
        }
        CheckpointDirectory checkpoint = new CheckpointDirectory(directory);
        ModelScreen screen;
        try {
            screen = ModelScreen.of(checkpoint, loraRank);
        } catch (CheckpointException e) {
            throw new ConfigException(String.valueOf(e.getMessage()), e);
        }
        screen.lines().forEach(out()::println);
        if (measures && screen.isSupported()) {
            MeasuredModel.of(checkpoint, engine()).lines().forEach(out()::println);
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

    record MeasuredModel(String device, EngineRates rates) {
        private static final int SEQUENCES = 8;
        private static final int TOKENS = 64;
        private static final int TOKENS_PER_CALL = 4;
        private static final int TOKEN_BUDGET = 4096;
        private static final int ROUNDS = 3;

        /** Loads and measures the model; takes as long as some of its steps. */
        static MeasuredModel of(CheckpointDirectory checkpoint, Engine engine) throws IOException {
            MemoryNeed.of(checkpoint.shape().parameterCount())
                    .refusal(checkpoint.path().toString())
                    .ifPresent(why -> {
                        throw new RefusedRequestException(why);
                    });
            Weights weights = checkpoint.load();
            int half = Math.min(TOKENS, weights.shape().maxPositions() / 2);
            int window = weights.shape().traits().slidingWindow();
            int perCall = window > 0 ? Math.min(TOKENS_PER_CALL, window) : TOKENS_PER_CALL;
            EnginePlan plan = new EnginePlan(
                    SEQUENCES, half, half, perCall, TOKEN_BUDGET, WeightPlacement.AUTO, Precision.F32, ROUNDS);
            try (EngineTrial trial = new EngineTrial(engine, weights, plan)) {
                return new MeasuredModel(engine.device().toString(), trial.measure());
            }
        }

        List<String> lines() {
            EnginePlan plan = rates.plan();
            List<String> lines = new ArrayList<>();
            lines.add("");
            lines.addAll(Lines.wrapped(
                    "",
                    String.format(
                            Locale.ROOT,
                            "on %s here (one thread, %d sequences of %d prompt and %d sampled tokens, medians of %d)",
                            device,
                            plan.sequences(),
                            plan.promptTokens(),
                            plan.sampledTokens(),
                            plan.rounds())));
            lines.addAll(Lines.labelled(
                    "generator",
                    rate(rates.prefillRate()) + " tokens of prompts a second, " + rate(rates.decodeRate())
                            + " sampled tokens a second"));
            lines.addAll(Lines.labelled("scorer", rate(rates.scoreRate()) + " tokens a second"));
            lines.addAll(Lines.labelled(
                    "learner",
                    seconds(rates.work().step()) + " a step of these " + plan.sequences() + " sequences, "
                            + seconds(rates.work().update())
                            + " of it for the update of the weights; " + rate(rates.gradientRate())
                            + " tokens a second forward and backward"));
            return lines;
        }

        private static String rate(double rate) {
            return String.format(Locale.ROOT, rate >= 100 ? "%,.0f" : "%.1f", rate);
        }

        private static String seconds(Sample sample) {
            return String.format(Locale.ROOT, "%.3g s", sample.median());
        }
    }
}
