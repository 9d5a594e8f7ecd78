package dev.millrace.replay.retrain;

import dev.millrace.learner.batch.TrainingBatch;
import dev.millrace.learner.batch.TrainingBatch.Member;
import dev.millrace.replay.archive.ArchiveException;
import dev.millrace.schemas.Trajectory;
import java.util.Collection;
import java.util.Optional;

/**
 * External partners of recorded rollouts: {@code rewards}, {@code reference-scores} and {@code teacher-scores}. They
 * cannot be asked about new rollouts, which are refused.
 */
final class ExternalPartners {
    private ExternalPartners() {}

    /**
     * @param areRewarded new rollouts have rewards, so that recorded ones are not needed
     * @throws ArchiveException naming the first rollout that needs a partner
     */
    static void requireNone(Collection<Trajectory> trajectories, boolean areRewarded) {
        for (Trajectory trajectory : trajectories) {
            Optional<String> part = trajectory.getRewardSource() != null && !areRewarded
                    ? Optional.of("has a reward record (topic rewards)")
                    : trajectory.getReferenceLogProbs() != null
                            ? Optional.of("carries log-probs of a reference (topic reference-scores)")
                            : trajectory.getTeacherLogProbs() != null
                                    ? Optional.of("carries log-probs of a teacher (topic teacher-scores)")
                                    : Optional.empty();
            part.ifPresent(what -> {
                throw new ArchiveException("rollout " + trajectory.getRolloutId() + " " + what
                        + ", and its writer cannot score a newly sampled rollout; leave out --live"
                        + (trajectory.getRewardSource() == null
                                ? ""
                                : ", or give their rewards: --rewarder COMMAND, or --rewards with a kind of"
                                        + " reward"));
            });
        }
    }

    /** @throws ArchiveException naming the first rollout with partner rewards */
    static void requireEnvironmentsReward(TrainingBatch batch, String instead) {
        batch.members().stream()
                .map(Member::trajectory)
                .filter(trajectory -> trajectory.getRewardSource() != null)
                .findFirst()
                .ifPresent(rewarded -> {
                    throw new ArchiveException("rollout " + rewarded.getRolloutId()
                            + " has a reward record (topic rewards), and newly sampled rollouts would get the task"
                            + " environment's reward, a different one; "
                            + instead);
                });
    }
}
