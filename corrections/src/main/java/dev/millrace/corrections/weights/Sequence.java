package dev.millrace.corrections.weights;

import dev.millrace.corrections.CorrectionUnit;
import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.ratio.LogRatio;
import dev.millrace.corrections.rollout.WeightRule;
import java.util.Map;
import java.util.OptionalDouble;

/**
 * Importance weights, one per sequence: verl's {@code rollout_is=sequence}.
 *
 * <p>With one number as its threshold a weight is truncated there ({@link SequenceTruncatedWeights}); with two, joined by an
 * underscore, one outside them is 0 ({@link SequenceBandWeights}, IcePop). It reports as {@code sequence_tis} and
 * {@code sequence_icepop}, with verl's metrics of its weights. Unit: sequence.
 *
 * @param threshold {@code upper}, at least 1, or {@code lower_upper} around 1; finite
 * @param batchNormalize divide weights by their batch mean
 */
public record Sequence(String threshold, boolean batchNormalize) implements RatioWeights {
    public Sequence {
        WeightRule.of("threshold", WeightRule.Level.SEQUENCE, threshold).requireOneWithin("threshold=" + threshold);
    }

    public static Sequence defaults() {
        return new Sequence("2.0", false);
    }

    @Override
    public String name() {
        return rule() instanceof WeightRule.Truncate ? "sequence_tis" : "sequence_icepop";
    }

    @Override
    public CorrectionUnit unit() {
        return CorrectionUnit.SEQUENCE;
    }

    @Override
    public WeightMethod method() {
        WeightRule rule = rule();
        return rule instanceof WeightRule.Truncate
                ? new SequenceTruncatedWeights(rule.upper())
                : new SequenceBandWeights(rule.lower(), rule.upper());
    }

    @Override
    public OptionalDouble cap() {
        return rule() instanceof WeightRule.Truncate ? OptionalDouble.of(rule().upper()) : OptionalDouble.empty();
    }

    @Override
    public Map<String, Double> measures(TokenBatch batch, LogRatio ratio) {
        return RuleMeasures.of(rule(), batchNormalize, batch, ratio);
    }

    private WeightRule rule() {
        return WeightRule.of("threshold", WeightRule.Level.SEQUENCE, threshold);
    }
}
