package dev.millrace.workloads.engine;

import dev.millrace.policy.decoder.Precision;
import dev.millrace.policy.session.Engine;
import dev.millrace.policy.session.PreparedWeights;
import dev.millrace.policy.session.ScoringSession;
import dev.millrace.policy.weights.Weights;
import java.util.Arrays;

/**
 * The same weights in two engines: sequences that one of some precision draws, and what the scorer's says of them. What is left of
 * the gap between behavior and old log-probs when nothing is stale.
 */
public final class MismatchTrial {
    private final Engine engine;
    private final Weights weights;
    private final EnginePlan plan;

    /** @param weights not written meanwhile */
    public MismatchTrial(Engine engine, Weights weights, EnginePlan plan) {
        this.engine = engine;
        this.weights = weights;
        this.plan = plan;
    }

    /**
     * One precision.
     *
     * @param tokens that were drawn and compared, of all rounds
     * @param sampledRate tokens drawn in a second
     */
    public record Mismatch(Precision precision, int tokens, double sampledRate, LogProbGap gap) {}

    /** Draws all rounds and scores them. */
    public Mismatch measure(Precision precision) {
        int each = plan.sequences() * plan.sampledTokens();
        float[] sampler = new float[each * plan.rounds()];
        float[] scorer = new float[sampler.length];
        float[] temperatures = new float[plan.sequences()];
        Arrays.fill(temperatures, 1f);
        double seconds = 0;
        try (SampledSequences sampled = new SampledSequences(
                        engine,
                        weights,
                        plan,
                        new PreparedWeights(precision, plan.placement().packsOn(engine.device())));
                ScoringSession scoring = new ScoringSession(engine, weights.shape(), plan.tokenBudget())) {
            for (int round = 0; round < plan.rounds(); round++) {
                sampled.takePrompts();
                long began = System.nanoTime();
                sampled.sample();
                seconds += (System.nanoTime() - began) / 1e9;
                System.arraycopy(sampled.logProbs(), 0, sampler, round * each, each);
                float[] scores =
                        scoring.score(weights, sampled.batch(), temperatures).logProbs();
                System.arraycopy(scores, 0, scorer, round * each, each);
            }
        }
        return new Mismatch(precision, sampler.length, sampler.length / seconds, LogProbGap.between(sampler, scorer));
    }
}
