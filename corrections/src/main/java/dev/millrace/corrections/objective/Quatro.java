package dev.millrace.corrections.objective;

import static dev.millrace.corrections.objective.Bounds.positive;

import dev.millrace.corrections.CorrectionUnit;
import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.ratio.LogRatio;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;

/**
 * QUATRO: a trust region for every prompt. Per sequence {@code ℓ = −(ρ (A − η) − λ (ρ log ρ − ρ))}. {@code ρ} is the
 * ratio of the whole answer, current over behavior; λ and η are the multiplier and offset of its group.
 *
 * <p>Unit of correction: group; the batch must hold groups whole. The derivative by a token's log-prob is
 * {@code −ρ (A − η − λ log ρ)}, 0 where the solution puts the answer, and pointing back beyond it. A is the mean advantage of the
 * sequence. The log ratio is bounded to ±20. Metrics: approximate KL, {@value #MULTIPLIER}, and {@value #BINDING}.
 *
 * <p>Source: Lee et al. 2026 (arXiv 2602.04620); the solution is that of {@link QueryMultipliers}. A mean over sequences.
 *
 * @param budget largest divergence per prompt from the behavior policy, nats over answers, positive
 * @param smallestMultiplier smallest multiplier, positive
 */
public record Quatro(double budget, double smallestMultiplier) implements BehaviorObjective, SequenceObjective {
    /** Mean multiplier of the groups with a trained token. */
    public static final String MULTIPLIER = "quatro_multiplier";
    /** Share of these groups whose budget limits them. */
    public static final String BINDING = "quatro_binding";

    public Quatro {
        positive("budget", budget);
        positive("smallest_multiplier", smallestMultiplier);
    }

    public static Quatro defaults() {
        return new Quatro(0.05, 0.1);
    }

    @Override
    public CorrectionUnit unit() {
        return CorrectionUnit.GROUP;
    }

    @Override
    public boolean needsWholeGroups() {
        return true;
    }

    @Override
    public boolean isPolicyGradientAtAnchor() {
        return false;
    }

    @Override
    public ObjectiveResult evaluate(ObjectiveInput input, UpdateFacts facts) {
        TokenBatch batch = input.batch();
        float[] behavior = input.requireBehavior("QUATRO");
        QueryTrustRegion[] regions = new QueryMultipliers(budget, smallestMultiplier)
                .solve(batch, SequenceMeans.of(input, behavior).advantages());
        ObjectiveResult result = new SequencewiseLoss(input, facts.coefficients(input.batch()))
                .apply(
                        (mean, advantage, term) -> {
                            int trained = batch.trainedTokens(term.sequence);
                            QueryTrustRegion region = regions[batch.group(term.sequence)];
                            double logRatio = LogRatio.bounded(trained * mean);
                            double ratio = Math.exp(logRatio);
                            term.loss = -(ratio * (advantage - region.offset())
                                    - region.multiplier() * (ratio * logRatio - ratio));
                            term.acted = region.binds();
                            term.derivative =
                                    -region.coefficient(advantage, logRatio) * trained; // by the mean log ratio
                        },
                        behavior)
                .withKlMetric();
        Map<String, Double> metrics = new LinkedHashMap<>(result.metrics());
        QueryTrustRegion[] solved =
                Arrays.stream(regions).filter(Objects::nonNull).toArray(QueryTrustRegion[]::new);
        metrics.put(
                MULTIPLIER,
                Arrays.stream(solved)
                        .mapToDouble(QueryTrustRegion::multiplier)
                        .average()
                        .orElse(0));
        metrics.put(
                BINDING,
                Arrays.stream(solved)
                        .mapToDouble(region -> region.binds() ? 1 : 0)
                        .average()
                        .orElse(0));
        return result.withMetrics(metrics);
    }
}
