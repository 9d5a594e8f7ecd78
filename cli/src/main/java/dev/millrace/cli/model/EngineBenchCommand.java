package dev.millrace.cli.model;

import dev.millrace.cli.ScreenCommand;
import dev.millrace.cli.TypedCommand;
import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.decoder.Precision;
import dev.millrace.policy.huggingface.CheckpointDirectory;
import dev.millrace.policy.huggingface.CheckpointException;
import dev.millrace.policy.session.Device;
import dev.millrace.policy.session.Engine;
import dev.millrace.policy.session.InferenceException;
import dev.millrace.policy.session.WeightPlacement;
import dev.millrace.policy.weights.Weights;
import dev.millrace.report.ReportText;
import dev.millrace.runtime.RefusedRequestException;
import dev.millrace.workloads.Goal;
import dev.millrace.workloads.JsonFile;
import dev.millrace.workloads.Scratch;
import dev.millrace.workloads.closed.EngineBenchmark;
import dev.millrace.workloads.closed.EngineBenchmark.EngineReport;
import dev.millrace.workloads.closed.EngineModel;
import dev.millrace.workloads.closed.EnginePlan;
import dev.millrace.workloads.closed.MemoryNeed;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/**
 * {@code millrace bench engine}: measures generator, scorer and learner on a device, and checks that their passes
 * agree.
 */
@Command(
        name = "engine",
        description = "Measures on one device: prefill, sampling, scoring and gradient tokens per second, seconds "
                + "of a learner's step, versions through a broker, memory; and whether sampling agrees with "
                + "scoring, and the device with the CPU.",
        footer = {
            "",
            "millrace bench engine",
            "millrace bench engine --size 15m,110m,494m --device cuda:0",
            "millrace bench engine --model models/Qwen2.5-0.5B --rounds 3",
            "",
            "494m needs 14 GB of memory and 1.5b 36 GB; a JVM with less names the options to raise it. Exit codes: 0 the",
            "passes agree; 1 they do not, or something failed; 2 a mistake in the command line."
        })
public final class EngineBenchCommand extends ScreenCommand {
    /** Exit status if a goal is missed. */
    private static final int MISSED = 1;

    @Option(names = "--device", paramLabel = "DEVICE", description = "cpu, cuda:N or cuda:N:tf32 (default: cpu).")
    private String device = "cpu";

    @Option(
            names = "--size",
            split = ",",
            paramLabel = "SIZE",
            description = "Models with random weights: 15m, 110m, 494m, 1.5b (default: 15m,110m). May be repeated.")
    private List<String> sizes = List.of();

    @Option(names = "--model", paramLabel = "DIR", description = "A model directory in their place.")
    private Path model;

    @Option(
            names = "--threads",
            paramLabel = "N",
            description = "Threads inside an operator (default: 1, as roles have).")
    private int threads = 1;

    @Option(names = "--sequences", paramLabel = "N", description = "Sequences side by side (default: 8).")
    private int sequences = 8;

    @Option(names = "--prompt-tokens", paramLabel = "N", description = "Tokens of each prompt (default: 128).")
    private int promptTokens = 128;

    @Option(names = "--tokens", paramLabel = "N", description = "Sampled tokens of each sequence (default: 64).")
    private int tokens = 64;

    @Option(
            names = "--tokens-per-call",
            paramLabel = "N",
            description = "Sampled tokens per call (default: 4, on a CUDA device 64).")
    private int tokensPerCall;

    @Option(
            names = "--weight-placement",
            paramLabel = "PLACEMENT",
            description =
                    "Weights fed with each call or packed into the graphs: auto, fed, packed (default: auto, which is fed).")
    private WeightPlacement placement = WeightPlacement.AUTO;

    @Option(
            names = "--precision",
            paramLabel = "PRECISION",
            description = "Precision of the sampling weights: f32, bf16, int8 (default: f32).")
    private Precision precision = Precision.F32;

    @Option(names = "--rounds", paramLabel = "N", description = "Rounds after a warm-up round (default: 5).")
    private int rounds = 5;

    @Option(
            names = "--versions",
            paramLabel = "N",
            description = "Versions published and loaded through a broker (default: 4; 0 for none).")
    private int versions = 4;

    @Option(
            names = "--report",
            paramLabel = "DIR",
            description = "Folder for engine.json; without it nothing is written.")
    private Path report;

    @Override
    public Integer call() throws IOException {
        if (versions < 0) {
            throw new RefusedRequestException("--versions must be at least 0: " + versions);
        }
        EnginePlan plan;
        Engine engine;
        try {
            Device on = Device.parse(device);
            int perCall = tokensPerCall > 0 ? tokensPerCall : on.kind() == Device.Kind.CPU ? 4 : 64;
            plan = new EnginePlan(sequences, promptTokens, tokens, perCall, 4096, placement, precision, rounds);
            engine = new Engine(on, threads);
            engine.requireUsable();
        } catch (IllegalArgumentException | InferenceException e) {
            throw new RefusedRequestException(String.valueOf(e.getMessage()), e);
        }
        List<EngineBenchmark.Subject> subjects = subjects(plan, plan.moreCopies(engine.device()));
        EngineBenchmark.Report measured;
        try (Scratch scratch = Scratch.make()) {
            measured = new EngineBenchmark(engine, plan, versions, scratch.directory(), out()::println)
                    .run(TypedCommand.of(spec), threads, subjects);
        }
        if (report != null) {
            JsonFile.write(report.resolve("engine.json"), measured);
        }
        ReportText.lines(EngineReport.of(measured)).forEach(out()::println);
        return measured.goals().stream().allMatch(Goal::holds) ? 0 : MISSED;
    }

    private List<EngineBenchmark.Subject> subjects(EnginePlan plan, int more) throws IOException {
        if (model != null && !sizes.isEmpty()) {
            throw new RefusedRequestException("--model and --size exclude each other; give one of them");
        }
        if (model != null) {
            CheckpointDirectory checkpoint = new CheckpointDirectory(model);
            try {
                requireFits(model.toString(), checkpoint.shape(), plan);
            } catch (CheckpointException e) {
                throw new RefusedRequestException(String.valueOf(e.getMessage()), e);
            }
            return List.of(requireRoom(
                    more,
                    new EngineBenchmark.Subject(
                            checkpoint.path().getFileName().toString(), checkpoint.shape(), () -> loaded(checkpoint))));
        }
        List<EngineModel> models = new ArrayList<>();
        for (String size : sizes.isEmpty() ? List.of("15m", "110m") : sizes) {
            try {
                models.add(EngineModel.parse(size));
            } catch (IllegalArgumentException e) {
                throw new RefusedRequestException(String.valueOf(e.getMessage()), e);
            }
        }
        return models.stream()
                .distinct()
                .sorted()
                .peek(each -> requireFits(each.toString(), each.shape(), plan))
                .map(each -> requireRoom(
                        more,
                        new EngineBenchmark.Subject(
                                each.toString(), each.shape(), () -> Weights.random(each.shape(), 1))))
                .toList();
    }

    private static EngineBenchmark.Subject requireRoom(int more, EngineBenchmark.Subject subject) {
        MemoryNeed.of(subject.shape().parameterCount(), more)
                .refusal(subject.name())
                .ifPresent(why -> {
                    throw new RefusedRequestException(why);
                });
        return subject;
    }

    private static Weights loaded(CheckpointDirectory checkpoint) {
        try {
            return checkpoint.load();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static void requireFits(String name, DecoderShape shape, EnginePlan plan) {
        if (plan.length() > shape.maxPositions()) {
            throw new RefusedRequestException("--prompt-tokens and --tokens make sequences of " + plan.length()
                    + " tokens, and " + name + " has " + shape.maxPositions() + " positions; give fewer");
        }
    }
}
