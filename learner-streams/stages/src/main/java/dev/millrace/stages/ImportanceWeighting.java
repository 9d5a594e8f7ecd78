package dev.millrace.stages;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.ratio.LogRatio;
import dev.millrace.corrections.rollout.RolloutCorrection;
import dev.millrace.corrections.rollout.RolloutCorrectionConfig;
import dev.millrace.corrections.rollout.WeightRule;
import dev.millrace.corrections.weights.SequenceTruncatedWeights;
import dev.millrace.corrections.weights.TokenTruncatedWeights;
import dev.millrace.corrections.weights.WeightMethod;
import dev.millrace.corrections.weights.WeightSummary;
import dev.millrace.schemas.StageReport;
import java.util.List;
import java.util.Map;
import java.util.OptionalDouble;
import java.util.TreeMap;

/**
 * The configured importance weights of one trajectory or of several, with the report of what they did. What a weight is, is the
 * corrections' to say; this names the log-probs it is made of.
 *
 * <p>Immutable and thread-safe.
 */
public final class ImportanceWeighting {
    private final ComparedPolicies compare;
    private final Stage stage;
    private final OptionalDouble tokenCap;

    /** Makes the weights, or leaves them to others. */
    private interface Stage {
        List<StageReport> apply(TokenBatch batch, LogRatio ratio, float[] weights);
    }

    public ImportanceWeighting(RolloutCorrectionOptions options) {
        this.compare = options.compare();
        RolloutCorrectionConfig config = options.resolve();
        this.stage = config.weights().map(rule -> stageOf(rule, config)).orElse(ImportanceWeighting::ones);
        this.tokenCap = config.weights()
                .filter(rule -> rule instanceof WeightRule.Truncate && rule.level() == WeightRule.Level.TOKEN)
                .map(rule -> OptionalDouble.of(rule.upper()))
                .orElse(OptionalDouble.empty());
    }

    /** Where a weight is the ratio of these two of its token, truncated and no more: the bound at which it is. */
    public OptionalDouble tokenCapOf(ComparedPolicies policies) {
        return policies == compare ? tokenCap : OptionalDouble.empty();
    }

    private static Stage stageOf(WeightRule rule, RolloutCorrectionConfig config) {
        String level = rule.level() == WeightRule.Level.TOKEN ? "token" : "sequence";
        if (rule instanceof WeightRule.Truncate) {
            WeightMethod method = rule.level() == WeightRule.Level.TOKEN
                    ? new TokenTruncatedWeights(rule.upper())
                    : new SequenceTruncatedWeights(rule.upper());
            return (batch, ratio, weights) ->
                    List.of(truncated(level + "_tis", rule, method.compute(batch, ratio, weights)));
        }
        RolloutCorrection banded = new RolloutCorrection(
                new RolloutCorrectionConfig(config.weights(), false, List.of(), config.mode(), config.semantics()));
        return (batch, ratio, weights) -> List.of(banded(level + "_icepop", rule, banded, batch, ratio, weights));
    }

    /**
     * Overwrites {@code weights}, one per token, and reports; without a rule every trained token weighs 1.
     *
     * @throws dev.millrace.corrections.NonFiniteLogProbException if a trained token has no finite log-prob
     */
    public List<StageReport> compute(TokenBatch batch, MemberLogProbs logProbs, float[] weights) {
        return stage.apply(batch, logProbs.ratio(compare), weights);
    }

    private static StageReport truncated(String name, WeightRule rule, WeightSummary summary) {
        Map<String, Double> values = new TreeMap<>();
        values.put("upper", rule.upper());
        values.put("mean_weight", summary.meanWeight());
        values.put("min_weight", summary.minWeight());
        values.put("max_weight", summary.maxWeight());
        return new StageReport(
                name,
                (long) summary.trainedTokens(),
                (long) summary.truncatedTokens() + summary.maskedTokens(),
                (long) summary.trainedSequences(),
                (long) summary.changedSequences(),
                values);
    }

    private static StageReport banded(
            String name,
            WeightRule rule,
            RolloutCorrection correction,
            TokenBatch batch,
            LogRatio ratio,
            float[] weights) {
        long zeroed = 0;
        long sequences = 0;
        long changed = 0;
        if (batch.trainedTokens() > 0) {
            float[] banded = correction.apply(batch, ratio).weights().orElseThrow();
            for (int s = 0; s < batch.sequenceCount(); s++) {
                long before = zeroed;
                for (int t = batch.start(s); t < batch.end(s); t++) {
                    weights[t] = banded[t];
                    zeroed += batch.isTrained(t) && banded[t] == 0f ? 1 : 0;
                }
                sequences += batch.trainedTokens(s) > 0 ? 1 : 0;
                changed += zeroed > before ? 1 : 0;
            }
        }
        Map<String, Double> values = new TreeMap<>();
        values.put("lower", rule.lower());
        values.put("upper", rule.upper());
        return new StageReport(name, (long) batch.trainedTokens(), zeroed, sequences, changed, values);
    }

    private static List<StageReport> ones(TokenBatch batch, LogRatio ratio, float[] weights) {
        ratio.requireFinite(batch);
        for (int t = 0; t < weights.length; t++) {
            weights[t] = batch.isTrained(t) ? 1f : 0f;
        }
        return List.of();
    }
}
