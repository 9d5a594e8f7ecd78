package dev.millrace.stages;

import dev.millrace.corrections.vcpo.EssStepScale;

/**
 * How the step size follows the effective sample size; the sample size is reported in any case.
 *
 * @param rule how
 * @param weights of which weights the sample size is taken
 * @param baseRatio ESS ratio at which a step is not damped, in (0, 1]
 */
public record EssConfig(Rule rule, Weights weights, double baseRatio) {

    /** How the step size follows the ESS ratio. */
    public enum Rule {
        /** Not at all: the scale is 1. */
        NONE,
        /** Its square root. */
        SQRT,
        /** The ratio itself. */
        LINEAR
    }

    /** Of which weights the sample size is taken. */
    public enum Weights {
        /** As they are: shows the outliers that truncation hides, and damps by them. */
        RAW,
        /** Truncated as the update's are: damps by what is left in the update. */
        TRUNCATED
    }

    public EssConfig {
        if (!(baseRatio > 0.0 && baseRatio <= 1.0)) {
            throw new IllegalArgumentException("base_ratio must be in (0, 1]: " + baseRatio);
        }
    }

    /** Square root of that of raw weights, from a ratio of 1. */
    public static EssConfig defaults() {
        return new EssConfig(Rule.SQRT, Weights.RAW, 1.0);
    }

    /** The factor on the learning rate for the ESS ratios of raw and of truncated weights. */
    double scale(double raw, double truncated) {
        double essRatio = weights == Weights.RAW ? raw : truncated;
        return switch (rule) {
            case NONE -> 1.0;
            case SQRT -> new EssStepScale(EssStepScale.Rule.SQRT, baseRatio).scale(essRatio);
            case LINEAR -> new EssStepScale(EssStepScale.Rule.LINEAR, baseRatio).scale(essRatio);
        };
    }
}
