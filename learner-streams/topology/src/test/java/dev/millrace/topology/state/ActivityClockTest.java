package dev.millrace.topology.state;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

class ActivityClockTest {
    private static final long DAY = 86_400_000;

    @Test
    void shouldFollowTheTimestampsOfRecords() {
        ActivityClock clock = new ActivityClock(1000, 50);
        clock.record(7_000);
        clock.record(7_300);
        assertThat(clock.nowMs()).isEqualTo(350);
    }

    @Test
    void shouldNotRunBackwards() {
        ActivityClock clock = new ActivityClock(1000, 0);
        clock.record(7_000);
        clock.record(6_000);
        clock.record(7_100);
        assertThat(clock.nowMs()).isEqualTo(100);
    }

    @Test
    void shouldCountALongGapAsTheLongestThatCounts() {
        ActivityClock clock = new ActivityClock(1000, 0);
        clock.record(7_000);
        clock.record(7_000 + DAY);
        clock.record(Long.MAX_VALUE);
        assertThat(clock.nowMs()).isEqualTo(2000);
    }

    @Test
    void shouldNotCountTheSameTimeByBothClocks() {
        ActivityClock clock = new ActivityClock(10_000, 0);
        clock.record(5_000);
        clock.idle(1_000);
        clock.idle(1_000);
        assertThat(clock.nowMs()).isEqualTo(2_000);
        clock.record(8_500); // 3.5 s after the last one; 2 s of it are already counted
        assertThat(clock.nowMs()).isEqualTo(3_500);
    }
}
