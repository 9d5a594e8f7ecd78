package dev.millrace.runtime.config;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.api.Test;

class StalenessBoundTest {
    private static long maxVersions(String... settings) {
        ConfigLayers layers = new ConfigLayers();
        for (String setting : settings) {
            layers.set(setting);
        }
        return layers.resolve().algorithm().staleness().maxVersions();
    }

    @Test
    void shouldTakeEtaForTheLimitWhereNobodyGivesOne() {
        assertThat(maxVersions())
                .isEqualTo(MillraceConfig.defaults().admission().eta());
        assertThat(maxVersions("admission.eta=0")).isZero();
        assertThat(maxVersions("admission.eta=4")).isEqualTo(4);
        assertThat(maxVersions("admission.eta=4", "algorithm.staleness.max_age_ms=9000"))
                .isEqualTo(4);
        assertThat(maxVersions("admission.eta=4", "algorithm=grpo"))
                .as("of a variant too")
                .isEqualTo(4);
    }

    @Test
    void shouldKeepALimitThatIsGiven() {
        assertThat(maxVersions("admission.eta=4", "algorithm.staleness.max_versions=9"))
                .isEqualTo(9);
    }

    @Test
    void shouldFollowAnEtaThatIsPutOverTheRunsWhereTheRunsLimitWasItsEta() {
        assertThat(goneOn("admission.eta=1", "admission.eta=3")).isEqualTo(3);
        assertThat(goneOn("admission.eta=1", "admission.group_size=4")).isEqualTo(1);
        assertThat(goneOn("algorithm.staleness.max_versions=9", "admission.eta=3"))
                .as("a limit of its own stays")
                .isEqualTo(9);
    }

    private static long goneOn(String begunWith, String now) {
        MillraceConfig begun = new ConfigLayers().set(begunWith).resolve();
        return new ConfigLayers()
                .begunWith(RecordedConfiguration.of(begun).tree())
                .set(now)
                .resolve()
                .algorithm()
                .staleness()
                .maxVersions();
    }

    @Test
    void shouldLeaveToTheBinderWhatIsNoConfiguration() {
        assertThatThrownBy(() -> maxVersions("admission.eta=many")).hasMessageContaining("admission.eta");
        assertThatThrownBy(() -> maxVersions("algorithm=3")).hasMessageContaining("algorithm");
        assertThatThrownBy(() -> maxVersions("algorithm.staleness=3")).hasMessageContaining("algorithm.staleness");
    }
}
