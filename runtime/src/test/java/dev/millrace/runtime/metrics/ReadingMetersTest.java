package dev.millrace.runtime.metrics;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.runtime.config.MetricsConfig;
import dev.millrace.runtime.metrics.Meters.SeriesBound;
import dev.millrace.runtime.report.KnownFigures;
import dev.millrace.runtime.report.StepFigure;
import dev.millrace.runtime.report.StepRow;
import dev.millrace.runtime.report.StepRows;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class ReadingMetersTest {
    private final MeterRegistry registry = new SimpleMeterRegistry();
    private final ReadingMeters meters = new ReadingMeters(registry);

    private static final StepRow STEP = StepRows.of(
            4,
            Map.ofEntries(
                    Map.entry("entropy", 1.25),
                    Map.entry("seconds_idle", 0.5),
                    Map.entry("step_scale", 0.75),
                    Map.entry("recorded.step_scale", 0.5),
                    Map.entry("dpo_margin", 3.0),
                    Map.entry("stage.m2po.tokens_seen", 200.0),
                    Map.entry("stage.m2po.tokens_changed", 50.0),
                    Map.entry("stage.m2po.threshold", 0.04),
                    Map.entry("recorded.stage.m2po.tokens_seen", 100.0),
                    Map.entry("recorded.stage.m2po.tokens_changed", 10.0),
                    Map.entry("stage.token_tis.tokens_changed", 0.0),
                    Map.entry("stage.token_tis.rollout_corr/kl", 0.125)));

    private double gauge(String name, String... tags) {
        return registry.get(name).tags(tags).gauge().value();
    }

    @Test
    void shouldShowEveryNumberOfTheNewestStepUnderVerlsNamesOrOurs() {
        meters.show(StepReadings.of(STEP));

        assertThat(gauge("millrace.critic.score.mean", "role", "learner")).isEqualTo(0.25);
        assertThat(gauge("millrace.actor.entropy")).isEqualTo(1.25);
        assertThat(gauge("millrace.training.global_step")).isEqualTo(4);
        assertThat(gauge("millrace.fully_async.trainer.idle_ratio")).isEqualTo(0.25);
        assertThat(gauge("millrace.step.staleness_mean")).isEqualTo(1.5);
        assertThat(gauge("millrace.step.trained_share")).isEqualTo(0.25);
        assertThat(gauge("millrace.step.step_scale", "role", "learner")).isEqualTo(0.75);
        assertThat(gauge("millrace.step.step_scale", "role", "topology")).isEqualTo(0.5);
        assertThat(gauge("millrace.step.other", "figure", "dpo_margin")).isEqualTo(3);
        assertThat(gauge("millrace.rollout_corr.kl", "stage", "token_tis")).isEqualTo(0.125);
        assertThat(gauge("millrace.stage.value", "stage", "m2po", "figure", "threshold"))
                .isEqualTo(0.04);
        assertThat(gauge("millrace.stage.tokens.changed.ratio", "stage", "m2po", "role", "learner"))
                .isEqualTo(0.25);
        assertThat(gauge("millrace.stage.tokens.changed.ratio", "stage", "m2po", "role", "topology"))
                .isEqualTo(0.1);
    }

    @Test
    void shouldCountTimesInSecondsAndSaySo() {
        meters.show(StepReadings.of(STEP));

        Gauge finished = registry.get("millrace.step.finished.timestamp").gauge();
        assertThat(finished.value()).isCloseTo(5.5, within(1e-9));
        assertThat(finished.getId().getBaseUnit()).isEqualTo("seconds");
        assertThat(gauge("millrace.step.duration")).isEqualTo(1.5);
        assertThat(gauge("millrace.step.idle")).isEqualTo(0.5);
        assertThat(StepMeter.of("seconds_idle").orElseThrow().scraped()).isEqualTo("millrace_step_idle_seconds");
        assertThat(StepMeter.of("lag_seconds").orElseThrow().scraped()).isEqualTo("millrace_step_lag_seconds");
        assertThat(StepMeter.of("clip_fraction").orElseThrow().scraped()).isEqualTo("millrace_actor_pg_clipfrac");
    }

    @Test
    void shouldHaveNoGaugeForWhatTheNewestStepDidNotCompute() {
        meters.show(StepReadings.of(STEP));
        meters.show(StepReadings.of(StepRows.starved(5)));

        assertThat(gauge("millrace.training.global_step")).isEqualTo(5);
        assertThat(gauge("millrace.step.starved")).isEqualTo(1);
        for (String gone :
                List.of("millrace.step.ess_ratio", "millrace.step.staleness_mean", "millrace.actor.entropy")) {
            assertThat(registry.find(gone).gauge()).as(gone).isNull();
        }
        meters.show(StepReadings.of(STEP));
        assertThat(gauge("millrace.step.ess_ratio")).isEqualTo(0.5);
        meters.close();
        assertThat(registry.getMeters()).isEmpty();
    }

    @Test
    void shouldGiveEachFigureAMeterOfItsOwn() {
        List<String> names = KnownFigures.all().stream()
                .filter(figure -> !figure.isText() && !figure.key().startsWith("recorded."))
                .map(StepFigure::key)
                .map(key -> StepMeter.of(key).orElseThrow().scraped())
                .toList();

        assertThat(names).doesNotHaveDuplicates().allMatch(name -> name.matches("millrace_[a-z0-9_]+"));
        assertThat(StepMeter.of("weights_sha256")).isEmpty();
    }

    /** Stages, figures and generators are named by others: plug-ins, foreign trainers, other processes. */
    @Test
    void shouldNotGrowWithTheNamesThatOthersGive() {
        try (Meters all = new Meters(MetricsConfig.defaults(), "r");
                ReadingMeters bounded = new ReadingMeters(all.registry())) {
            int before = all.registry().getMeters().size();
            for (int step = 1; step <= 300; step++) {
                bounded.show(StepReadings.of(StepRows.of(
                        step, Map.of("figure-" + step, 1.0, "stage.stage-" + step + ".tokens_changed", 1.0))));
            }
            assertThat(all.registry().getMeters()).hasSizeLessThan(before + 60);

            Map<String, Double> many = new HashMap<>();
            for (int stage = 0; stage < 5000; stage++) {
                many.put("figure-" + stage, 1.0);
                many.put("stage.stage-" + stage + ".tokens_changed", 1.0);
                all.registry()
                        .counter("millrace.generator.met", "generator", "g-" + stage)
                        .increment();
            }
            bounded.show(StepReadings.of(StepRows.of(301, many)));
            assertThat(all.registry().find("millrace.step.other").gauges()).hasSize(SeriesBound.MOST);
            assertThat(all.registry().find("millrace.generator.met").counters()).hasSize(SeriesBound.MOST);
            assertThat(all.registry().getMeters()).hasSizeLessThan(before + 60 + 8 * SeriesBound.MOST);
            assertThat(all.registry()
                            .get("millrace.meters.refused")
                            .functionCounter()
                            .count())
                    .isGreaterThan(9000);

            bounded.show(StepReadings.of(StepRows.of(302, Map.of("figure-9999", 7.0))));
            assertThat(all.registry()
                            .get("millrace.step.other")
                            .tag("figure", "figure-9999")
                            .gauge()
                            .value())
                    .as("there is room again")
                    .isEqualTo(7);
        }
    }
}
