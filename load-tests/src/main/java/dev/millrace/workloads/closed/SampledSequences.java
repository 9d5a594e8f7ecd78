package dev.millrace.workloads.closed;

import dev.millrace.policy.session.DecodeInput;
import dev.millrace.policy.session.DecodeSession;
import dev.millrace.policy.session.DecodeSteps;
import dev.millrace.policy.session.Engine;
import dev.millrace.policy.session.KnownTokens;
import dev.millrace.policy.session.PreparedWeights;
import dev.millrace.policy.session.RoutedExperts;
import dev.millrace.policy.session.Sampling;
import dev.millrace.policy.session.SequenceBatch;
import dev.millrace.policy.weights.Weights;
import dev.millrace.report.Sample;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.CompletableFuture;

/** Random prompts continued by an engine at temperature 1, with its log-probs. Not thread-safe. */
final class SampledSequences implements AutoCloseable {
    private static final double LARGEST_DRAW = 0.9999;
    private static final int TAKE_UP_STEPS = 4;
    private static final int USUAL_CALLS = 8;

    private final EnginePlan plan;
    private final Weights weights;
    private final DecodeSession session;
    private final SplittableRandom random = new SplittableRandom(7);
    private final int[][] sequences;
    private final float[] logProbs;

    SampledSequences(Engine engine, Weights weights, EnginePlan plan, PreparedWeights prepared) {
        this.plan = plan;
        this.weights = weights;
        this.sequences = new int[plan.sequences()][];
        int vocabulary = weights.shape().vocabSize();
        Arrays.setAll(
                sequences,
                s -> random.ints(plan.length(), 0, vocabulary).toArray()); // behind the prompt it is overwritten
        this.logProbs = new float[plan.sequences() * plan.sampledTokens()];
        this.session = new DecodeSession(
                engine, weights.shape(), plan.sequences(), plan.length(), plan.tokensPerCall(), prepared);
        prepared.prepare(weights);
    }

    void takePrompts() {
        List<KnownTokens> known = new ArrayList<>();
        for (int slot = 0; slot < sequences.length; slot++) {
            session.reset(slot, sequences[slot][0]);
            known.add(new KnownTokens(slot, Arrays.copyOfRange(sequences[slot], 1, plan.promptTokens())));
        }
        session.prefill(weights, known);
    }

    void sample() {
        DecodeInput in = new DecodeInput(sequences.length, plan.tokensPerCall());
        for (int done = 0; done < plan.sampledTokens(); done += plan.tokensPerCall()) {
            int steps = Math.min(plan.tokensPerCall(), plan.sampledTokens() - done);
            keep(session.advance(weights, draws(in, steps)), done, steps);
        }
    }

    private DecodeInput draws(DecodeInput in, int steps) {
        in.clear();
        for (int slot = 0; slot < sequences.length; slot++) {
            in.activate(slot, steps, Sampling.of(1));
            for (int step = 0; step < steps; step++) {
                in.sample(step, slot, (float) random.nextDouble(0, LARGEST_DRAW));
            }
        }
        return in;
    }

    private void keep(DecodeSteps drawn, int done, int steps) {
        for (int slot = 0; slot < sequences.length; slot++) {
            for (int step = 0; step < steps; step++) {
                sequences[slot][plan.promptTokens() + done + step] = drawn.token(step, slot);
                logProbs[slot * plan.sampledTokens() + done + step] = drawn.temperatureLogProb(step, slot);
            }
        }
    }

    /** See {@link EngineTrial.EngineWork#takeUp}. */
    double takeUp(PreparedWeights prepared) {
        Weights next = weights.copy();
        List<Double> usual = new ArrayList<>();
        List<Double> beside = new ArrayList<>();
        takePrompts();
        for (int i = 0; i < USUAL_CALLS; i++) {
            usual.add(call(weights));
        }
        CompletableFuture<Void> made = CompletableFuture.runAsync(() -> prepared.prepare(next));
        while (!made.isDone()) {
            beside.add(call(weights));
        }
        made.join();
        beside.add(call(next));
        return Math.max(0, Collections.max(beside) - Sample.of(usual).median());
    }

    /** Seconds of a short call; takes the prompts in again if there is no room. */
    private double call(Weights with) {
        if (session.position(0) + TAKE_UP_STEPS > plan.length()) {
            takePrompts();
        }
        int steps = Math.min(TAKE_UP_STEPS, Math.min(plan.tokensPerCall(), plan.sampledTokens()));
        DecodeInput in = draws(new DecodeInput(sequences.length, plan.tokensPerCall()), steps);
        long began = System.nanoTime();
        session.advance(with, in);
        return (System.nanoTime() - began) / 1e9;
    }

    SequenceBatch batch() {
        return batch(sequences.length);
    }

    SequenceBatch batch(int first) {
        int[] firstScored = new int[first];
        Arrays.fill(firstScored, plan.promptTokens());
        return new SequenceBatch(Arrays.copyOf(sequences, first), firstScored);
    }

    RoutedExperts[] routing() {
        RoutedExperts[] routing = new RoutedExperts[sequences.length];
        Arrays.setAll(routing, slot -> session.routing(slot, plan.length()).orElseThrow());
        return routing;
    }

    /** Packed as the batch's scores. */
    float[] logProbs() {
        return logProbs;
    }

    @Override
    public void close() {
        session.close();
    }
}
