package dev.millrace.runtime.config;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.api.Test;

class EvaluationConfigTest {

    @Test
    void shouldRefuseTwoWaysToSayWhen() {
        assertThatThrownBy(() -> new ConfigLayers()
                        .set("evaluation={every_versions: 10, every_seconds: 60}")
                        .resolve())
                .isInstanceOf(ConfigException.class)
                .hasMessageContaining("every_versions is 10 and every_seconds is 60; one of them says when");
    }

    @Test
    void shouldRefuseWhatEvaluatesNothing() {
        assertThatThrownBy(() -> new ConfigLayers().set("evaluation.samples=0").resolve())
                .hasMessageContaining("samples must be at least 1: 0");
        assertThatThrownBy(() ->
                        new ConfigLayers().set("evaluation.correct_above=.nan").resolve())
                .isInstanceOf(ConfigException.class);
    }

    @Test
    void shouldReadKeysUnderTheNamesThatOlderRunsRecorded() {
        EvaluationConfig recorded = new ConfigLayers()
                .begunWith(ConfigTree.parse("evaluation: {every_steps: 5, responses: 32}", "a record"))
                .resolve()
                .evaluation();
        assertThat(recorded).isEqualTo(new EvaluationConfig(5, 0, 32, 1, 0.5));

        EvaluationConfig over = new ConfigLayers()
                .begunWith(ConfigTree.parse("evaluation: {every_steps: 5, responses: 32}", "a record"))
                .set("evaluation.every_versions=7")
                .set("evaluation.samples=8")
                .resolve()
                .evaluation();
        assertThat(over).isEqualTo(new EvaluationConfig(7, 0, 32, 8, 0.5));
        assertThat(ConfigBinder.bind(
                                MillraceConfig.defaults(),
                                ConfigTree.parse("evaluation: {every_steps: 0, responses: 64}", "an archive"))
                        .evaluation())
                .isEqualTo(new EvaluationConfig(0, 0, 64, 1, 0.5));
    }
}
