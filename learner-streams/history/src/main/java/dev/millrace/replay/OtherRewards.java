package dev.millrace.replay;

import dev.millrace.replay.Verifier.Verdict;
import dev.millrace.schemas.Credit;
import dev.millrace.schemas.Trajectory;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/**
 * Gives trajectories the rewards that a {@link Verifier} finds, and counts how these compare with the recorded ones.
 *
 * <p>A verifier says one number for a rollout. Where the record has rewards for its turns or tokens, or one of a greedy answer, that number
 * cannot take their place, and the trajectory is refused. Thread-safe.
 */
public final class OtherRewards {
    private final Verifier verifier;
    private Comparison comparison = new Comparison(0, 0, 0, 0);

    public OtherRewards(Verifier verifier) {
        this.verifier = verifier;
    }

    /**
     * How rewards compare.
     *
     * @param rollouts that were judged
     * @param changed of them whose reward is another number
     * @param sumRecorded sum of the recorded rewards
     * @param sumOther sum of the others
     */
    public record Comparison(long rollouts, long changed, double sumRecorded, double sumOther) {
        private Comparison plus(double recorded, double other) {
            return new Comparison(
                    rollouts + 1, changed + (recorded == other ? 0 : 1), sumRecorded + recorded, sumOther + other);
        }
    }

    /**
     * New trajectories, the same but for their rewards.
     *
     * @throws IllegalArgumentException if one has finer rewards, see {@link #refusal}
     */
    public List<Trajectory> of(List<Trajectory> recorded) {
        List<Trajectory> rewarded = new ArrayList<>(recorded.size());
        for (Trajectory trajectory : recorded) {
            refusal(trajectory).ifPresent(why -> {
                throw new IllegalArgumentException(why);
            });
            Verdict verdict = verifier.verify(trajectory);
            count(trajectory.getReward(), verdict.reward());
            rewarded.add(Trajectory.newBuilder(trajectory)
                    .setReward(verdict.reward())
                    .setRewardComponents(verdict.components())
                    .build());
        }
        return rewarded;
    }

    /** Why one number cannot take the place of a trajectory's rewards, as a sentence; empty where it can. */
    public static Optional<String> refusal(Trajectory trajectory) {
        Credit credit = trajectory.getCredit();
        boolean isFiner = credit != null
                && (credit.getTurnLevelRewards() != null
                        || credit.getTokenLevelRewards() != null
                        || credit.getGreedyReward() != null);
        return isFiner
                ? Optional.of("rollout " + trajectory.getRolloutId()
                        + " has rewards for its turns or tokens, or one of a greedy answer, and another verifier gives it one"
                        + " number, which cannot take their place")
                : Optional.empty();
    }

    private synchronized void count(double recorded, double other) {
        comparison = comparison.plus(recorded, other);
    }

    /** Of all trajectories so far. */
    public synchronized Comparison comparison() {
        return comparison;
    }
}
