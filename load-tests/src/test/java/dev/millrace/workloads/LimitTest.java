package dev.millrace.workloads;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.workloads.PointResult.Limit;
import org.junit.jupiter.api.Test;

class LimitTest {
    @Test
    void shouldNameWhatHeldAPointBack() {
        assertThat(Limit.of(true, 0, 1, 1.0, 9000)).isEqualTo(Limit.LOAD);
        assertThat(Limit.of(false, 0, 0.95, 1.0, 9000)).isEqualTo(Limit.LEARNER);
        assertThat(Limit.of(false, 0, 0.5, 0.95, 9000)).isEqualTo(Limit.PROCESSORS);
        assertThat(Limit.of(false, 0, 0.5, 0.5, 9000)).isEqualTo(Limit.PUBLISHING);
        assertThat(Limit.of(false, 0, 0.5, 0.5, 3)).isEqualTo(Limit.TOPOLOGY);
    }

    @Test
    void shouldNameTheStalenessLimitFirstWhereMoreThanOnePercentLeft() {
        assertThat(Limit.of(false, 0.73, 1, 1, 9000)).isEqualTo(Limit.STALENESS);
        assertThat(Limit.of(true, 0.02, 0, 0.5, 3)).isEqualTo(Limit.STALENESS);
        assertThat(Limit.of(true, 0.01, 0, 0.5, 3)).isEqualTo(Limit.LOAD);
    }
}
