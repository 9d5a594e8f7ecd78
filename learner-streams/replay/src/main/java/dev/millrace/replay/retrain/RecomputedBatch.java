package dev.millrace.replay.retrain;

import dev.millrace.learner.batch.TrainingBatch;
import dev.millrace.learner.batch.TrainingBatch.Member;
import dev.millrace.schemas.BatchEntry;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.VersionSpan;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.stages.AssembledInput;
import dev.millrace.stages.BatchCorrections;
import dev.millrace.stages.BatchInput;
import dev.millrace.stages.CorrectionConfig;
import dev.millrace.stages.DecidedBatch;
import java.util.ArrayList;
import java.util.List;

/**
 * Batches as other corrections would have assembled them: the same members in the same order, with masks,
 * advantages and totals of theirs. Importance weights are left out of the trajectories, so that a step makes its own.
 */
final class RecomputedBatch {
    private final BatchCorrections corrections;

    RecomputedBatch(CorrectionConfig config) {
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
        BatchInput input = AssembledInput.of(batch, trajectories);
        List<BatchEntry> members = new ArrayList<>();
        for (int s = 0; s < trajectories.size(); s++) {
            members.add(member(batch.getEntries().get(s), trajectories.get(s)));
        }
        LearnerBatch decided = DecidedBatch.of(
                new RunIdentity(batch.getRunId(), batch.getEpoch(), batch.getPolicyId()),
                batch.getBatchId(),
                batch.getAssembledAtMs(),
                batch.getAssembledVersion(),
                members,
                List.of(),
                input,
                corrections.decide(input));
        return TrainingBatch.of(
                decided,
                trajectories.stream()
                        .map(trajectory -> Trajectory.newBuilder(trajectory)
                                .setImportanceWeights(null)
                                .build())
                        .toList());
    }

    private static BatchEntry member(BatchEntry recorded, Trajectory trajectory) {
        return BatchEntry.newBuilder(recorded)
                .setReward(trajectory.getReward())
                .setOldestVersion(trajectory.getVersionSpans().stream()
                        .mapToLong(VersionSpan::getVersion)
                        .min()
                        .orElseThrow())
                .build();
    }
}
