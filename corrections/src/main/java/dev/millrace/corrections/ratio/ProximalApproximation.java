package dev.millrace.corrections.ratio;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.staleness.BatchVersions;
import dev.millrace.corrections.staleness.VersionSpan;
import java.util.Arrays;

/**
 * Approximates the log-probs of the proximal policy, assumed to be one version before the current one. Inputs are the
 * log-probs of the behavior and the current policy and the version {@code v} that sampled each token.
 *
 * <p>The share of the current policy is {@code a = (currentVersion - 1 - v) / (currentVersion - v)}: 0 for tokens of
 * the proximal version itself, towards 1 for old ones. On tokens of the current version the share is 0.
 *
 * <p>Unit: token. Source: A-3PO (arXiv 2512.06547) and AReaL {@code compute_prox_logp_approximations}, commit
 * 4aef98d. AReaL treats a token that is newer than the current version as having share 0; here it is refused. Its
 * linear form adds 1e-10 to the probability, so that nothing falls below -23; here it does not, see {@link
 * #referenceLinear}.
 */
public enum ProximalApproximation {
    /** {@code (1 - a) behavior + a current}: the geometric mean of the probabilities. */
    LOGLINEAR {
        @Override
        double at(double behavior, double current, double share) {
            return behavior + share * (current - behavior);
        }
    },
    /** {@code log((1 - a) e^behavior + a e^current)}: the mean of the probabilities. */
    LINEAR {
        @Override
        double at(double behavior, double current, double share) {
            if (share == 0.0) {
                return behavior;
            }
            double larger = Math.max(behavior, current);
            return larger + Math.log((1.0 - share) * Math.exp(behavior - larger) + share * Math.exp(current - larger));
        }
    },
    /** Unchanged {@code behavior}: no approximation, for comparison. */
    BEHAVIOR {
        @Override
        double at(double behavior, double current, double share) {
            return behavior;
        }
    };

    /** Stands for a version where the policy sampled nothing: prompt and tool tokens. */
    public static final int NOT_SAMPLED = -1;

    private static final double REFERENCE_EPSILON = 1e-10;

    abstract double at(double behavior, double current, double share);

    /**
     * Overwrites {@code proximal}, one log-prob per packed token, context included; behavior where nothing was
     * sampled.
     *
     * @param versions version that sampled each packed token, or {@link #NOT_SAMPLED}
     * @throws IllegalArgumentException if an array has another length than the batch, a trained token has no version,
     *     or a token is newer than {@code currentVersion}
     * @throws dev.millrace.corrections.NonFiniteLogProbException naming a trained token's sequence and token
     */
    public void compute(
            TokenBatch batch, float[] behavior, float[] current, int[] versions, int currentVersion, float[] proximal) {
        batch.requireFinite("behavior log-probs", behavior);
        batch.requireFinite("current log-probs", current);
        batch.requireLength("versions", versions.length);
        batch.requireLength("proximal log-probs", proximal.length);
        for (int s = 0; s < batch.sequenceCount(); s++) {
            for (int t = batch.start(s); t < batch.end(s); t++) {
                if (versions[t] > currentVersion || versions[t] < 0 && batch.isTrained(t)) {
                    throw new IllegalArgumentException("a trained token needs a version not newer than the current one:"
                            + " sequence=" + s + ", token=" + (t - batch.start(s)) + ", version=" + versions[t]
                            + ", currentVersion=" + currentVersion);
                }
                proximal[t] = (float) at(behavior[t], current[t], currentShare(versions[t], currentVersion));
            }
        }
    }

    /** One log-prob per packed token, by the version spans of a batch; behavior where nothing was sampled. */
    public float[] between(BatchVersions sampledBy, long currentVersion, float[] behavior, float[] current) {
        TokenBatch batch = sampledBy.batch();
        int[] versions = new int[batch.tokenCount()];
        Arrays.fill(versions, NOT_SAMPLED);
        for (int s = 0; s < batch.sequenceCount(); s++) {
            for (VersionSpan span : sampledBy.spans(s)) {
                Arrays.fill(
                        versions,
                        batch.start(s) + span.start(),
                        batch.start(s) + span.end(),
                        Math.toIntExact(span.version()));
            }
        }
        float[] proximal = new float[batch.tokenCount()];
        compute(batch, behavior, current, versions, Math.toIntExact(currentVersion), proximal);
        return proximal;
    }

    /** The share of the current policy for a token of {@code version}; 0 where nothing was sampled. */
    public static double currentShare(int version, int currentVersion) {
        double behind = (double) currentVersion - version;
        return version < 0 || behind <= 0.0 ? 0.0 : Math.max(0.0, (behind - 1.0) / behind);
    }

    /** AReaL's linear form of one token, {@code log(p + 1e-10)}; for comparison with it only. */
    public static double referenceLinear(double behavior, double current, double share) {
        return Math.log((1.0 - share) * Math.exp(behavior) + share * Math.exp(current) + REFERENCE_EPSILON);
    }
}
