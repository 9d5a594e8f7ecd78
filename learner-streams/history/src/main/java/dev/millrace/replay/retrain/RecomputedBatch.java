package dev.millrace.replay.retrain;

import dev.millrace.corrections.algorithm.Algorithm;
import dev.millrace.corrections.stage.StageFacts;
import dev.millrace.learner.batch.TrainingBatch;
import dev.millrace.replay.RebuiltMemory;
import dev.millrace.schemas.BatchEntry;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.VersionSpan;
import dev.millrace.stages.DecidedBatch;
import dev.millrace.stages.RecordedFacts;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/** Batches under another algorithm: same members, other masks, advantages and totals. */
final class RecomputedBatch {
    private final Algorithm algorithm;
    private final Optional<RebuiltMemory> memory;

    /** @param memory of the algorithm's advantage, where the batches have not recorded its baselines; batches then come in order */
    RecomputedBatch(Algorithm algorithm, Optional<RebuiltMemory> memory) {
        this.algorithm = algorithm;
        this.memory = memory;
    }

    /** @param trajectories in place of the recorded members */
    TrainingBatch of(TrainingBatch recorded, List<Trajectory> trajectories) {
        if (recorded.members().isEmpty()) {
            return recorded;
        }
        LearnerBatch batch = recorded.batch();
        StageFacts known = RecordedFacts.of(batch, trajectories, algorithm.inputs());
        StageFacts facts = memory.map(rebuilt -> rebuilt.next(batch, known)).orElse(known);
        List<BatchEntry> members = new ArrayList<>();
        for (int s = 0; s < trajectories.size(); s++) {
            members.add(member(batch.getEntries().get(s), trajectories.get(s)));
        }
        LearnerBatch decided = DecidedBatch.of(
                DecidedBatch.Assembly.of(batch), members, List.of(), facts, algorithm.decide(facts), false);
        return TrainingBatch.of(decided, trajectories);
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
