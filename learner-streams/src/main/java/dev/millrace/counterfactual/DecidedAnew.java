package dev.millrace.counterfactual;

import dev.millrace.learner.batch.TrainingBatch;
import dev.millrace.learner.batch.TrainingBatch.Member;
import dev.millrace.schemas.BatchEntry;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.VersionSpan;
import dev.millrace.schemas.packed.PackedMask;
import dev.millrace.stages.BatchCorrections;
import dev.millrace.stages.BatchVerdict;
import dev.millrace.stages.CorrectionConfig;
import dev.millrace.topology.batch.AssembledInput;
import java.util.ArrayList;
import java.util.List;

/**
 * Batches as other corrections would have assembled them: the same members in the same order, with masks,
 * advantages and totals of theirs. Importance weights are left out of the trajectories, so that a step makes its own.
 */
final class DecidedAnew {
    private final BatchCorrections corrections;

    DecidedAnew(CorrectionConfig config) {
        this.corrections = new BatchCorrections(config);
    }

    TrainingBatch of(TrainingBatch recorded) {
        return of(recorded, recorded.members().stream().map(Member::trajectory).toList());
    }

    /** @param trajectories that stand in the places of the recorded members */
    TrainingBatch of(TrainingBatch recorded, List<Trajectory> trajectories) {
        if (recorded.members().isEmpty()) {
            return recorded;
        }
        LearnerBatch batch = recorded.batch();
        BatchVerdict verdict = corrections.decide(AssembledInput.of(batch, trajectories));
        List<BatchEntry> entries = new ArrayList<>();
        for (int s = 0; s < trajectories.size(); s++) {
            entries.add(entry(batch.getEntries().get(s), trajectories.get(s), verdict, s));
        }
        LearnerBatch decided = LearnerBatch.newBuilder(batch)
            .setEntries(entries).setStages(verdict.reports()).setTrainedTokens(verdict.tokens().trainedTokens())
            .setEssRatio(verdict.essRatio()).setEssRatioTruncated(verdict.essRatioTruncated())
            .setSecondMoment(verdict.secondMoment()).setStepScale(verdict.stepScale())
            .setStalenessMean(verdict.stalenessMean()).setStalenessMax(verdict.stalenessMax()).build();
        return TrainingBatch.of(decided, trajectories.stream()
            .map(trajectory -> Trajectory.newBuilder(trajectory).setImportanceWeights(null).build()).toList());
    }

    private static BatchEntry entry(BatchEntry recorded, Trajectory trajectory, BatchVerdict verdict, int sequence) {
        int trained = verdict.tokens().trainedTokens(sequence);
        byte[] left = new byte[PackedMask.length(trajectory.getMask())];
        verdict.tokens().copyMask(verdict.tokens().start(sequence), left, 0, left.length);
        return BatchEntry.newBuilder(recorded).setReward(trajectory.getReward())
            .setOldestVersion(trajectory.getVersionSpans().stream().mapToLong(VersionSpan::getVersion).min().orElseThrow())
            .setAdvantage(verdict.advantages()[sequence]).setTrainedTokens(trained)
            .setMask(PackedMask.of(left)).setMaskedBy(verdict.maskedBy()[sequence]).build();
    }
}
