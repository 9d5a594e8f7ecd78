package dev.millrace.workloads.engine;

import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.optimizer.AdamW;
import dev.millrace.policy.session.DecodeInput;
import dev.millrace.policy.session.DecodeSession;
import dev.millrace.policy.session.DecodeSteps;
import dev.millrace.policy.session.Device;
import dev.millrace.policy.session.Engine;
import dev.millrace.policy.session.GradientSession;
import dev.millrace.policy.session.KnownTokens;
import dev.millrace.policy.session.Sampling;
import dev.millrace.policy.session.ScoringSession;
import dev.millrace.policy.session.SequenceBatch;
import dev.millrace.policy.weights.Gradients;
import dev.millrace.policy.weights.Weights;
import dev.millrace.workloads.report.Sample;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;

/**
 * The work of generator, scorer and learner on one model, without a log between them: every round takes prompts in, samples
 * behind them, scores what was sampled, and takes one step of the learner on it. What else runs on the machine meets all of
 * them alike.
 *
 * <p>Prompts are random tokens, the coefficients of the gradient are one for each sampled token. Not thread-safe.
 */
public final class EngineTrial implements AutoCloseable {
    private static final double LEARNING_RATE = 1e-6;
    private static final AdamW.Config OPTIMIZER = new AdamW.Config(0.9, 0.999, 1e-8, 0);

    private final EnginePlan plan;
    private final Weights weights;
    private final Device device;
    private final int[][] sequences;
    private final float[] ones;
    private final float[] temperatures;
    private final float[] sampledLogProbs;
    private final SplittableRandom random = new SplittableRandom(7);
    private final DecodeSession decode;
    private final ScoringSession scoring;
    private final GradientSession gradient;
    private final Gradients gradients;
    private final AdamW optimizer;

    /** Seconds of one round. */
    private record Round(double prefill, double decode, double score, double gradient, double update) {}

    /**
     * @param weights written by every round's step
     * @throws IllegalArgumentException if a sequence is longer than the model's positions
     */
    public EngineTrial(Engine engine, Weights weights, EnginePlan plan) {
        DecoderShape shape = weights.shape();
        this.plan = plan;
        this.weights = weights;
        this.device = engine.device();
        this.sequences = new int[plan.sequences()][];
        Arrays.setAll(
                sequences,
                s -> random.ints(plan.length(), 0, shape.vocabSize()).toArray()); // behind the prompt it is overwritten
        this.ones = filled(plan.sequences() * plan.sampledTokens());
        this.temperatures = filled(plan.sequences());
        this.sampledLogProbs = new float[ones.length];
        this.decode = new DecodeSession(engine, shape, plan.sequences(), plan.length(), plan.tokensPerCall());
        this.scoring = new ScoringSession(engine, shape, plan.tokenBudget());
        this.gradient = new GradientSession(engine, shape, plan.tokenBudget());
        this.gradients = new Gradients(shape);
        this.optimizer = new AdamW(OPTIMIZER, shape);
    }

    private static float[] filled(int length) {
        float[] ones = new float[length];
        Arrays.fill(ones, 1f);
        return ones;
    }

    /** Measures all rounds; the weights are other ones afterwards. */
    public EngineRates measure() {
        List<Round> rounds = new ArrayList<>();
        LogProbGap decodeAndScore = new LogProbGap(0, 0);
        LogProbGap deviceAndCpu = null;
        for (int r = -1; r < plan.rounds(); r++) {
            double prefill = seconds(this::takePrompts);
            double decoded = seconds(this::sample);
            float[][] scored = new float[1][];
            double score = seconds(() ->
                    scored[0] = scoring.score(weights, batch(), temperatures).logProbs());
            decodeAndScore = worse(decodeAndScore, LogProbGap.between(sampledLogProbs, scored[0]));
            if (r < 0 && device.kind() != Device.Kind.CPU) {
                try (ScoringSession cpu = new ScoringSession(Engine.cpu(), weights.shape(), plan.tokenBudget())) {
                    float[] there = cpu.score(weights, batch(), temperatures).logProbs();
                    deviceAndCpu = LogProbGap.between(scored[0], there);
                }
            }
            double backward = seconds(this::accumulate);
            double update = seconds(() -> optimizer.step(weights, gradients, LEARNING_RATE));
            if (r >= 0) {
                rounds.add(new Round(prefill, decoded, score, backward, update));
            }
        }
        return new EngineRates(
                plan,
                Sample.of(rounds.stream().map(Round::prefill).toList()),
                Sample.of(rounds.stream().map(Round::decode).toList()),
                Sample.of(rounds.stream().map(Round::score).toList()),
                Sample.of(rounds.stream().map(Round::gradient).toList()),
                Sample.of(rounds.stream().map(Round::update).toList()),
                Sample.of(rounds.stream().map(r -> r.gradient() + r.update()).toList()),
                decodeAndScore,
                deviceAndCpu);
    }

    private static LogProbGap worse(LogProbGap one, LogProbGap other) {
        return new LogProbGap(Math.max(one.mean(), other.mean()), Math.max(one.most(), other.most()));
    }

    private static double seconds(Runnable work) {
        long start = System.nanoTime();
        work.run();
        return (System.nanoTime() - start) / 1e9;
    }

    private void takePrompts() {
        List<KnownTokens> known = new ArrayList<>();
        for (int slot = 0; slot < sequences.length; slot++) {
            decode.reset(slot, sequences[slot][0]);
            known.add(new KnownTokens(slot, Arrays.copyOfRange(sequences[slot], 1, plan.promptTokens())));
        }
        decode.prefill(weights, known);
    }

    private void sample() {
        DecodeInput in = new DecodeInput(sequences.length, plan.tokensPerCall());
        for (int done = 0; done < plan.sampledTokens(); done += plan.tokensPerCall()) {
            int steps = Math.min(plan.tokensPerCall(), plan.sampledTokens() - done);
            in.clear();
            for (int slot = 0; slot < sequences.length; slot++) {
                in.activate(slot, steps, Sampling.of(1));
                for (int step = 0; step < steps; step++) {
                    in.sample(step, slot, (float) random.nextDouble(0, 0.9999));
                }
            }
            keep(decode.advance(weights, in), done, steps);
        }
    }

    private void keep(DecodeSteps drawn, int done, int steps) {
        for (int slot = 0; slot < sequences.length; slot++) {
            for (int step = 0; step < steps; step++) {
                sequences[slot][plan.promptTokens() + done + step] = drawn.token(step, slot);
                sampledLogProbs[slot * plan.sampledTokens() + done + step] = drawn.temperatureLogProb(step, slot);
            }
        }
    }

    private SequenceBatch batch() {
        int[] firstScored = new int[sequences.length];
        Arrays.fill(firstScored, plan.promptTokens());
        return new SequenceBatch(sequences, firstScored);
    }

    private void accumulate() {
        gradients.zero();
        gradient.accumulate(weights, batch(), temperatures, ones, new float[ones.length], gradients);
    }

    @Override
    public void close() {
        decode.close();
        scoring.close();
        gradient.close();
    }
}
