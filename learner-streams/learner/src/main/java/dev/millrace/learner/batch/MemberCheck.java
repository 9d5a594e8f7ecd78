package dev.millrace.learner.batch;

import dev.millrace.learner.batch.TrainingBatch.Member;
import dev.millrace.schemas.BatchEntry;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.packed.PackedFloats;
import dev.millrace.schemas.packed.PackedInts;
import dev.millrace.schemas.packed.PackedMask;
import dev.millrace.schemas.rollout.CreditCheck;
import dev.millrace.schemas.rollout.RefusedException;
import dev.millrace.schemas.rollout.TrajectoryCheck;
import java.nio.ByteBuffer;

/**
 * Holds an entry of a batch against the trajectory it points at.
 *
 * <p>Assembler and learner are two programs. Where they disagree about what is trained on, training would go on with
 * wrong numbers and no word; it stops here instead.
 */
final class MemberCheck {
    private final LearnerBatch batch;

    MemberCheck(LearnerBatch batch) {
        this.batch = batch;
    }

    void require(Member member) {
        requireSame(member);
        requireVectors(member);
        requireMask(member);
        requireNumbers(member);
    }

    void requireTotals(long trainedTokens) {
        if (trainedTokens != batch.getTrainedTokens()) {
            throw new InconsistentBatchException("batch " + batch.getBatchId() + " declares " + batch.getTrainedTokens()
                    + " trained tokens, its entries have " + trainedTokens);
        }
        if (!(batch.getStepScale() >= 0 && batch.getStepScale() < Double.POSITIVE_INFINITY)) {
            throw new InconsistentBatchException("batch " + batch.getBatchId()
                    + " has a step scale that is not finite and at least 0: " + batch.getStepScale());
        }
    }

    private void requireSame(Member member) {
        Trajectory trajectory = member.trajectory();
        if (!trajectory.getRunId().equals(batch.getRunId())
                || trajectory.getEpoch() != batch.getEpoch()
                || !trajectory.getPolicyId().equals(batch.getPolicyId())
                || !trajectory.getRolloutId().equals(member.entry().getRolloutId())) {
            throw inconsistent(
                    member,
                    "references rollout " + trajectory.getRolloutId() + " of run " + trajectory.getRunId() + " epoch "
                            + trajectory.getEpoch() + " policy " + trajectory.getPolicyId());
        }
    }

    private void requireVectors(Member member) {
        Trajectory trajectory = member.trajectory();
        if (PackedInts.length(trajectory.getPromptTokens()) == 0) {
            throw inconsistent(member, "has no prompt token to condition its first response token");
        }
        int tokens = PackedInts.length(trajectory.getResponseTokens());
        requireLength(member, "mask of the trajectory", PackedMask.length(trajectory.getMask()), tokens);
        requireLength(member, "mask", PackedMask.length(member.mask()), tokens);
        requireLength(member, "behavior log-probs", PackedFloats.length(trajectory.getBehaviorLogProbs()), tokens);
        if (trajectory.getOldLogProbs() != null) {
            requireLength(member, "old log-probs", PackedFloats.length(trajectory.getOldLogProbs()), tokens);
        }
        requireLength(member, "proximal log-probs", PackedFloats.length(trajectory.getProximalLogProbs()), tokens);
        if (member.entry().getWeights() != null) {
            requireLength(
                    member,
                    "importance weights",
                    PackedFloats.length(member.entry().getWeights()),
                    tokens);
        }
    }

    private void requireLength(Member member, String vector, int length, int tokens) {
        if (length != tokens) {
            throw inconsistent(member, "has " + tokens + " response tokens and " + length + " values of " + vector);
        }
    }

    private void requireMask(Member member) {
        ByteBuffer allowed = member.trajectory().getMask();
        for (int t = 0; t < PackedMask.length(member.mask()); t++) {
            byte trained = PackedMask.get(member.mask(), t);
            if (trained != 0 && (trained != 1 || PackedMask.get(allowed, t) != 1)) {
                throw inconsistent(
                        member,
                        "has the mask " + trained + " at token " + t + ", where the trajectory's own is "
                                + PackedMask.get(allowed, t));
            }
        }
        int trained = TrainingBatch.trainedTokens(member.mask());
        if (trained != member.entry().getTrainedTokens()) {
            throw inconsistent(
                    member,
                    "declares " + member.entry().getTrainedTokens() + " trained tokens, its mask has " + trained);
        }
    }

    private void requireNumbers(Member member) {
        BatchEntry entry = member.entry();
        if (!Float.isFinite((float) entry.getReward()) || !Float.isFinite((float) entry.getAdvantage())) {
            throw inconsistent(
                    member,
                    "has the reward " + entry.getReward() + " and the advantage " + entry.getAdvantage()
                            + "; both must be finite in single precision");
        }
        try {
            TrajectoryCheck.require(member.trajectory(), 0);
            CreditCheck.require(entry.getCredit(), -1, PackedMask.length(member.mask()), Double.MAX_VALUE);
        } catch (RefusedException e) {
            throw inconsistent(member, "cannot be trained on: " + e.getMessage());
        }
    }

    private InconsistentBatchException inconsistent(Member member, String what) {
        return new InconsistentBatchException("batch " + batch.getBatchId() + ", rollout "
                + member.entry().getRolloutId() + " at partition "
                + member.entry().getPartition() + " offset " + member.entry().getOffset() + ": " + what);
    }
}
