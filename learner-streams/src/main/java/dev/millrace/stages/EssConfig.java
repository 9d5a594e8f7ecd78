package dev.millrace.stages;

import dev.millrace.corrections.vcpo.EssStepScale;

/**
 * How the step size follows the effective sample size; the sample size is reported in any case.
 *
 * @param rule how
 * @param baseRatio ESS ratio at which a step is not damped, in (0, 1]
 */
public record EssConfig(Rule rule, double baseRatio) {

    /** How the step size follows the ESS ratio. */
    public enum Rule {
        /** Not at all: the scale is 1. */
        NONE,
        /** Its square root. */
        SQRT,
        /** The ratio itself. */
        LINEAR
    }

    public EssConfig {
        if (!(baseRatio > 0.0 && baseRatio <= 1.0)) {
            throw new IllegalArgumentException("base_ratio must be in (0, 1]: " + baseRatio);
        }
    }

    /** Square root, from a ratio of 1. */
    public static EssConfig defaults() {
        return new EssConfig(Rule.SQRT, 1.0);
    }

    /** The factor on the learning rate for an ESS ratio. */
    double scale(double essRatio) {
        return switch (rule) {
            case NONE -> 1.0;
            case SQRT -> new EssStepScale(EssStepScale.Rule.SQRT, baseRatio).scale(essRatio);
            case LINEAR -> new EssStepScale(EssStepScale.Rule.LINEAR, baseRatio).scale(essRatio);
        };
    }
}
