package dev.millrace.report;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.List;
import org.junit.jupiter.api.Test;

class SampleTest {
    @Test
    void shouldGiveMedianAndBounds() {
        assertThat(Sample.of(List.of(5.0, 1.0, 3.0))).isEqualTo(new Sample(3, 1, 5, 3));
        assertThat(Sample.of(List.of(4.0, 1.0, 2.0, 9.0))).isEqualTo(new Sample(3, 1, 9, 4));
    }

    @Test
    void shouldRefuseNothing() {
        assertThatThrownBy(() -> Sample.of(List.of())).hasMessageContaining("at least one");
    }
}
