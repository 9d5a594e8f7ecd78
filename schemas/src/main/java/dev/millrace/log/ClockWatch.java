package dev.millrace.log;

import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/**
 * Notices that the wall clock shows a time that has been. Kafka's clients reckon with the latest time that they have seen: one that loses
 * its connection opens no other, and one that waits waits on, until the clock shows that time again. That is an alarm, for
 * nothing else says why such a process stands still, and a start ends it.
 *
 * <p>{@link #run()} blocks; {@link #stop()} may be called from any thread.
 */
public final class ClockWatch {
    private static final String SET_BACK = "clock-set-back";
    private static final long PERIOD_MS = 1_000;
    /** So far a clock is set back that is kept right, now and then. */
    private static final Duration TOLERANCE = Duration.ofSeconds(10);

    private final String process;
    private final Alarms alarms;
    private final Clock clock;
    private final CountDownLatch stopping = new CountDownLatch(1);
    private long latestMs = Long.MIN_VALUE;

    /**
     * @param process what runs in it, the alarm's subject
     * @param clock the wall clock
     */
    public ClockWatch(String process, Alarms alarms, Clock clock) {
        this.process = process;
        this.alarms = alarms;
        this.clock = clock;
    }

    /** Looks once a second until it is stopped. */
    public void run() {
        try {
            do {
                look();
            } while (!stopping.await(PERIOD_MS, TimeUnit.MILLISECONDS));
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    void look() {
        long nowMs = clock.millis();
        if (nowMs >= latestMs) {
            latestMs = nowMs;
            alarms.lower(SET_BACK, process);
        } else if (latestMs - nowMs > TOLERANCE.toMillis()) {
            alarms.raise(
                    SET_BACK,
                    process,
                    "the clock of this machine has been at "
                            + Instant.ofEpochMilli(latestMs).truncatedTo(ChronoUnit.SECONDS) + " and was set back by "
                            + Duration.ofMillis(latestMs - nowMs).toMinutes()
                            + " min; until it reaches that time again, this process's Kafka clients may not connect",
                    "restart this process");
        }
    }

    /** Ends {@link #run()}. */
    public void stop() {
        stopping.countDown();
    }
}
