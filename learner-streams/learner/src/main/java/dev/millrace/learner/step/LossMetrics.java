package dev.millrace.learner.step;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.kl.KlResult;
import dev.millrace.corrections.objective.ObjectiveResult;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * What one update's loss was made of. Means are over trained tokens, log-probs those of the policy before the update.
 *
 * <p>{@code approx_kl_behavior} is k1, the mean of behavior minus current; {@code approx_kl3_behavior} is k3, the mean
 * of {@code r − 1 − log r} with r = current/behavior, which is never negative.
 */
final class LossMetrics {
    private static final Map<String, String> OBJECTIVE_NAMES = Map.of(
            ObjectiveResult.APPROX_KL, StepMetric.APPROX_KL_PROXIMAL.key(),
            ObjectiveResult.CLIPPED_FRACTION, StepMetric.CLIP_FRACTION.key(),
            ObjectiveResult.LOWER_CLIPPED_FRACTION, StepMetric.CLIP_FRACTION_LOWER.key());

    private final Minibatch minibatch;
    private final GradientShards.Scores scores;
    private final ObjectiveResult result;
    private final double[] aggregation;
    private final double entropyCoefficient;
    private final @Nullable KlResult kl;
    private final double klCoefficient;

    /** @param kl divergence from the reference; null without one in the loss */
    LossMetrics(
            Minibatch minibatch,
            GradientShards.Scores scores,
            ObjectiveResult result,
            double[] aggregation,
            double entropyCoefficient,
            @Nullable KlResult kl,
            double klCoefficient) {
        this.minibatch = minibatch;
        this.scores = scores;
        this.result = result;
        this.aggregation = aggregation;
        this.entropyCoefficient = entropyCoefficient;
        this.kl = kl;
        this.klCoefficient = klCoefficient;
    }

    /** Adds them to the batch's and returns the loss. */
    double addTo(StepMetricsTally means) {
        TokenBatch layout = minibatch.layout();
        float[] behavior = minibatch.behavior();
        double entropy = 0;
        double aggregatedEntropy = 0;
        double k1 = 0;
        double k3 = 0;
        for (int s = 0; s < layout.sequenceCount(); s++) {
            for (int t = layout.start(s); t < layout.end(s); t++) {
                if (layout.isTrained(t)) {
                    double logRatio = (double) scores.logProbs()[t] - behavior[t];
                    entropy += scores.entropies()[t];
                    aggregatedEntropy += aggregation[s] * scores.entropies()[t];
                    k1 -= logRatio;
                    k3 += Math.expm1(logRatio) - logRatio;
                }
            }
        }
        double tokens = layout.trainedTokens();
        double loss =
                result.loss() - entropyCoefficient * aggregatedEntropy + (kl == null ? 0 : klCoefficient * kl.value());
        means.add(StepMetric.LOSS, loss);
        means.add(StepMetric.POLICY_LOSS, result.loss());
        means.add(StepMetric.ENTROPY, entropy / tokens);
        means.add(StepMetric.ENTROPY_COEFFICIENT, entropyCoefficient);
        means.add(StepMetric.APPROX_KL_BEHAVIOR, k1 / tokens);
        means.add(StepMetric.APPROX_KL3_BEHAVIOR, k3 / tokens);
        if (kl != null) {
            means.add(StepMetric.KL_LOSS, kl.value());
        }
        means.addActedOn(layout, result.actedOn());
        result.metrics()
                .forEach((name, value) -> means.addOfObjective(OBJECTIVE_NAMES.getOrDefault(name, name), value));
        return loss;
    }
}
