package dev.millrace.workloads.topology;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.workloads.topology.OpenLoop.Timeline;
import dev.millrace.workloads.topology.Schedule.Arrivals;
import org.HdrHistogram.Histogram;
import org.junit.jupiter.api.Test;

class TimelineTest {
    /**
     * Ten records a second, and the system stands still from second 1 to second 2: the ten records that were due meanwhile
     * are late by 1.0, 0.9 ... 0.1 seconds, and a histogram that counts from the intended time shows it.
     */
    @Test
    void shouldChargeAStallToEveryRecordThatItKeptWaiting() {
        Schedule schedule = Schedule.of(Arrivals.EVEN, 10, 30, 1);
        Timeline timeline = new Timeline(schedule);
        timeline.begin(5_000_000_000L);
        Histogram latency = new Histogram(3);
        long stallEnds = 5_000_000_000L + 2_000_000_000L;
        for (int i = 0; i < 30; i++) {
            long intended = timeline.intended(i);
            assertThat(intended).isEqualTo(5_000_000_000L + i * 100_000_000L);
            boolean stalled = i >= 10 && i < 20;
            latency.recordValue((stalled ? stallEnds : intended + 1_000_000) - intended);
        }
        assertThat(latency.getCountBetweenValues(99_000_000, Long.MAX_VALUE)).isEqualTo(10);
        assertThat(latency.getMaxValue()).isBetween(1_000_000_000L, 1_001_000_000L);
        assertThat(latency.getValueAtPercentile(50)).isLessThan(1_100_000);
    }

    @Test
    void shouldKnowWhatHasHappened() {
        Timeline timeline = new Timeline(Schedule.of(Arrivals.EVEN, 10, 3, 1));
        assertThat(timeline.scoredAt(2)).isZero();
        timeline.scored(2, 77);
        assertThat(timeline.scoredAt(2)).isEqualTo(77);
    }
}
