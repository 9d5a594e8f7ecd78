package dev.millrace.learner.step;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.algorithm.Algorithm;
import dev.millrace.corrections.stage.Decision;
import dev.millrace.corrections.stage.Stage;
import dev.millrace.corrections.stage.StageBatch;
import dev.millrace.corrections.stage.StageFacts;
import dev.millrace.corrections.stage.StageOutcome;
import dev.millrace.corrections.staleness.StalenessDamping;
import dev.millrace.corrections.staleness.StalenessLimit;
import dev.millrace.schemas.BatchEntry;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.StageReport;
import dev.millrace.stages.StageReports;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
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

    /**
     * What a step that trusts the batch's own masks still masks: tokens that are staler than the limit at the version from which
     * it starts. An assembler that counts the batches ahead leaves none.
     *
     * @param left the layout under the batch's masks, less these tokens
     * @param report of the stage; null if there were none, and the batch's own reports stand as they are
     * @param maskedBy one per member: the stage that masked the last of its tokens, or null; null as a whole if there were none
     */
    record LateStaleness(
            TokenBatch left,
            @Nullable StageReport report,
            @Nullable String @Nullable [] maskedBy) {
        /** Name of the stage in reports. */
        static final String STAGE = "staleness_at_step";

        static LateStaleness of(StepMembers members, long maxVersions, long version) {
            TokenBatch recorded = members.own().withMask(members.recordedMask());
            byte[] mask = new byte[recorded.tokenCount()];
            new StalenessLimit(maxVersions).maskTokens(members.versions(), version, mask);
            long masked = 0;
            for (int t = 0; t < mask.length; t++) {
                masked += mask[t] == 0 && recorded.isTrained(t) ? 1 : 0;
                mask[t] = mask[t] == 1 && recorded.isTrained(t) ? (byte) 1 : 0;
            }
            if (masked == 0) {
                return new LateStaleness(recorded, null, null);
            }
            TokenBatch left = recorded.withMask(mask);
            String[] maskedBy = new String[members.count()];
            long seen = 0;
            long lost = 0;
            for (int s = 0; s < maskedBy.length; s++) {
                BatchEntry entry = members.batch().members().get(s).entry();
                boolean wasTrained = recorded.trainedTokens(s) > 0;
                seen += wasTrained ? 1 : 0;
                if (left.trainedTokens(s) == 0) {
                    maskedBy[s] = wasTrained ? STAGE : entry.getMaskedBy();
                    lost += wasTrained ? 1 : 0;
                }
            }
            return new LateStaleness(
                    left,
                    new StageReport(
                            STAGE,
                            (long) recorded.trainedTokens(),
                            masked,
                            seen,
                            lost,
                            Map.of("max_versions", (double) maxVersions, "current_version", (double) version)),
                    maskedBy);
        }

        /** The batch's reports, and this one behind them. */
        List<StageReport> stages(List<StageReport> recorded) {
            if (report == null) {
                return recorded;
            }
            List<StageReport> all = new ArrayList<>(recorded);
            all.add(report);
            return all;
        }
    }
}
