package dev.millrace.stages;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.millrace.schemas.StageReport;
import dev.millrace.schemas.TrainingStep;
import dev.millrace.stages.IdleStages.Idle;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class IdleStagesTest {
    private static StageReport report(String stage, long seen, long changed) {
        return new StageReport(stage, seen, changed, seen / 10, changed / 10, Map.of());
    }

    @Test
    void shouldNameAStageThatChangedNothingForSoManyStepsAndNotOneStepEarlier() {
        IdleStages stages = new IdleStages(3);
        stages.add(List.of(report("m2po", 100, 5)));
        stages.add(List.of(report("m2po", 100, 0)));
        stages.add(List.of(report("m2po", 100, 0)));

        assertThat(stages.idle()).isEmpty();
        stages.add(List.of(report("m2po", 90, 0)));
        assertThat(stages.idle()).containsExactly(new Idle("m2po", 3, 290));
        assertThat(stages.idle().get(0).sentence()).isEqualTo("stage m2po has changed nothing in the last 3 steps");
    }

    @Test
    void shouldBeginAnewWhenAStageActs() {
        IdleStages stages = new IdleStages(2);
        stages.add(List.of(report("m2po", 100, 0)));
        stages.add(List.of(report("m2po", 100, 0)));
        stages.add(List.of(report("m2po", 100, 1)));

        assertThat(stages.idle()).isEmpty();
    }

    @Test
    void shouldNotNameWhatOnlyMeasures() {
        IdleStages stages = new IdleStages(1);
        stages.add(List.of(
                report("order", 100, 0),
                report("ess", 100, 0),
                new StageReport("rollout_correction", 100L, 0L, 10L, 0L, Map.of("rollout_corr/kl", 0.1)),
                report("staleness", 100, 0)));

        assertThat(stages.idle()).extracting(Idle::stage).containsExactly("staleness");
    }

    @Test
    void shouldSayThatNoTokenReachedAStage() {
        IdleStages stages = new IdleStages(1);
        stages.add(List.of(report("staleness", 100, 100), report("m2po", 0, 0)));

        assertThat(stages.idle()).containsExactly(new Idle("m2po", 1, 0));
        assertThat(stages.idle().get(0).sentence()).endsWith("1 steps: no token reached it");
    }

    @Test
    void shouldForgetAStageThatTheNewestStepDoesNotHave() {
        IdleStages stages = new IdleStages(1);
        stages.add(List.of(report("m2po", 100, 0)));
        stages.add(List.of(report("staleness", 100, 0)));

        assertThat(stages.idle()).extracting(Idle::stage).containsExactly("staleness");
    }

    @Test
    void shouldReadTheReportsInForceAndThoseOfTheBatchForTheRest() {
        TrainingStep step = TrainingStep.newBuilder()
                .setRunId("run")
                .setEpoch(0)
                .setPolicyId("policy")
                .setBatchId(1)
                .setVersion(1)
                .setWeightsSha256("0")
                .setRolloutsTrained(1)
                .setRolloutsMasked(0)
                .setTokensTrained(10)
                .setRewardMean(0)
                .setStalenessMean(0.0)
                .setStalenessMax(0L)
                .setEssRatio(1.0)
                .setLearningRate(0)
                .setStartedAtMs(0)
                .setFinishedAtMs(0)
                .setMetrics(Map.of(
                        "stage.m2po.tokens_seen", 10.0,
                        "stage.m2po.tokens_changed", 2.0,
                        "stage.m2po.threshold", 0.04,
                        "recorded.stage.m2po.tokens_changed", 7.0,
                        "recorded.stage.grpo.tokens_seen", 9.0,
                        "recorded.stage.grpo.tokens_changed", 9.0,
                        "loss", 1.0))
                .build();

        assertThat(StageReports.of(step))
                .containsExactly(
                        new StageReport("grpo", 9L, 9L, 0L, 0L, Map.of()),
                        new StageReport("m2po", 10L, 2L, 0L, 0L, Map.of("threshold", 0.04)));
    }

    @Test
    void shouldRefuseNoSteps() {
        assertThatThrownBy(() -> new IdleStages(0)).hasMessageContaining("at least 1 step: 0");
    }
}
