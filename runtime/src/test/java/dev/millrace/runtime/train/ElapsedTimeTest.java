package dev.millrace.runtime.train;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;

class ElapsedTimeTest {
    private final AtomicLong nanos = new AtomicLong(-7);

    @Test
    void shouldCountFromTheStartOfTheProgram() {
        ElapsedTime elapsed = new ElapsedTime(10_000, 12_500, nanos::get);
        nanos.addAndGet(1_000_000_000);
        assertThat(elapsed.seconds()).isEqualTo(3.5);
    }

    @Test
    void shouldNotAskTheClockAgain() {
        ElapsedTime elapsed = new ElapsedTime(10_000, 10_000, nanos::get);
        nanos.addAndGet(60_000_000_000L); // a minute has passed, even if the clock was set meanwhile
        assertThat(elapsed.seconds()).isEqualTo(60);
    }

    @Test
    void shouldCountFromNowWhenTheClockWasSetBackBeforeTheRunBegan() {
        assertThat(new ElapsedTime(10_000, 3_000, nanos::get).seconds()).isZero();
    }
}
