package dev.millrace.topology.correction;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.ratio.LogRatio;
import dev.millrace.corrections.weights.SequenceTruncatedWeights;
import dev.millrace.corrections.weights.TokenTruncatedWeights;
import dev.millrace.corrections.weights.WeightMethod;
import dev.millrace.corrections.weights.WeightSummary;
import dev.millrace.schemas.StageReport;
import java.util.Map;
import java.util.TreeMap;

/**
 * The configured importance weights, with the report of what they did. What a weight is, is the corrections' to say;
 * this names the log-probs it is made of.
 *
 * <p>Immutable and thread-safe.
 */
public final class ImportanceWeighting {
    private final WeightsConfig config;
    private final WeightMethod method;
    private final String stage;

    public ImportanceWeighting(WeightsConfig config) {
        this.config = config;
        this.method = switch (config.unit()) {
            case TOKEN -> new TokenTruncatedWeights(config.cap());
            case SEQUENCE -> new SequenceTruncatedWeights(config.cap());
        };
        this.stage = switch (config.unit()) {
            case TOKEN -> "token_tis";
            case SEQUENCE -> "sequence_tis";
        };
    }

    /** The log-probs of one trajectory, or of a batch of them, one per packed token. */
    public record PolicyLogProbs(float[] behavior, float[] old, float[] proximal) {

        /** The configured comparison of two of them. */
        public LogRatio ratio(WeightsConfig.Ratio ratio) {
            return switch (ratio) {
                case ANCHOR -> LogRatio.of(ratio.kind(), proximal, behavior);
                case ENGINE_MISMATCH -> LogRatio.of(ratio.kind(), old, behavior);
                case STALENESS -> LogRatio.of(ratio.kind(), proximal, old);
            };
        }
    }

    /**
     * Overwrites {@code weights}, one per packed token, and reports.
     *
     * @throws dev.millrace.corrections.NonFiniteLogProbException if a trained token has no finite log-prob
     */
    public StageReport compute(TokenBatch batch, PolicyLogProbs logProbs, float[] weights) {
        WeightSummary summary = method.compute(batch, logProbs.ratio(config.ratio()), weights);
        Map<String, Double> values = new TreeMap<>();
        values.put("cap", config.cap());
        values.put("mean_weight", summary.meanWeight());
        values.put("min_weight", summary.minWeight());
        values.put("max_weight", summary.maxWeight());
        return new StageReport(stage, (long) summary.trainedTokens(),
            (long) summary.truncatedTokens() + summary.maskedTokens(), (long) summary.trainedSequences(),
            (long) summary.changedSequences(), values);
    }
}
