package dev.millrace.policy.ort;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.millrace.policy.ort.Ort.QuietRuntime;
import org.junit.jupiter.api.Test;

class QuietRuntimeTest {
    @Test
    void shouldRefuseACommandLineThatWouldEndTheProcess() {
        assertThatThrownBy(() -> QuietRuntime.require(null, QuietRuntime.MOST_BYTES + 1L))
                .hasMessageContaining("has 3001 bytes");
        assertThatThrownBy(() -> QuietRuntime.require("0", 3001)).hasMessageContaining("ORT_DISABLE_TELEMETRY=1");
    }

    @Test
    void shouldSayWhatToDo() {
        assertThatThrownBy(() -> QuietRuntime.require("", 3001))
                .hasMessageContaining("has 3001 bytes")
                .hasMessageContaining("ORT_DISABLE_TELEMETRY=1");
    }

    @Test
    void shouldTakeAnyWhereTelemetryIsOff() {
        assertThatCode(() -> QuietRuntime.require("1", 100_000)).doesNotThrowAnyException();
        assertThatCode(() -> QuietRuntime.require(null, QuietRuntime.MOST_BYTES))
                .doesNotThrowAnyException();
    }

    @Test
    void shouldFindTheLibrary() {
        assertThat(QuietRuntime.library()).isRegularFile();
    }
}
