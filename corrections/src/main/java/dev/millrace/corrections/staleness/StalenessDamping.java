package dev.millrace.corrections.staleness;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.stage.Stage;
import dev.millrace.corrections.stage.StageBatch;
import dev.millrace.corrections.stage.StageInput;
import dev.millrace.corrections.stage.StageOutcome;
import dev.millrace.corrections.stage.StageSettings;
import java.util.Arrays;
import java.util.Map;
import java.util.Set;

/**
 * Weights that fall with staleness: {@code w_t · 2^(-s_t / half-life)}, s_t the versions between the one that sampled the
 * token and the current one.
 *
 * <p>A heuristic damping on top of importance weights, not an importance weight itself: it reflects how many updates
 * the policy had, not how far it moved. Unit: token, by the version that sampled it. Immutable and thread-safe.
 *
 * @param halfLifeVersions versions in which a weight halves; positive and finite
 */
public record StalenessDamping(double halfLifeVersions) implements Stage {
    public StalenessDamping {
        if (!(halfLifeVersions > 0.0 && halfLifeVersions < Double.POSITIVE_INFINITY)) {
            throw new IllegalArgumentException(
                    "half_life_versions must be positive and finite; without damping the stage is left out: "
                            + halfLifeVersions);
        }
    }

    @Override
    public String name() {
        return "staleness_weights";
    }

    @Override
    public Set<StageInput> inputs() {
        return Set.of(StageInput.VERSIONS);
    }

    /** Multiplies the weights so far. The mean factor is over the remaining tokens, and absent if there are none. */
    @Override
    public StageOutcome apply(StageBatch batch) {
        TokenBatch left = batch.left();
        double[] factors = factors(batch.facts().versions(), batch.facts().version());
        double sum = 0;
        for (int t = 0; t < factors.length; t++) {
            sum += left.isTrained(t) ? factors[t] : 0;
        }
        Map<String, Double> values = StageSettings.of(this);
        if (left.trainedTokens() > 0) {
            values.put("mean_factor", sum / left.trainedTokens());
        }
        return batch.scaleWeights(this, factors, values);
    }

    /** In (0, 1]; 1 for a token of the current version. */
    double factor(long staleness) {
        return Math.pow(2.0, -staleness / halfLifeVersions);
    }

    /** One per packed token, 1 where no version sampled it. */
    private double[] factors(BatchVersions versions, long currentVersion) {
        TokenBatch tokens = versions.batch();
        double[] factors = new double[tokens.tokenCount()];
        Arrays.fill(factors, 1);
        for (int s = 0; s < tokens.sequenceCount(); s++) {
            for (VersionSpan span : versions.spans(s)) {
                double factor = factor(BatchVersions.staleness(s, span, currentVersion));
                Arrays.fill(factors, tokens.start(s) + span.start(), tokens.start(s) + span.end(), factor);
            }
        }
        return factors;
    }
}
