package dev.millrace.learner.step;

import dev.millrace.corrections.algorithm.Algorithm;
import dev.millrace.corrections.stage.ControlState;
import dev.millrace.corrections.stage.Decision;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.StageReport;
import dev.millrace.schemas.StepEntry;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;

/** What is said of a step once it is made. */
final class StepReports {
    private final Algorithm algorithm;

    StepReports(Algorithm algorithm) {
        this.algorithm = algorithm;
    }

    StepReport of(
            StepMembers members,
            StepStart.Started start,
            long version,
            double rate,
            ControlState controls,
            StepMetricsTally means) {
        addStart(members, start, means);
        return report(members, start.decision(), version, rate, controls, means);
    }

    /** What the recorded decisions were, beside what is in force; what was not computed is absent. */
    private void addStart(StepMembers members, StepStart.Started start, StepMetricsTally means) {
        if (members.count() > 0) {
            means.once(StepMetric.RESPONSE_TOKENS_MEAN, members.meanTokens());
            means.once(StepMetric.RESPONSE_TOKENS_MAX, members.maxTokens());
        }
        if (!Double.isNaN(algorithm.objective().clipRatioHigh())) {
            means.once(StepMetric.CLIP_RATIO_HIGH, algorithm.objective().clipRatioHigh());
        }
        LearnerBatch batch = members.batch().batch();
        means.onceIfKnown(StepMetric.RECORDED_ESS_RATIO, batch.getEssRatio());
        means.onceIfKnown(StepMetric.RECORDED_ESS_RATIO_TRUNCATED, batch.getEssRatioTruncated());
        means.onceIfKnown(StepMetric.RECORDED_SECOND_MOMENT, batch.getSecondMoment());
        means.once(StepMetric.RECORDED_STEP_SCALE, batch.getStepScale());
        means.once(StepMetric.RECORDED_TOKENS_TRAINED, batch.getTrainedTokens());
        means.once(StepMetric.STEP_SCALE, start.decision().decided().stepScale());
    }

    private StepReport report(
            StepMembers members,
            StepDecision decision,
            long version,
            double rate,
            ControlState controls,
            StepMetricsTally means) {
        Decision decided = decision.decided();
        List<StepEntry> entries = IntStream.range(0, members.count())
                .mapToObj(s -> new StepEntry(decided.left().trainedTokens(s), decided.maskedBy()[s]))
                .toList();
        return new StepReport(
                means.updates(),
                rate,
                decision.trained().length,
                decided.left().trainedTokens(),
                entries,
                StepFigures.of(members, decision, version),
                withObjective(decision.stages(), means),
                controls,
                means.metrics());
    }

    /** The objective reports beside the stages; one that is linear has nothing that it could act with. */
    private List<StageReport> withObjective(List<StageReport> stages, StepMetricsTally means) {
        List<StageReport> reports = new ArrayList<>(stages);
        if (!algorithm.objective().linear()) {
            means.objectiveReport().ifPresent(reports::add);
        }
        return reports;
    }
}
