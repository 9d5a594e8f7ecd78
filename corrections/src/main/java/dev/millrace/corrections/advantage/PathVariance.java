package dev.millrace.corrections.advantage;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.ratio.RatioKind;
import dev.millrace.corrections.stage.StageBatch;
import dev.millrace.corrections.stage.StageInput;
import dev.millrace.corrections.weights.TokenTruncatedWeights;
import java.util.HashSet;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * A stand-in for the variance of the score along a sequence: {@code W_t = Σ_{j <= t} ρ_j² (1 − 2 π_j + Σ_v π_v²)} over
 * trained tokens, the squared distance of the sampled token's indicator from the distribution, with importance weights
 * squared; and the rewards to go.
 */
final class PathVariance {
    private static final double EPSILON = 1e-8;

    final double[] cumulative;
    final double[] returns;

    static void requireCap(double cap) {
        if (cap != 0 && !(cap >= 1 && cap < Double.POSITIVE_INFINITY)) {
            throw new IllegalArgumentException(
                    "importance_cap must be finite and at least 1, or 0 for no importance weights: " + cap);
        }
    }

    static Set<StageInput> inputs(double cap, Credit credit) {
        Set<StageInput> inputs = new HashSet<>(credit.inputs());
        inputs.add(StageInput.PROXIMAL);
        inputs.add(StageInput.SQUARED_PROBABILITIES);
        if (cap > 0) {
            inputs.add(StageInput.BEHAVIOR);
        }
        return Set.copyOf(inputs);
    }

    /** The truncated token weights of proximal over behavior; null where there are to be none. */
    static float @Nullable [] weights(StageBatch batch, double cap) {
        if (cap == 0) {
            return null;
        }
        float[] weights = new float[batch.facts().tokens().tokenCount()];
        new TokenTruncatedWeights(cap)
                .compute(batch.facts().tokens(), batch.facts().ratio(RatioKind.ANCHOR), weights);
        return weights;
    }

    /**
     * @param sumSquaredProbs per token, the sum of the squares of all probabilities of the vocabulary
     * @param weights importance weights, or null
     */
    PathVariance(
            TokenBatch batch,
            float[] rewards,
            float[] oldLogProbs,
            float[] sumSquaredProbs,
            float @Nullable [] weights) {
        batch.requireFinite("rewards", rewards);
        batch.requireFinite("old log-probs", oldLogProbs);
        batch.requireFinite("sums of squared probabilities", sumSquaredProbs);
        if (weights != null) {
            batch.requireFinite("importance weights", weights);
        }
        cumulative = new double[batch.tokenCount()];
        returns = new double[batch.tokenCount()];
        for (int s = 0; s < batch.sequenceCount(); s++) {
            double path = 0.0;
            for (int t = batch.start(s); t < batch.end(s); t++) {
                if (batch.isTrained(t)) {
                    double weight = weights == null ? 1.0 : weights[t];
                    path += (1 - 2 * Math.exp(oldLogProbs[t]) + sumSquaredProbs[t]) * weight * weight;
                }
                cumulative[t] = path;
            }
            double toGo = 0.0;
            for (int t = batch.end(s) - 1; t >= batch.start(s); t--) {
                toGo += batch.isTrained(t) ? rewards[t] : 0.0;
                returns[t] = toGo;
            }
        }
    }

    /** Rewards to go as the floats that an estimator returns. */
    float[] toGo() {
        float[] toGo = new float[returns.length];
        for (int t = 0; t < toGo.length; t++) {
            toGo[t] = (float) returns[t];
        }
        return toGo;
    }

    /** Whether a trained token's baseline is 0, given how many trajectories of its group are trained at its place. */
    interface Free {
        boolean of(int sequence, int place, int alive);
    }

    /**
     * Sets the advantages of a group: the reward to go less its mean over the group at the same place, weighed by the variance.
     *
     * @param counted whether a token's place counts the trained tokens before it; else all tokens before it
     */
    void subtractBaselines(TokenBatch batch, int[] members, boolean counted, Free free, float[] advantages) {
        int length = 0;
        for (int s : members) {
            length = Math.max(length, batch.length(s));
        }
        double[] weighted = new double[length];
        double[] total = new double[length];
        int[] alive = new int[length];
        for (int s : members) {
            int place = 0;
            for (int t = batch.start(s); t < batch.end(s); t++) {
                if (batch.isTrained(t)) {
                    weighted[place] += returns[t] * cumulative[t];
                    total[place] += cumulative[t];
                    alive[place]++;
                }
                place += counted ? batch.trained(t) : 1;
            }
        }
        for (int s : members) {
            int place = 0;
            for (int t = batch.start(s); t < batch.end(s); t++) {
                if (batch.isTrained(t)) {
                    double baseline =
                            free.of(s, place, alive[place]) ? 0.0 : weighted[place] / (total[place] + EPSILON);
                    advantages[t] = (float) (returns[t] - baseline);
                }
                place += counted ? batch.trained(t) : 1;
            }
        }
    }
}
