package dev.millrace.corrections.weights;

import dev.millrace.corrections.ratio.LogRatio;
import dev.millrace.corrections.ratio.ProximalApproximation;
import dev.millrace.corrections.ratio.RatioKind;
import dev.millrace.corrections.stage.StageFacts;
import dev.millrace.corrections.stage.StageInput;
import dev.millrace.corrections.stage.WeightStage;
import java.util.OptionalDouble;
import java.util.Set;

/**
 * Importance weights, one per token, towards a policy between the sampler and proximal: {@code min(rho^((d - 1) / d), cap)} for
 * a token sampled d versions before, and 1 for one of the current version.
 *
 * <p>A token one version old keeps weight 1; an old one has nearly its whole ratio. The log-linear policy of
 * {@link ProximalApproximation} replaces the numerator, so that fresh tokens bring no variance. The objective's trust
 * region bounds the rest of the gap. Compares proximal with behavior only.
 *
 * <p>Unit: token. Source: A-3PO (arXiv 2512.06547). There the interpolated policy is the anchor of the loss; here it is
 * the numerator of the weights.
 *
 * @param interpolation {@code loglinear}, or {@code linear} in the probabilities
 * @param threshold largest weight, finite, at least 1
 * @param batchNormalize divide weights by their batch mean
 */
public record InterpolatedWeights(ProximalApproximation interpolation, double threshold, boolean batchNormalize)
        implements RatioWeights {
    public InterpolatedWeights {
        if (interpolation == ProximalApproximation.BEHAVIOR) {
            throw new IllegalArgumentException(
                    "interpolation=behavior leaves every weight at 1; choose loglinear or linear, or weights.kind=none");
        }
        Caps.requireThreshold(threshold);
    }

    /** Log-linear, truncated at 2. */
    public static InterpolatedWeights defaults() {
        return new InterpolatedWeights(ProximalApproximation.LOGLINEAR, 2, false);
    }

    @Override
    public String name() {
        return "interpolated";
    }

    @Override
    public Set<StageInput> inputs() {
        return Set.of(StageInput.PROXIMAL, StageInput.BEHAVIOR, StageInput.VERSIONS);
    }

    @Override
    public WeightStage comparing(RatioKind ratio) {
        if (ratio != RatioKind.ANCHOR) {
            throw new IllegalArgumentException(
                    "interpolated weights lie between behavior and proximal, so there are none of "
                            + ratio.target() + "/" + ratio.sampler()
                            + "; take weights.kind=token, or an objective whose anchor is"
                            + " proximal");
        }
        return this;
    }

    @Override
    public OptionalDouble cap() {
        return OptionalDouble.of(threshold);
    }

    @Override
    public WeightMethod method() {
        return new TokenTruncatedWeights(threshold);
    }

    @Override
    public LogRatio ratio(StageFacts facts, RatioKind kind) {
        float[] behavior = facts.vector(StageInput.BEHAVIOR);
        float[] between =
                interpolation.between(facts.versions(), facts.version(), behavior, facts.vector(StageInput.PROXIMAL));
        return LogRatio.of(kind, between, behavior);
    }
}
