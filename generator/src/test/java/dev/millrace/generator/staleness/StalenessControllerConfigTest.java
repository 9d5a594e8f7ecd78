package dev.millrace.generator.staleness;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.api.Test;

class StalenessControllerConfigTest {

    @Test
    void shouldRefuseABatchThatIsNoNumberOfGroups() {
        assertThatThrownBy(() -> new StalenessControllerConfig(
                        1, 100, 8, 1, SamplingConfig.defaults(), 1000, 4, 1, 0, 32, QuarantineConfig.defaults(), 0))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageStartingWith("batch_sequences must be a multiple of group_size")
                .hasMessageEndingWith("batch_sequences=100, group_size=8");
    }

    @Test
    void shouldRefuseValuesOutOfBounds() {
        assertThatThrownBy(() -> new StalenessControllerConfig(
                        -1, 8, 8, 1, SamplingConfig.defaults(), 1000, 4, 1, 0, 32, QuarantineConfig.defaults(), 0))
                .hasMessage("eta must be at least 0: -1");
        assertThatThrownBy(() -> new StalenessControllerConfig(
                        1, 8, 8, 1, SamplingConfig.defaults(), 0, 4, 0, 0.5, 32, QuarantineConfig.defaults(), 0))
                .hasMessage("resample_below is 0.5 and max_resamples is 0, so no prompt is resampled; raise the"
                        + " latter, or set the former to 0");
        assertThatThrownBy(() -> new StalenessControllerConfig(
                        1, 8, 8, 1, SamplingConfig.defaults(), 0, 4, 1, -1, 32, QuarantineConfig.defaults(), 0))
                .hasMessage("resample_below must be finite and at least 0: -1.0");
        assertThatThrownBy(() -> new SamplingConfig(Double.NaN, 0, 1, 0.0, 0, 1, false, 0))
                .hasMessage("temperature must be finite and above 0: NaN");
        assertThatThrownBy(() -> new SamplingConfig(1, -1, 1, 0.0, 0, 1, false, 0))
                .hasMessageStartingWith("top_k must be at least 0");
        assertThatThrownBy(() -> new SamplingConfig(1, 0, 0, 0.0, 0, 1, false, 0))
                .hasMessageStartingWith("top_p must be above 0");
        assertThatThrownBy(() -> new SamplingConfig(1, 0, 1, 1.5, 0, 1, false, 0))
                .hasMessage("min_p must be at least 0 and at most 1: 1.5");
        assertThatThrownBy(() -> new SamplingConfig(1, 0, 1, 0.0, -5, 1, false, 0))
                .hasMessageStartingWith("max_tokens must be at least 0");
        assertThatThrownBy(() -> new SamplingConfig(1, 0, 1, 0.0, 0, 1, true, 0))
                .hasMessage("keep_sampling_mask must be false with top_k=0, top_p=1.0 and min_p=0.0, which exclude no"
                        + " token: there is no mask to keep; set one of these, or leave it out: true");
        assertThatThrownBy(() -> new SamplingConfig(1, 0, 1, 0.0, 0, 1, false, -1))
                .hasMessage("top_log_probs must be at least 0, and 0 records none: -1");
    }

    @Test
    void shouldSayWhatIsComparedWhereTruncationKeepsNoMask() {
        assertThat(new SamplingConfig(1, 5, 0.9, 0.0, 0, 1, false, 0).notice())
                .hasValueSatisfying(notice -> assertThat(notice)
                        .startsWith(
                                "top_k=5, top_p=0.9 and min_p=0.0 truncate the vocabulary, and keep_sampling_mask is false")
                        .contains("over the whole vocabulary"));
        assertThat(new SamplingConfig(1, 5, 0.9, 0.0, 0, 1, true, 0).notice()).isEmpty();
        assertThat(new SamplingConfig(1, 0, 1, 0.05, 0, 1, false, 0).notice()).isPresent();
        assertThat(new SamplingConfig(1, 0, 1, 0.05, 0, 1, true, 0).notice()).isEmpty();
        assertThat(SamplingConfig.defaults().notice()).isEmpty();
    }

    @Test
    void shouldTakeARequestsNameApart() {
        RequestName again = new RequestName(2, 40, 7, 1);
        assertThat(again.groupId()).isEqualTo("2-40-again-7-1");
        assertThat(RequestName.parse(again.groupId())).contains(again);
        assertThat(RequestName.parse("2-40")).contains(RequestName.first(2, 40));
        assertThat(RequestName.parse("g-40")).isEmpty();
    }
}
