package dev.millrace.corrections.ratio;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.proximal.ProximalApproximation;
import org.jspecify.annotations.Nullable;

/**
 * The log-probs of the policies that touch one batch, each under its name, and every ratio between them.
 *
 * <p>One log-prob per packed token and policy. The arrays are the caller's and are not copied; they must not change
 * while a ratio is in use. A policy may be unknown: asking for a ratio that needs it is refused with its name, so
 * that no ratio is formed from a vector that stands in for another without saying so. Immutable.
 */
public final class PolicyLogProbs {
    private final RatioMode mode;
    private final float[] behavior;
    private final float @Nullable [] old;
    private final float @Nullable [] proximal;
    private final float @Nullable [] current;

    private PolicyLogProbs(
            RatioMode mode,
            float[] behavior,
            float @Nullable [] old,
            float @Nullable [] proximal,
            float @Nullable [] current) {
        this.mode = mode;
        this.behavior = behavior;
        this.old = old;
        this.proximal = proximal;
        this.current = current;
    }

    /** Four policies, of which only behavior is known yet. */
    public static PolicyLogProbs decoupled(float[] behavior) {
        return new PolicyLogProbs(RatioMode.DECOUPLED, behavior, null, null, null);
    }

    /** Two policies: old and proximal are behavior. */
    public static PolicyLogProbs bypass(float[] behavior, float[] current) {
        return new PolicyLogProbs(RatioMode.BYPASS, behavior, behavior, behavior, current);
    }

    /**
     * Two policies and what lies between them: old is behavior, proximal is taken {@code (d - 1) / d} of the way from
     * behavior to current in log space, for tokens sampled {@code d} versions before {@code currentVersion}.
     *
     * <p>Allocates the proximal log-probs. Source: A-3PO (arXiv 2512.06547), see {@link ProximalApproximation}.
     *
     * @param versions version that sampled each packed token
     */
    public static PolicyLogProbs interpolated(
            TokenBatch batch, float[] behavior, float[] current, int[] versions, int currentVersion) {
        float[] proximal = new float[batch.tokenCount()];
        ProximalApproximation.LOGLINEAR.compute(batch, behavior, current, versions, currentVersion, proximal);
        return new PolicyLogProbs(RatioMode.INTERPOLATED, behavior, behavior, proximal, current);
    }

    /** The same with the log-probs of the learner's engine at the version that sampled; decoupled only. */
    public PolicyLogProbs withOld(float[] oldLogProbs) {
        requireDecoupled("old");
        return new PolicyLogProbs(mode, behavior, oldLogProbs, proximal, current);
    }

    /** The same with the log-probs at the version the batch is formed at; decoupled only. */
    public PolicyLogProbs withProximal(float[] proximalLogProbs) {
        requireDecoupled("proximal");
        return new PolicyLogProbs(mode, behavior, old, proximalLogProbs, current);
    }

    /** The same with the log-probs of the policy being updated; decoupled only, since the other modes start with it. */
    public PolicyLogProbs withCurrent(float[] currentLogProbs) {
        requireDecoupled("current");
        return new PolicyLogProbs(mode, behavior, old, proximal, currentLogProbs);
    }

    private void requireDecoupled(String policy) {
        if (mode != RatioMode.DECOUPLED) {
            throw new IllegalArgumentException(
                    policy + " log-probs are fixed by mode " + mode + "; only the decoupled mode takes them");
        }
    }

    public RatioMode mode() {
        return mode;
    }

    /**
     * A ratio between two of the policies.
     *
     * @throws IllegalArgumentException naming the policy that is not known
     */
    public LogRatio ratio(RatioKind kind) {
        return LogRatio.of(kind, vector(kind.target(), kind), vector(kind.sampler(), kind));
    }

    private float[] vector(String policy, RatioKind kind) {
        float[] vector = switch (policy) {
            case "behavior" -> behavior;
            case "old" -> old;
            case "proximal" -> proximal;
            case "current" -> current;
            default -> throw new IllegalStateException("no policy of this name: " + policy);
        };
        if (vector == null) {
            throw new IllegalArgumentException("the ratio " + kind.target() + "/" + kind.sampler() + " needs " + policy
                    + " log-probs, which are not known");
        }
        return vector;
    }
}
