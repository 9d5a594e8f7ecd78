package dev.millrace.stages;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.staleness.BatchVersions;
import dev.millrace.corrections.staleness.StalenessWeights;
import dev.millrace.corrections.staleness.VersionSpan;
import dev.millrace.schemas.StageReport;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;

/**
 * Weights that fall with staleness: {@code w_t · 2^(-s_t / half-life)}, s_t the versions between the one that sampled the
 * token and the current one. What a factor is follows from the batch alone, so the topology reports it and the learner
 * multiplies it onto its importance weights.
 *
 * <p>Immutable and thread-safe.
 */
public final class StalenessDamping {
    /** Name of the stage in reports. */
    public static final String STAGE = "staleness_weights";

    private final double halfLifeVersions;

    public StalenessDamping(StalenessConfig config) {
        this.halfLifeVersions = config.halfLifeVersions();
    }

    /**
     * Multiplies the factors onto weights, one per packed token.
     *
     * @param versions which version sampled which tokens
     * @param left the layout under the mask in force, whose tokens are counted
     * @param currentVersion what staleness is counted from
     * @param weights written to
     * @return what was done; empty where nothing is configured
     */
    public Optional<StageReport> apply(BatchVersions versions, TokenBatch left, long currentVersion, float[] weights) {
        if (halfLifeVersions == 0.0) {
            return Optional.empty();
        }
        StalenessWeights.Exponential factors = new StalenessWeights.Exponential(halfLifeVersions);
        long damped = 0;
        long dampedSequences = 0;
        long trainedSequences = 0;
        double sum = 0;
        for (int s = 0; s < left.sequenceCount(); s++) {
            long before = damped;
            for (VersionSpan span : versions.spans(s)) {
                double factor = factors.weight(currentVersion - span.version());
                for (int t = left.start(s) + span.start(); t < left.start(s) + span.end(); t++) {
                    weights[t] *= (float) factor;
                    if (left.isTrained(t)) {
                        sum += factor;
                        damped += factor < 1.0 ? 1 : 0;
                    }
                }
            }
            dampedSequences += damped > before ? 1 : 0;
            trainedSequences += left.trainedTokens(s) > 0 ? 1 : 0;
        }
        Map<String, Double> values = new TreeMap<>();
        values.put("half_life_versions", halfLifeVersions);
        values.put("mean_factor", left.trainedTokens() == 0 ? 1.0 : sum / left.trainedTokens());
        return Optional.of(
                new StageReport(STAGE, (long) left.trainedTokens(), damped, trainedSequences, dampedSequences, values));
    }
}
