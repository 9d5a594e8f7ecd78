package dev.millrace.stages;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.stage.Decision;
import dev.millrace.corrections.stage.StageFacts;
import dev.millrace.corrections.stage.StageInput;
import dev.millrace.corrections.staleness.StalenessLimit;
import dev.millrace.corrections.staleness.StalenessSummary;
import dev.millrace.schemas.BatchEntry;
import dev.millrace.schemas.Credit;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.StageReport;
import dev.millrace.schemas.packed.PackedFloats;
import dev.millrace.schemas.packed.PackedMask;
import dev.millrace.schemas.run.RunIdentity;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.OptionalDouble;
import org.jspecify.annotations.Nullable;

/** The record of a batch: its members, and what the stages decided about them. */
public final class DecidedBatch {
    private DecidedBatch() {}

    /**
     * Identity of a batch, and when it was assembled.
     *
     * @param version newest at that time; the facts have the version at which the batch's step is expected to start
     */
    public record Assembly(RunIdentity run, long batchId, long atMs, long version) {

        public static Assembly of(LearnerBatch batch) {
            return new Assembly(
                    new RunIdentity(batch.getRunId(), batch.getEpoch(), batch.getPolicyId()),
                    batch.getBatchId(),
                    batch.getAssembledAtMs(),
                    batch.getAssembledVersion());
        }
    }

    /**
     * Builds the batch record.
     *
     * @param members one for each sequence: its identity, offset, reward and oldest version; other fields are ignored
     * @param choice reports on the choice of members, placed before the stage reports
     * @param recordWeights whether to write importance weights, for readers that cannot compute them
     */
    public static LearnerBatch of(
            Assembly assembly,
            List<BatchEntry> members,
            List<StageReport> choice,
            StageFacts facts,
            Decision decision,
            boolean recordWeights) {
        List<BatchEntry> entries = new ArrayList<>(members.size());
        for (int s = 0; s < members.size(); s++) {
            entries.add(entry(members.get(s), s, facts, decision, recordWeights));
        }
        List<StageReport> reports = new ArrayList<>(choice);
        reports.addAll(StageReports.of(decision.outcomes()));
        StalenessSummary staleness = new StalenessLimit(Long.MAX_VALUE)
                .maskTokens(
                        facts.versions(),
                        facts.version(),
                        new byte[facts.tokens().tokenCount()]);
        return new LearnerBatch(
                assembly.run().runId(),
                assembly.run().epoch(),
                assembly.run().policyId(),
                assembly.batchId(),
                assembly.version(),
                facts.version(),
                entries,
                reports,
                (long) decision.left().trainedTokens(),
                orNull(decision.essRatio()),
                orNull(decision.essRatioTruncated()),
                orNull(decision.secondMoment()),
                decision.stepScale(),
                staleness.mean(),
                staleness.oldest(),
                assembly.atMs());
    }

    private static @Nullable Double orNull(OptionalDouble figure) {
        return figure.isPresent() ? figure.getAsDouble() : null;
    }

    /** Writes a mask only where it differs from the trajectory's. */
    private static BatchEntry entry(
            BatchEntry member, int sequence, StageFacts facts, Decision decision, boolean recordWeights) {
        TokenBatch left = decision.left();
        int trained = left.trainedTokens(sequence);
        ByteBuffer mask = null;
        if (trained != facts.tokens().trainedTokens(sequence)) {
            byte[] bytes = new byte[left.length(sequence)];
            left.copyMask(left.start(sequence), bytes, 0, bytes.length);
            mask = PackedMask.of(bytes);
        }
        return new BatchEntry(
                member.getRolloutId(),
                member.getGroupId(),
                member.getPartition(),
                member.getOffset(),
                member.getRolloutPartition(),
                member.getRolloutOffset(),
                member.getReward(),
                decision.advantages()[sequence],
                member.getOldestVersion(),
                trained,
                mask,
                decision.maskedBy()[sequence],
                decision.tokenAdvantages()
                        .map(perToken -> Credit.newBuilder()
                                .setTokenLevelAdvantages(ofSequence(perToken, left, sequence))
                                .build())
                        .orElse(null),
                recordWeights ? ofSequence(decision.weights(), left, sequence) : null,
                facts.has(StageInput.BASELINES)
                        ? BaselineMemory.recorded(facts.baselines().get(sequence))
                        : null);
    }

    private static ByteBuffer ofSequence(float[] packed, TokenBatch tokens, int sequence) {
        return PackedFloats.of(Arrays.copyOfRange(packed, tokens.start(sequence), tokens.end(sequence)));
    }
}
