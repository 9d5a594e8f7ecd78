package dev.millrace.workloads.engine;

import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.decoder.Precision;
import dev.millrace.policy.optimizer.AdamW;
import dev.millrace.policy.session.Device;
import dev.millrace.policy.session.Engine;
import dev.millrace.policy.session.GradientSession;
import dev.millrace.policy.session.PreparedWeights;
import dev.millrace.policy.session.ScoringSession;
import dev.millrace.policy.weights.Gradients;
import dev.millrace.policy.weights.Weights;
import dev.millrace.workloads.report.Sample;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

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
    private final SampledSequences sampled;
    private final float[] ones;
    private final float[] temperatures;
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
        this.ones = filled(plan.sequences() * plan.sampledTokens());
        this.temperatures = filled(plan.sequences());
        this.sampled = new SampledSequences(engine, weights, plan, new PreparedWeights(Precision.F32));
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
        LogProbGap decodeAndScore = LogProbGap.NONE;
        LogProbGap deviceAndCpu = null;
        for (int r = -1; r < plan.rounds(); r++) {
            double prefill = seconds(sampled::takePrompts);
            double decoded = seconds(sampled::sample);
            float[][] scored = new float[1][];
            double score = seconds(() -> scored[0] =
                    scoring.score(weights, sampled.batch(), temperatures).logProbs());
            decodeAndScore = decodeAndScore.worst(LogProbGap.between(sampled.logProbs(), scored[0]));
            if (r < 0 && device.kind() != Device.Kind.CPU) {
                try (ScoringSession cpu = new ScoringSession(Engine.cpu(), weights.shape(), plan.tokenBudget())) {
                    float[] there =
                            cpu.score(weights, sampled.batch(), temperatures).logProbs();
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

    private static double seconds(Runnable work) {
        long start = System.nanoTime();
        work.run();
        return (System.nanoTime() - start) / 1e9;
    }

    private void accumulate() {
        gradients.zero();
        gradient.accumulate(weights, sampled.batch(), temperatures, ones, new float[ones.length], gradients);
    }

    @Override
    public void close() {
        sampled.close();
        scoring.close();
        gradient.close();
    }
}
