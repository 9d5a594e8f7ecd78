package dev.millrace.runtime.config;

import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.api.Test;

class EvaluationConfigTest {

    @Test
    void shouldRefuseTwoWaysToSayWhen() {
        assertThatThrownBy(() -> new ConfigLayers()
                        .set("evaluation={every_versions: 10, every_seconds: 60}")
                        .resolve())
                .isInstanceOf(ConfigException.class)
                .hasMessageContaining("every_versions is 10 and every_seconds is 60; only one can set the schedule");
    }

    @Test
    void shouldRefuseWhatEvaluatesNothing() {
        assertThatThrownBy(() -> new ConfigLayers().set("evaluation.samples=0").resolve())
                .hasMessageContaining("samples must be at least 1: 0");
        assertThatThrownBy(() ->
                        new ConfigLayers().set("evaluation.correct_above=.nan").resolve())
                .isInstanceOf(ConfigException.class);
    }
}
