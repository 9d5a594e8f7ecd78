package dev.millrace.corrections.objective;

import static dev.millrace.corrections.objective.Bounds.positive;

import dev.millrace.corrections.CorrectionUnit;
import dev.millrace.corrections.TokenBatch;

/**
 * VESPO: the policy gradient {@code ℓ = −sg[φ(W)] A log π} under a reshaped weight of the whole answer.
 * {@code φ(W) = e^λ W^k e^(−λ W)} with {@code W = exp(Σ_t(current − behavior))}.
 *
 * <p>Unit of correction: sequence. {@code φ(1) = 1}. The weight peaks at {@code W = k/λ} and falls to 0 on both sides.
 * So an answer that has become either much likelier or much rarer is left alone instead of being cut at a bound. For
 * advantages that are not negative the defaults peak below 1, which pushes an answer up only until the policy has it;
 * for negative ones above 1. The mean advantage of a sequence selects its pair of k and λ; its tokens keep their own
 * advantages. The weight is a constant in the derivative, {@code −φ A}. Log ratios are bounded to ±20 per token and the
 * sequence's to [log 1e-8, 20]. Metrics: approximate KL to the behavior policy.
 *
 * <p>Source: Shen et al. 2026 (arXiv 2602.10693), abstract only, and its implementation in TRL, which also provides the
 * defaults.
 *
 * @param kPos power of the weight at a non-negative advantage, positive
 * @param lambdaPos rate of its decay, positive
 * @param kNeg power of the weight at a negative advantage, positive
 * @param lambdaNeg rate of its decay, positive
 */
public record Vespo(double kPos, double lambdaPos, double kNeg, double lambdaNeg) implements BehaviorObjective {
    private static final double LEAST_LOG_WEIGHT = Math.log(1e-8);
    private static final double LARGEST_LOG_WEIGHT = 20.0;

    public Vespo {
        positive("k_pos", kPos);
        positive("lambda_pos", lambdaPos);
        positive("k_neg", kNeg);
        positive("lambda_neg", lambdaNeg);
    }

    public static Vespo defaults() {
        return new Vespo(2, 3, 3, 2);
    }

    @Override
    public CorrectionUnit unit() {
        return CorrectionUnit.SEQUENCE;
    }

    @Override
    public ObjectiveResult evaluate(ObjectiveInput input, UpdateFacts facts) {
        float[] behavior = input.requireBehavior("VESPO");
        double[] logWeights = logWeights(input, behavior);
        double[] shaped = shaped(SequenceMeans.of(input, behavior), logWeights);
        TokenRule rule = (current, old, advantage, term) -> {
            term.logRatio = BoundedLogRatio.of(current, old);
            term.loss = -shaped[term.sequence] * advantage * current;
            term.derivative = -shaped[term.sequence] * advantage;
            term.acted = logWeights[term.sequence] != 0;
        };
        return new TokenwiseLoss(input, facts.coefficients(input.batch()))
                .apply(rule, behavior)
                .withKlMetric();
    }

    private double[] shaped(SequenceMeans means, double[] logWeights) {
        double[] shaped = new double[logWeights.length];
        for (int s = 0; s < shaped.length; s++) {
            boolean up = means.advantages()[s] >= 0;
            double k = up ? kPos : kNeg;
            double lambda = up ? lambdaPos : lambdaNeg;
            shaped[s] = Math.exp(lambda + k * logWeights[s] - lambda * Math.exp(logWeights[s]));
        }
        return shaped;
    }

    private static double[] logWeights(ObjectiveInput input, float[] behavior) {
        TokenBatch batch = input.batch();
        double[] logWeights = new double[batch.sequenceCount()];
        for (int s = 0; s < logWeights.length; s++) {
            double sum = 0.0;
            for (int t = batch.start(s); t < batch.end(s); t++) {
                sum += batch.isTrained(t) ? BoundedLogRatio.of(input.current()[t], behavior[t]) : 0.0;
            }
            logWeights[s] = Math.max(LEAST_LOG_WEIGHT, Math.min(LARGEST_LOG_WEIGHT, sum));
        }
        return logWeights;
    }
}
