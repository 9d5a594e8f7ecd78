package dev.millrace.corrections.advantage;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.stage.StageBatch;
import dev.millrace.corrections.stage.StageInput;
import java.util.Set;

/**
 * RL-ZVP's advantage: GRPO's where the rewards of a group differ, and where they are equal, the entropy of each token:
 * {@code α H_t if correct, −α (max_u H_u − H_t) if wrong}.
 *
 * <p>Unit: token, against its group. Where all answers are correct, uncertain tokens are rewarded most; where all are wrong,
 * certain tokens are punished most. The maximum is over the trained tokens of the answer. The entropies are the proximal
 * policy's, in nats, and constants to the gradient. Rewards are compared after shaping; a group of one counts as equal.
 *
 * <p>Source: Le et al. 2025 (arXiv 2509.21880), equation 5.
 *
 * @param alpha advantage of a nat of entropy; finite, above 0
 * @param correctAbove reward, as it came, above which a sequence is correct; finite
 */
public record RlZvp(double alpha, double correctAbove) implements TokenEstimator {
    public RlZvp {
        if (!(alpha > 0 && alpha < Double.POSITIVE_INFINITY)) {
            throw new IllegalArgumentException("alpha must be finite and above 0: " + alpha);
        }
        if (!Double.isFinite(correctAbove)) {
            throw new IllegalArgumentException("correct_above must be finite: " + correctAbove);
        }
    }

    /** A tenth of a reward for a nat; correct is what is rewarded with more than a half. */
    public static RlZvp defaults() {
        return new RlZvp(0.1, 0.5);
    }

    @Override
    public Set<StageInput> inputs() {
        return Set.of(StageInput.ENTROPIES);
    }

    @Override
    public float[] perToken(StageBatch batch) {
        TokenBatch tokens = batch.facts().tokens();
        double[] contrasted = new Grpo(true).perSequence(tokens, batch.rewards());
        boolean[] differ = differ(tokens, batch.rewards());
        float[] entropies = batch.facts().vector(StageInput.ENTROPIES);
        float[] advantages = new float[tokens.tokenCount()];
        for (int s = 0; s < tokens.sequenceCount(); s++) {
            boolean correct = batch.facts().rewards()[s] > correctAbove;
            double most = correct ? 0 : most(tokens, s, entropies);
            for (int t = tokens.start(s); t < tokens.end(s); t++) {
                if (tokens.isTrained(t)) {
                    advantages[t] = (float) (differ[tokens.group(s)] ? contrasted[s] : alpha * (entropies[t] - most));
                }
            }
        }
        return advantages;
    }

    /** Returns whether the rewards of each group differ: a deviation would round. */
    private static boolean[] differ(TokenBatch tokens, double[] rewards) {
        boolean[] differ = new boolean[tokens.groupCount()];
        int[] first = new int[tokens.groupCount()];
        for (int s = tokens.sequenceCount() - 1; s >= 0; s--) {
            first[tokens.group(s)] = s;
        }
        for (int s = 0; s < tokens.sequenceCount(); s++) {
            differ[tokens.group(s)] |= rewards[s] != rewards[first[tokens.group(s)]];
        }
        return differ;
    }

    private static double most(TokenBatch tokens, int s, float[] entropies) {
        double most = Double.NEGATIVE_INFINITY;
        for (int t = tokens.start(s); t < tokens.end(s); t++) {
            if (tokens.isTrained(t)) {
                most = Math.max(most, entropies[t]);
            }
        }
        return most;
    }
}
