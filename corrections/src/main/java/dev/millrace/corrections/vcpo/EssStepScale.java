package dev.millrace.corrections.vcpo;

import java.util.Objects;

/**
 * Factor on the learning rate of one optimiser step, {@code min(1, ratio / base)} under {@link Rule#LINEAR} and its
 * square root under {@link Rule#SQRT}, where {@code ratio} is the step's ESS ratio and {@code base} that of on-policy
 * data.
 *
 * <p>Unit: optimiser step. The factor is in (0, 1]: an update that rests on few effective samples is damped, none is
 * amplified. The noise of a mean falls with the square root of the sample size, which speaks for the square root; the
 * linear rule damps more. The paper measured on-policy ratios of 1.0 on single-turn and 0.55 on multi-turn tasks: the
 * base is that number, and a base of 1 damps such a task even when it is on-policy.
 *
 * <p>A ratio outside (0, 1] is refused. The reference takes {@code min(1.0, NaN)}, which is 1.0 in Python, so the
 * step that deserved damping most goes out unscaled; see {@link #referenceScale}.
 *
 * @param rule how the factor follows the ratio
 * @param baseRatio ESS ratio of a full step, in (0, 1]
 */
public record EssStepScale(Rule rule, double baseRatio) {
    private static final double REFERENCE_SMALLEST_BASE = 1e-8;

    /** How the step follows the ESS ratio. */
    public enum Rule {
        /** Square root of the relative ratio. */
        SQRT,
        /** The relative ratio itself. */
        LINEAR
    }

    public EssStepScale {
        Objects.requireNonNull(rule, "rule");
        if (!(baseRatio > 0.0 && baseRatio <= 1.0)) {
            throw new IllegalArgumentException("base ESS ratio must be in (0, 1]: baseRatio=" + baseRatio);
        }
    }

    /**
     * The factor for one step.
     *
     * @param essRatio in (0, 1], from {@link EffectiveSampleSize#ratio()}
     * @throws IllegalArgumentException if it is not
     */
    public double scale(double essRatio) {
        if (!(essRatio > 0.0 && essRatio <= 1.0)) {
            throw new IllegalArgumentException("ESS ratio must be in (0, 1]: essRatio=" + essRatio);
        }
        return follow(rule, Math.min(1.0, essRatio / baseRatio));
    }

    /**
     * The reference's factor: any ratio and any base are taken, a base below 1e-8 counts as 1e-8, and a NaN ratio
     * gives 1. For comparison with it only.
     */
    public static double referenceScale(Rule rule, double baseRatio, double essRatio) {
        double relative = essRatio / Math.max(baseRatio, REFERENCE_SMALLEST_BASE);
        return follow(rule, relative < 1.0 ? relative : 1.0);
    }

    private static double follow(Rule rule, double relative) {
        return switch (rule) {
            case SQRT -> Math.sqrt(relative);
            case LINEAR -> relative;
        };
    }
}
