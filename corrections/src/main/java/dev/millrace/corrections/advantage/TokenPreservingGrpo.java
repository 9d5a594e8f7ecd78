package dev.millrace.corrections.advantage;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.stage.StageBatch;
import dev.millrace.corrections.stage.StageInput;
import java.util.Objects;
import java.util.Set;

/**
 * GRPO with outcome and process rewards normalised separately and the process rewards kept at their tokens:
 * {@code A_t = a · (R − mean R)/(std R + 1e-6) + b · Σ_{u >= t} (r_u − mean r)/(std r + 1e-6)}.
 *
 * <p>Unit: token, against its group. Outcome rewards {@code R} are normalised over the group's sequences, process
 * rewards {@code r} over all rewarded tokens of the group, each with the sample's deviation; a token is credited with
 * the normalised process rewards from itself on. Summing everything into one number per sequence first would lose which
 * step earned it, and normalising the sum would let the wider of the two scales decide. A group with one outcome keeps
 * it undivided, one with a single process reward likewise.
 *
 * <p>Centring gives a trajectory with more rewarded steps more subtracted means: where process rewards are mostly
 * positive this favours stopping early. Keep {@code b} small, or reward every trajectory equally often.
 *
 * <p>Source: process supervision of Shao et al. 2024 (arXiv 2402.03300, section 4.1.3), with the separation of scales
 * of GDPO (arXiv 2601.05242). Neither defines the sum of the two; this reading weighs them and adds them per token.
 *
 * @param outcomeWeight a; finite
 * @param processWeight b; finite
 * @param credit positions of the process rewards
 */
public record TokenPreservingGrpo(double outcomeWeight, double processWeight, Credit credit) implements TokenEstimator {
    public TokenPreservingGrpo {
        if (!Double.isFinite(outcomeWeight) || !Double.isFinite(processWeight)) {
            throw new IllegalArgumentException(
                    "outcome_weight and process_weight must be finite: " + outcomeWeight + " and " + processWeight);
        }
        if (credit == Credit.OUTCOME) {
            throw new IllegalArgumentException(
                    "credit must be turn or token, where the process rewards stand; for outcome"
                            + " rewards alone take grpo: outcome");
        }
        Objects.requireNonNull(credit, "credit");
    }

    /** Rewards of turns at half the weight of outcomes. */
    public static TokenPreservingGrpo defaults() {
        return new TokenPreservingGrpo(1, 0.5, Credit.TURN);
    }

    @Override
    public Set<StageInput> inputs() {
        return credit.inputs();
    }

    @Override
    public float[] perToken(StageBatch batch) {
        float[] process = new float[batch.facts().tokens().tokenCount()];
        byte[] rewarded = credit.process(batch, process);
        return compute(batch.facts().tokens(), batch.rewards(), process, rewarded);
    }

    /**
     * One advantage per packed token, 0 at context tokens.
     *
     * @param outcomes one reward per sequence
     * @param processRewards per packed token, read where {@code rewarded} says so
     * @param rewarded per packed token, 1 where there is a process reward: none and 0 are different things
     * @throws IllegalArgumentException if a context token is rewarded: credit would be lost there
     */
    public float[] compute(TokenBatch batch, double[] outcomes, float[] processRewards, byte[] rewarded) {
        double[] outcomePart = new Grpo(true).perSequence(batch, outcomes);
        batch.requireLength("process rewards", processRewards.length);
        batch.requireLength("rewarded", rewarded.length);
        GroupMoments moments = processMoments(batch, processRewards, rewarded);
        float[] advantages = new float[batch.tokenCount()];
        for (int s = 0; s < batch.sequenceCount(); s++) {
            int group = batch.group(s);
            boolean alone = moments.size(group) == 1;
            double mean = alone ? 0.0 : moments.mean(group);
            double scale = alone ? 1.0 : moments.standardDeviation(group) + Grpo.EPSILON;
            double toGo = 0.0;
            for (int t = batch.end(s) - 1; t >= batch.start(s); t--) {
                toGo += rewarded[t] != 0 ? (processRewards[t] - mean) / scale : 0.0;
                if (batch.isTrained(t)) {
                    advantages[t] = (float) (outcomeWeight * outcomePart[s] + processWeight * toGo);
                }
            }
        }
        return advantages;
    }

    /** Moments of the process rewards over all rewarded tokens of each group. */
    private static GroupMoments processMoments(TokenBatch batch, float[] rewards, byte[] rewarded) {
        int count = 0;
        for (int t = 0; t < rewarded.length; t++) {
            count += rewarded[t] != 0 ? 1 : 0;
        }
        double[] values = new double[count];
        int[] groups = new int[count];
        int n = 0;
        for (int s = 0; s < batch.sequenceCount(); s++) {
            for (int t = batch.start(s); t < batch.end(s); t++) {
                if (rewarded[t] != 0) {
                    requireUsable(batch, s, t, rewards[t]);
                    values[n] = rewards[t];
                    groups[n++] = batch.group(s);
                }
            }
        }
        return GroupMoments.of(groups, batch.groupCount(), values);
    }

    private static void requireUsable(TokenBatch batch, int s, int t, float reward) {
        String where = "sequence=" + s + ", token=" + (t - batch.start(s)) + ", reward=" + reward;
        if (!batch.isTrained(t)) {
            throw new IllegalArgumentException("a process reward must stand at a trained token: " + where);
        }
        if (!Float.isFinite(reward)) {
            throw new IllegalArgumentException("process rewards must be finite: " + where);
        }
    }
}
