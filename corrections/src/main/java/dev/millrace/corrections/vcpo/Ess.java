package dev.millrace.corrections.vcpo;

import dev.millrace.corrections.CorrectionUnit;
import dev.millrace.corrections.ratio.RatioKind;
import dev.millrace.corrections.stage.Stage;
import dev.millrace.corrections.stage.StageBatch;
import dev.millrace.corrections.stage.StageFacts;
import dev.millrace.corrections.stage.StageInput;
import dev.millrace.corrections.stage.StageOutcome;
import dev.millrace.corrections.stage.StageSettings;
import java.util.Map;
import java.util.Objects;
import java.util.OptionalDouble;
import java.util.Set;

/**
 * How the step size follows the effective sample size of the sequences' weights. These are always proximal over
 * behavior, independent of the ratio that the update's weights use. The learning rate of the step is multiplied by
 * {@code min(1, ratio / base)} under {@link Rule#LINEAR}, and by its square root under {@link Rule#SQRT}: {@code ratio}
 * is the step's ESS ratio and {@code base} that of on-policy data.
 *
 * <p>The factor is in (0, 1]: an update that rests on few effective samples is damped, none is amplified. The noise of a
 * mean falls with the square root of the sample size, which speaks for the square root; the linear rule damps more. The
 * paper measured on-policy ratios of 1.0 on single-turn and 0.55 on multi-turn tasks. That number is the base: a base of
 * 1 damps such a task even when it is on-policy. The sample size is reported under every rule. Without a sequence there
 * is none, and the step is not damped.
 *
 * <p>Unit: batch. {@link #truncatedAt} sets the bound at which the update's weights are truncated; without it there is
 * no sample size of truncated weights.
 *
 * @param rule rule for the step scale
 * @param weights weights of the sample size
 * @param baseRatio ESS ratio of a full step, in (0, 1]
 */
public record Ess(Rule rule, Weights weights, double baseRatio) implements Stage {

    /** How the step size follows the ESS ratio. */
    public enum Rule {
        /** Not at all: the scale is 1. */
        NONE,
        /** Its square root. */
        SQRT,
        /** The ratio itself. */
        LINEAR;

        /** The scale at a sample size relative to the base. */
        public double follow(double relative) {
            return switch (this) {
                case NONE -> 1.0;
                case SQRT -> Math.sqrt(relative);
                case LINEAR -> relative;
            };
        }
    }

    /** The weights that the sample size is computed from. */
    public enum Weights {
        /** Untruncated: shows the outliers that truncation hides, and damps by them. */
        RAW,
        /** Truncated like the update's weights: damps by the sample size that the update really has. */
        TRUNCATED
    }

    public Ess {
        Objects.requireNonNull(rule, "rule");
        Objects.requireNonNull(weights, "weights");
        if (!(baseRatio > 0.0 && baseRatio <= 1.0)) {
            throw new IllegalArgumentException("base_ratio must be in (0, 1]: " + baseRatio);
        }
    }

    /** Square root of that of raw weights, from a ratio of 1. */
    public static Ess defaults() {
        return new Ess(Rule.SQRT, Weights.RAW, 1.0);
    }

    @Override
    public CorrectionUnit unit() {
        return CorrectionUnit.BATCH;
    }

    @Override
    public Set<StageInput> inputs() {
        return StageFacts.policies(RatioKind.ANCHOR);
    }

    /**
     * Returns the stage for weights that are truncated at {@code cap}.
     *
     * @param cap of the stage that weighs, see {@link dev.millrace.corrections.stage.WeightStage#cap}
     * @throws IllegalArgumentException if the sample size of truncated weights scales the step, but no stage truncates
     *     weights
     */
    public Stage truncatedAt(OptionalDouble cap) {
        if (cap.isEmpty() && rule != Rule.NONE && weights == Weights.TRUNCATED) {
            throw new IllegalArgumentException(
                    "weights=truncated has no truncated weights to scale the step by, because"
                            + " no stage truncates them; choose weights=raw, or importance weights with one threshold");
        }
        return new CappedEss(this, cap);
    }

    /** Applies the rule without truncated weights. */
    @Override
    public StageOutcome apply(StageBatch batch) {
        return truncatedAt(OptionalDouble.empty()).apply(batch);
    }

    StageOutcome apply(Stage by, StageBatch batch, OptionalDouble cap) {
        double[] logWeights = SequenceLogWeights.ofTrainedSequences(
                batch.left(), batch.facts().ratio(RatioKind.ANCHOR));
        Map<String, Double> values = StageSettings.of(this);
        OptionalDouble raw = OptionalDouble.empty();
        OptionalDouble truncated = OptionalDouble.empty();
        double scale = 1.0;
        if (logWeights.length > 0) {
            raw = OptionalDouble.of(EffectiveSampleSize.ofRaw(logWeights).ratio());
            values.put("ess_ratio", raw.getAsDouble());
            if (cap.isPresent()) {
                truncated = OptionalDouble.of(EffectiveSampleSize.ofTruncated(logWeights, cap.getAsDouble())
                        .ratio());
                values.put("ess_ratio_truncated", truncated.getAsDouble());
            }
            OptionalDouble ratio = weights == Weights.RAW ? raw : truncated;
            scale = rule == Rule.NONE ? 1.0 : scale(ratio.orElseThrow());
        }
        values.put("step_scale", scale);
        return batch.sampleSize(by, raw, truncated, scale, values);
    }

    /**
     * The factor for one step.
     *
     * @param essRatio in (0, 1], from {@link EffectiveSampleSize#ratio()}
     * @throws IllegalArgumentException if it is not: one that is NaN would leave the step unscaled that most needs damping
     */
    double scale(double essRatio) {
        if (!(essRatio > 0.0 && essRatio <= 1.0)) {
            throw new IllegalArgumentException("ESS ratio must be in (0, 1]: essRatio=" + essRatio);
        }
        return rule.follow(Math.min(1.0, essRatio / baseRatio));
    }

    /** The sample size together with the bound at which an algorithm's weights are truncated. */
    record CappedEss(Ess ess, OptionalDouble cap) implements Stage {
        @Override
        public String name() {
            return ess.name();
        }

        @Override
        public CorrectionUnit unit() {
            return ess.unit();
        }

        @Override
        public Set<StageInput> inputs() {
            return ess.inputs();
        }

        @Override
        public StageOutcome apply(StageBatch batch) {
            return ess.apply(this, batch, cap);
        }
    }
}
