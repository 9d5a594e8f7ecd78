package dev.millrace.replay;

import dev.millrace.replay.Verifier.Verdict;
import dev.millrace.schemas.Credit;
import dev.millrace.schemas.Trajectory;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/**
 * Replaces trajectories' rewards by those of a {@link Verifier}, and compares them. Refuses trajectories with rewards
 * per turn or token or of a greedy answer, which one number cannot replace. Thread-safe.
 */
public final class OtherRewards {
    private final Verifier verifier;
    private Comparison comparison = new Comparison(0, 0, 0, 0);

    public OtherRewards(Verifier verifier) {
        this.verifier = verifier;
    }

    public record Comparison(long rollouts, long changed, double sumRecorded, double sumOther) {
        private Comparison plus(double recorded, double other) {
            return new Comparison(
                    rollouts + 1, changed + (recorded == other ? 0 : 1), sumRecorded + recorded, sumOther + other);
        }
    }

    /** @throws IllegalArgumentException if one has finer rewards, see {@link #refusal} */
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

    /** Why one number cannot replace the trajectory's rewards; empty if it can. */
    public static Optional<String> refusal(Trajectory trajectory) {
        Credit credit = trajectory.getCredit();
        boolean isFiner = credit != null
                && (credit.getTurnLevelRewards() != null
                        || credit.getTokenLevelRewards() != null
                        || credit.getGreedyReward() != null);
        return isFiner
                ? Optional.of("rollout " + trajectory.getRolloutId()
                        + " has rewards for its turns or tokens, or one of a greedy answer, and another verifier"
                        + " gives one number, which cannot replace them")
                : Optional.empty();
    }

    private synchronized void count(double recorded, double other) {
        comparison = comparison.plus(recorded, other);
    }

    public synchronized Comparison comparison() {
        return comparison;
    }
}
