package dev.millrace.stages;

import dev.millrace.schemas.BatchEntry;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.StageReport;
import dev.millrace.schemas.packed.PackedMask;
import dev.millrace.schemas.run.RunIdentity;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** The record of a batch: its members, and what the corrections decided about them. */
public final class DecidedBatch {
    private DecidedBatch() {}

    /**
     * The record.
     *
     * @param members one for each sequence: who it is, where it lies, its reward and oldest version; whatever else it says is
     *     of no account
     * @param assembledVersion the newest version when it was assembled; that of the input is the one at which its step is
     *     expected to start
     * @param choice how they were chosen, which stands before what the corrections report
     * @param input what was decided about
     */
    public static LearnerBatch of(
            RunIdentity run,
            long batchId,
            long assembledAtMs,
            long assembledVersion,
            List<BatchEntry> members,
            List<StageReport> choice,
            BatchInput input,
            BatchVerdict verdict) {
        List<BatchEntry> entries = new ArrayList<>(members.size());
        for (int s = 0; s < members.size(); s++) {
            entries.add(entry(members.get(s), s, input, verdict));
        }
        List<StageReport> reports = new ArrayList<>(choice);
        reports.addAll(verdict.reports());
        return new LearnerBatch(
                run.runId(),
                run.epoch(),
                run.policyId(),
                batchId,
                assembledVersion,
                input.currentVersion(),
                entries,
                reports,
                (long) verdict.tokens().trainedTokens(),
                orAbsent(verdict.essRatio()),
                orAbsent(verdict.essRatioTruncated()),
                orAbsent(verdict.secondMoment()),
                verdict.stepScale(),
                verdict.stalenessMean(),
                verdict.stalenessMax(),
                assembledAtMs);
    }

    private static @Nullable Double orAbsent(double value) {
        return Double.isNaN(value) ? null : value;
    }

    /** A mask is written only where it is another than the trajectory's own. */
    private static BatchEntry entry(BatchEntry member, int sequence, BatchInput input, BatchVerdict verdict) {
        int trained = verdict.tokens().trainedTokens(sequence);
        ByteBuffer mask = null;
        if (trained != input.tokens().trainedTokens(sequence)) {
            byte[] left = new byte[input.tokens().length(sequence)];
            verdict.tokens().copyMask(verdict.tokens().start(sequence), left, 0, left.length);
            mask = PackedMask.of(left);
        }
        return new BatchEntry(
                member.getRolloutId(),
                member.getGroupId(),
                member.getPartition(),
                member.getOffset(),
                member.getRolloutPartition(),
                member.getRolloutOffset(),
                member.getReward(),
                verdict.advantages()[sequence],
                member.getOldestVersion(),
                trained,
                mask,
                verdict.maskedBy()[sequence],
                null,
                null);
    }
}
