package dev.millrace.cli.model;

import dev.millrace.policy.huggingface.CheckpointDirectory;
import dev.millrace.policy.session.Engine;
import dev.millrace.policy.session.WeightPlacement;
import dev.millrace.policy.weights.Weights;
import dev.millrace.report.Lines;
import dev.millrace.runtime.RefusedRequestException;
import dev.millrace.workloads.Sample;
import dev.millrace.workloads.closed.EnginePlan;
import dev.millrace.workloads.closed.EngineRates;
import dev.millrace.workloads.closed.EngineTrial;
import dev.millrace.workloads.closed.MemoryNeed;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/** How fast a model directory's model is on this machine. */
record MeasuredModel(String device, EngineRates rates) {
    private static final int SEQUENCES = 8;
    private static final int TOKENS = 64;
    private static final int TOKENS_PER_CALL = 4;
    private static final int TOKEN_BUDGET = 4096;
    private static final int ROUNDS = 3;

    /** Loads the model and measures it, which takes as long as some of its steps. */
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
        EnginePlan plan = new EnginePlan(SEQUENCES, half, half, perCall, TOKEN_BUDGET, WeightPlacement.AUTO, ROUNDS);
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
                seconds(rates.step()) + " a step of these " + plan.sequences() + " sequences, "
                        + seconds(rates.update())
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
