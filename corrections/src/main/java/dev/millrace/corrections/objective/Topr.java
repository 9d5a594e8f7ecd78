package dev.millrace.corrections.objective;

import dev.millrace.corrections.CorrectionUnit;
import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.ratio.LogRatio;

/**
 * TOPR, tapered off-policy REINFORCE: {@code ℓ = −sg[w] A log π}, with {@code w = 1} where {@code A >= 0} and
 * {@code w = min(cap, π(y) / μ(y))} where {@code A < 0}.
 *
 * <p>Unit of correction: sequence; {@code π(y)/μ(y)} is the product over the sequence's trained tokens, bounded to
 * e^±20. Good answers are imitated whoever wrote them; bad ones are pushed down only while the policy would still
 * write them, so the push fades instead of driving log-probs to −∞. The derivative is {@code −w A}. {@code μ} is the
 * behavior policy. Metrics: approximate KL to the behavior policy; the lower clipped fraction counts tokens with a
 * truncated weight.
 *
 * <p>Source: Le Roux et al. 2025 (arXiv 2503.14286) with its canonical bounds: [1, 1] for positive and [0, 1] for
 * negative rewards. The paper signs by the reward of the trajectory; here it is the sign of each token's advantage,
 * which is the same where a sequence has one advantage.
 */
public final class Topr implements Objective {
    private final double logCap;
    private final Aggregation aggregation;

    /** @param cap largest weight of a token with negative advantage; positive, 1 in the paper */
    public Topr(double cap, Aggregation aggregation) {
        if (!(cap > 0 && cap < Double.POSITIVE_INFINITY)) {
            throw new IllegalArgumentException("cap must be positive and finite: " + cap);
        }
        this.logCap = Math.log(cap);
        this.aggregation = aggregation;
    }

    @Override
    public CorrectionUnit unit() {
        return CorrectionUnit.SEQUENCE;
    }

    @Override
    public ObjectiveResult evaluate(ObjectiveInput input) {
        float[] behavior = input.requireBehavior("TOPR");
        TokenBatch batch = input.batch();
        SequenceMeans means = SequenceMeans.of(input, behavior);
        TokenRule rule = (current, anchor, advantage, term) -> {
            double logWeight = 0.0;
            if (advantage < 0) {
                double logRatio = LogRatio.bounded(means.logRatio(term.sequence) * batch.trainedTokens(term.sequence));
                logWeight = Math.min(logCap, logRatio);
                term.lowerClipped = logRatio > logCap;
            }
            term.derivative = -advantage * Math.exp(logWeight);
            term.loss = term.derivative * current;
            term.logRatio = current - anchor;
        };
        return new TokenwiseLoss(input, aggregation).apply(rule, behavior).withClipMetrics();
    }
}
