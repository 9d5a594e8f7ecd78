package dev.millrace.runtime.evaluation;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.log.Alarm;
import dev.millrace.log.Evaluations;
import dev.millrace.log.LogConnection;
import dev.millrace.runtime.config.MetricsConfig;
import dev.millrace.runtime.config.OtlpConfig;
import dev.millrace.runtime.config.TensorBoardConfig;
import dev.millrace.runtime.metrics.EventFiles;
import dev.millrace.runtime.metrics.WrittenEvent;
import dev.millrace.schemas.VersionEvaluation;
import dev.millrace.schemas.registry.InMemorySchemaRegistry;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.schemas.run.RunTopics;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class EvaluationOutputsTest {
    private static final RunIdentity RUN = new RunIdentity("r-1", 0, "policy");
    private static final String PROMPTS = "0123456789abcdef";

    @TempDir
    private Path folder;

    private final SimpleMeterRegistry registry = new SimpleMeterRegistry();
    private final LogConnection connection = new LogConnection(
            Map.of("bootstrap.servers", "none:1"), new RunTopics("t."), RUN, new InMemorySchemaRegistry());

    private EvaluationOutputs outputs() {
        return new EvaluationOutputs(
                new MetricsConfig(-1, new TensorBoardConfig(folder.toString()), OtlpConfig.defaults()),
                connection,
                registry,
                PROMPTS);
    }

    private static Evaluations evaluations(VersionEvaluation... all) {
        return new Evaluations(List.of(all));
    }

    private List<WrittenEvent> events() throws IOException {
        return WrittenEvent.ofRun(folder.resolve("r-1/held-out-01234567"));
    }

    private double gauge(String meter, String... tags) {
        return registry.get(meter).tags(tags).gauge().value();
    }

    /**
     * Of four prompts with two responses 2, 2, 1 and 0 are correct: mean 5/8, prompts' means 1, 1, ½, 0 with the standard deviation
     * √(0.6875/3), of Student's distribution with 3 degrees of freedom 3.1824 of them over √4; pass@2 is 3/4; lengths are 12, 12, 11, 10
     * for two responses each, and half of them were cut off.
     */
    @Test
    void shouldShowEveryFigureOfAnEvaluationAsAGaugeAndACurve() throws IOException {
        try (EvaluationOutputs outputs = outputs()) {
            outputs.show(
                    evaluations(MadeEvaluation.of(0, PROMPTS, 0, 0, 0, 0), MadeEvaluation.of(8, PROMPTS, 2, 2, 1, 0)));

            assertThat(gauge("millrace.evaluator.reward")).isEqualTo(0.625);
            assertThat(gauge("millrace.evaluator.reward.low")).isZero();
            assertThat(gauge("millrace.evaluator.reward.high")).isEqualTo(1);
            assertThat(gauge("millrace.evaluator.pass.at.k", "k", "1", "estimate", "unbiased"))
                    .isEqualTo(0.625);
            assertThat(gauge("millrace.evaluator.pass.at.k", "k", "2", "estimate", "unbiased"))
                    .isEqualTo(0.75);
            assertThat(gauge("millrace.evaluator.response.tokens.mean")).isEqualTo(45 / 8.0);
            assertThat(gauge("millrace.evaluator.truncated.ratio")).isEqualTo(0.5);
            assertThat(gauge("millrace.evaluator.start.log.prob")).isEqualTo(-1.25);
            assertThat(gauge("millrace.evaluator.evaluated.version")).isEqualTo(8);
            assertThat(gauge("millrace.evaluator.difficulty.prompts", "solved", "1.00-1.00"))
                    .isEqualTo(2);
        }
        assertThat(registry.getMeters()).as("closed").isEmpty();
        assertThat(events()).extracting(WrittenEvent::step).containsExactly(0L, 0L, 8L);
        WrittenEvent start = events().get(1);
        assertThat(start.values())
                .as("of version 0, and nothing that is not known of it")
                .containsEntry("val-core/held_out/reward/mean@2", 0f)
                .doesNotContainKeys("evaluation/start_log_prob", "evaluation/reward_low", "evaluation/pass_at_1_low");
        WrittenEvent eighth = events().get(2);
        assertThat(eighth.wallSeconds()).isEqualTo(8.5);
        assertThat(eighth.values())
                .containsEntry("val-core/held_out/reward/mean@2", 0.625f)
                .containsEntry("evaluation/pass_at_2", 0.75f)
                .containsEntry("evaluation/start_log_prob", -1.25f)
                .containsEntry("evaluation/solved_0.00-0.00/prompts", 1f)
                .containsKeys("evaluation/pass_at_16_bernoulli", "evaluation/reward_high");
        assertThat(eighth.values().get("evaluation/reward_low")).isZero();
    }

    @Test
    void shouldShowTheBestSoFarAndHowManyCameAfterIt() throws IOException {
        try (EvaluationOutputs outputs = outputs()) {
            outputs.show(evaluations(
                    MadeEvaluation.of(0, PROMPTS, 0, 1),
                    MadeEvaluation.of(4, PROMPTS, 2, 1),
                    MadeEvaluation.of(8, PROMPTS, 1, 2), // as good, and later
                    MadeEvaluation.of(12, PROMPTS, 0, 0)));

            assertThat(gauge("millrace.evaluator.best.version")).isEqualTo(4);
            assertThat(gauge("millrace.evaluator.best.reward")).isEqualTo(0.75);
            assertThat(gauge("millrace.evaluator.best.reward.low"))
                    .as("0.75 less 12.7062 / 4, which no reward in [0, 1] can be")
                    .isZero();
            assertThat(gauge("millrace.evaluator.evaluations.since.best")).isEqualTo(2);
            assertThat(gauge("millrace.evaluator.first.start.log.prob"))
                    .as("version 0 has none")
                    .isEqualTo(-1.25);
        }
        assertThat(events().stream().filter(event -> event.version().isEmpty()))
                .extracting(event -> event.values().get("evaluation/best_version"))
                .containsExactly(0f, 4f, 4f, 4f);
    }

    @Test
    void shouldWriteAnEvaluationOnceWhoeverIsTakenOver() throws IOException {
        VersionEvaluation first = MadeEvaluation.of(0, PROMPTS, 0, 1);
        VersionEvaluation second = MadeEvaluation.of(4, PROMPTS, 1, 1);
        EvaluationOutputs before = outputs();
        before.show(evaluations(first));
        try (EvaluationOutputs after = outputs()) {
            after.show(evaluations(first, second));
            assertThat(connection.alarms().active())
                    .extracting(Alarm::name)
                    .as("the folder is another's still")
                    .containsExactly(EventFiles.ALARM);

            before.close();
            after.show(evaluations(first, second, MadeEvaluation.of(8, PROMPTS, 2, 1)));
            assertThat(connection.alarms().active()).isEmpty();
        }
        assertThat(events().stream().filter(event -> event.version().isEmpty()))
                .extracting(WrittenEvent::step)
                .containsExactly(0L, 4L, 8L);
    }

    @Test
    void shouldShowNothingOfOtherPrompts() {
        try (EvaluationOutputs outputs = outputs()) {
            outputs.show(evaluations(MadeEvaluation.of(4, "another", 1, 2)));
            assertThat(registry.getMeters()).isEmpty();
            assertThat(folder.resolve("r-1")).doesNotExist();
        }
    }
}
