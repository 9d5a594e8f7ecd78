package dev.millrace.learner.step;

import dev.millrace.corrections.algorithm.Algorithm;
import dev.millrace.corrections.stage.Decision;
import dev.millrace.corrections.stage.Stage;
import dev.millrace.corrections.stage.StageBatch;
import dev.millrace.corrections.stage.StageFacts;
import dev.millrace.corrections.stage.StageOutcome;
import dev.millrace.corrections.staleness.StalenessDamping;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.StageReport;
import dev.millrace.stages.StageReports;
import java.util.ArrayList;
import java.util.List;
import java.util.OptionalDouble;
import org.jspecify.annotations.Nullable;

/**
 * A batch's own decisions, as the step takes them that trusts the record: masks, advantages and step scale are the batch's,
 * importance weights too where it has them, else made by the algorithm's rule of the recorded log-probs. What has become staler
 * than the limit since the batch was made is masked, for that bound holds where a step starts.
 */
final class RecordedDecision {
    private final Algorithm algorithm;

    RecordedDecision(Algorithm algorithm) {
        this.algorithm = algorithm;
    }

    /**
     * @param facts with the recorded log-probs
     * @param version that the step starts from
     */
    StepDecision of(StepMembers members, StageFacts facts, long version) {
        LearnerBatch batch = members.batch().batch();
        LateStaleness late = LateStaleness.of(members, algorithm.staleness().maxVersions(), version);
        Decision weighed = StageBatch.decide(
                facts.toBuilder()
                        .versions(expectedVersion(batch), members.versions())
                        .build(),
                weighing());
        @Nullable String[] maskedBy = late.maskedBy();
        if (maskedBy == null) {
            maskedBy = new String[members.count()];
            for (int s = 0; s < maskedBy.length; s++) {
                maskedBy[s] = members.entry(s).getMaskedBy();
            }
        }
        List<StageReport> reports = new ArrayList<>(late.stages(batch.getStages()));
        List<StageOutcome> weighing =
                weighed.outcomes().subList(1, weighed.outcomes().size()); // who is left out stands
        for (StageReport report : StageReports.of(weighing)) {
            reports.removeIf(before -> before.getStage().equals(report.getStage()));
            reports.add(report);
        }
        return new StepDecision(
                new Decision(
                        late.left(),
                        members.rewards(),
                        members.recordedAdvantages(),
                        members.recordedTokenAdvantages(),
                        members.recordedWeights().orElse(weighed.weights()),
                        maskedBy,
                        weighed.outcomes(),
                        present(batch.getEssRatio()),
                        present(batch.getEssRatioTruncated()),
                        present(batch.getSecondMoment()),
                        batch.getStepScale()),
                members.old(),
                members.proximal(),
                List.copyOf(reports));
    }

    /** That at which the batch expected its step to start, from which its own stages counted. */
    private static long expectedVersion(LearnerBatch batch) {
        return batch.getExpectedVersion() < 0 ? batch.getAssembledVersion() : batch.getExpectedVersion();
    }

    private List<Stage> weighing() {
        List<Stage> stages =
                new ArrayList<>(List.of(algorithm.missingOldLogProbs().stage()));
        algorithm
                .objective()
                .weightsCompare()
                .map(algorithm.weights()::comparing)
                .ifPresent(stages::add);
        if (algorithm.staleness().halfLifeVersions() > 0) {
            stages.add(new StalenessDamping(algorithm.staleness().halfLifeVersions()));
        }
        return stages;
    }

    private static OptionalDouble present(@Nullable Double figure) {
        return figure == null ? OptionalDouble.empty() : OptionalDouble.of(figure);
    }
}
