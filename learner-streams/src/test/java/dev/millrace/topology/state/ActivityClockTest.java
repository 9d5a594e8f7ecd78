package dev.millrace.topology.state;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

class ActivityClockTest {
    private static final long DAY = 86_400_000;

    @Test
    void shouldFollowTheTimestampsOfRecords() {
        ActivityClock clock = new ActivityClock(1000, 50, 0);
        clock.record(7_000);
        clock.record(7_300);
        assertThat(clock.nowMs()).isEqualTo(350);
    }

    @Test
    void shouldNotRunBackwards() {
        ActivityClock clock = new ActivityClock(1000, 0, 0);
        clock.record(7_000);
        clock.record(6_000);
        clock.record(7_100);
        assertThat(clock.nowMs()).isEqualTo(100);
    }

    @Test
    void shouldCountALongGapAsTheLongestThatCounts() {
        ActivityClock clock = new ActivityClock(1000, 0, 0);
        clock.record(7_000);
        clock.record(7_000 + DAY);
        clock.record(Long.MAX_VALUE);
        assertThat(clock.nowMs()).isEqualTo(2000);
    }

    @Test
    void shouldFollowTheWallClockWhileNothingArrives() {
        ActivityClock clock = new ActivityClock(1000, 0, 100);
        assertThat(clock.tick(700)).isTrue();
        assertThat(clock.tick(1_300)).isTrue();
        assertThat(clock.nowMs()).isEqualTo(1_200);
    }

    @Test
    void shouldNotCountTheSameTimeByBothClocks() {
        ActivityClock clock = new ActivityClock(10_000, 0, 0);
        clock.record(5_000);
        assertThat(clock.tick(1_000)).isFalse(); // something arrived in this second
        assertThat(clock.tick(2_000)).isTrue();
        assertThat(clock.tick(3_000)).isTrue();
        assertThat(clock.nowMs()).isEqualTo(2_000);
        clock.record(8_500); // 3.5 s after the last one, 2 of which have been counted
        assertThat(clock.nowMs()).isEqualTo(3_500);
    }

    @Test
    void shouldNotCountTheNightThatTheMachineSlept() {
        ActivityClock clock = new ActivityClock(1000, 0, 0);
        clock.tick(DAY);
        assertThat(clock.nowMs()).isEqualTo(1000);
    }
}
