package dev.millrace.runtime.metrics;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.millrace.runtime.config.ConfigBinder;
import dev.millrace.runtime.config.ConfigException;
import dev.millrace.runtime.config.ConfigTree;
import dev.millrace.runtime.config.MetricsConfig;
import dev.millrace.runtime.config.MillraceConfig;
import io.micrometer.core.instrument.Counter;
import io.micrometer.core.instrument.Gauge;
import io.opentelemetry.proto.metrics.v1.Metric;
import org.junit.jupiter.api.Test;

class OtlpMirrorTest {
    private static MillraceConfig config(String yaml) {
        return ConfigBinder.bind(
                MillraceConfig.defaults(), ConfigTree.parse("metrics: {otlp: " + yaml + "}", "a test"));
    }

    @Test
    void shouldSendEveryMeterWithItsNameItsTagsAndTheRun() throws Exception {
        OtlpCollector.Sent last;
        try (OtlpCollector collector = new OtlpCollector()) {
            try (Meters meters = new Meters(collector.config(), "run-7")) {
                Counter.builder("millrace.learner.tokens")
                        .register(meters.registry())
                        .increment(12);
                Gauge.builder("millrace.actor.entropy", () -> 1.5)
                        .tag("role", "learner")
                        .register(meters.registry());
                Gauge gone = Gauge.builder("millrace.gone", () -> 1).register(meters.registry());
                meters.registry().remove(gone);
            } // sends what there is
            last = collector.last();
        }

        assertThat(last.authorization()).isEqualTo("Bearer hunter2");
        assertThat(last.body().getResourceMetrics(0).getResource().getAttributesList())
                .anySatisfy(attribute -> {
                    assertThat(attribute.getKey()).isEqualTo("millrace.run.id");
                    assertThat(attribute.getValue().getStringValue()).isEqualTo("run-7");
                });
        assertThat(last.metrics()
                        .get("millrace.learner.tokens")
                        .getSum()
                        .getDataPoints(0)
                        .getAsDouble())
                .isEqualTo(12);
        Metric entropy = last.metrics().get("millrace.actor.entropy");
        assertThat(entropy.getGauge().getDataPoints(0).getAsDouble()).isEqualTo(1.5);
        assertThat(entropy.getGauge()
                        .getDataPoints(0)
                        .getAttributes(0)
                        .getValue()
                        .getStringValue())
                .isEqualTo("learner");
        assertThat(last.metrics()).containsKey("jvm.memory.used").doesNotContainKey("millrace.gone");
    }

    @Test
    void shouldSendNothingUnlessItIsTold() {
        assertThat(MetricsConfig.defaults().otlp().url().isEmpty()).isTrue();
    }

    @Test
    void shouldShowNoHeaderAnywhereButAReference() {
        MillraceConfig config =
                config("{url: 'https://bob:hunter2@c/v1/metrics', headers: {X-Any: hunter2, Key: 'a ${env:HOME}',"
                        + " Ref: '${env:HOME}'}}");

        assertThat(config.toString() + ConfigBinder.unbind(config)).doesNotContain("hunter2");
        assertThat(ConfigBinder.unbind(config).at("/metrics/otlp/headers/Ref").asText())
                .isEqualTo("${env:HOME}");
        assertThat(config.metrics().otlp().secretHeaders())
                .containsEntry("X-Any", "hunter2")
                .containsEntry("Key", "a " + System.getenv("HOME"));
        assertThatThrownBy(() -> config("{url: 'http://c', headers: {Key: '[hidden]'}}")
                        .metrics()
                        .otlp()
                        .secretHeaders())
                .isInstanceOf(ConfigException.class)
                .hasMessageContaining(
                        "metrics.otlp.headers.Key is [hidden]: a recorded configuration keeps no literal secret");
        assertThatThrownBy(() -> config("{url: 'http://c', headers: {Key: '${env:NOT_THERE_AT_ALL}'}}")
                        .metrics()
                        .otlp()
                        .secretHeaders())
                .isInstanceOf(ConfigException.class)
                .hasMessageContaining("NOT_THERE_AT_ALL");
    }

    @Test
    void shouldRefuseWhatIsNoAddressHeadersForNobodyAndTooShortAPeriod() {
        assertThatThrownBy(() -> config("{url: 'collector:4318'}"))
                .hasMessage("metrics.otlp.url must begin with http:// or https://: collector:4318");
        assertThatThrownBy(() -> config("{headers: {a: b}}")).hasMessageContaining("without a url");
        assertThatThrownBy(() -> config("{url: 'http://c', period_ms: 999}"))
                .hasMessage("metrics.otlp.period_ms must be at least 1000: 999");
    }
}
