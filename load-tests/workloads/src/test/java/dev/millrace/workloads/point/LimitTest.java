package dev.millrace.workloads.point;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

class LimitTest {
    @Test
    void shouldNameWhatHeldAPointBack() {
        assertThat(Limit.of(true, 1.0, 9000, true)).isEqualTo(Limit.LOAD);
        assertThat(Limit.of(false, 1.0, 9000, true)).isEqualTo(Limit.LEARNER);
        assertThat(Limit.of(false, 0.95, 9000, false)).isEqualTo(Limit.PROCESSORS);
        assertThat(Limit.of(false, 0.5, 9000, false)).isEqualTo(Limit.PUBLISHING);
        assertThat(Limit.of(false, 0.5, 3, false)).isEqualTo(Limit.TOPOLOGY);
    }
}
