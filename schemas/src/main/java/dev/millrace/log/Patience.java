package dev.millrace.log;

import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.function.LongSupplier;
import java.util.function.Supplier;
import org.apache.kafka.common.errors.InvalidTimestampException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Bounds the retries of one role by a time from the first failure to a success. Logs the begin with its cause, and the end with
 * its duration. Raises the alarm {@value #ALARM} after ten seconds. The alarm names the true cause if it can be found: to a client
 * a lost broker and a deleted topic look the same.
 *
 * <p>Uses a monotonic clock. Used by one thread.
 */
public final class Patience {
    private static final Logger LOG = LoggerFactory.getLogger(Patience.class);
    private static final Duration FIRST_PAUSE = Duration.ofMillis(50);
    private static final Duration LONGEST_PAUSE = Duration.ofSeconds(1);
    private static final Duration QUIET = Duration.ofSeconds(10);
    private static final String ALARM = "role-waits";

    /** Waits until a deadline or a stop. */
    @FunctionalInterface
    interface Pause {
        void of(Duration duration) throws InterruptedException;
    }

    private final String who;
    private final Duration limit;
    private final Alarms alarms;
    private final Supplier<Optional<String>> rootCause;
    private final LongSupplier nanos;
    private final Pause pause;
    private boolean failing;
    private long sinceNanos;
    private long attempts;
    private Optional<String> cause = Optional.empty();
    private boolean isCauseAsked;
    private boolean isReopened;
    private long reopenedNanos;

    /**
     * @param limit longest time from the first failure
     * @param rootCause called once if failures last: a sentence with the cause and the way out, if it is not the failure itself
     */
    public Patience(String who, Duration limit, Alarms alarms, Supplier<Optional<String>> rootCause) {
        this(who, limit, alarms, rootCause, System::nanoTime, duration -> Thread.sleep(duration.toMillis()));
    }

    Patience(String who, Duration limit, Alarms alarms, Supplier<Optional<String>> rootCause, CountDownLatch stopped) {
        this(who, limit, alarms, rootCause, System::nanoTime, duration -> {
            boolean isStopped = stopped.await(duration.toMillis(), TimeUnit.MILLISECONDS);
            if (isStopped) {
                LOG.debug("{} stops waiting", who);
            }
        });
    }

    Patience(
            String who,
            Duration limit,
            Alarms alarms,
            Supplier<Optional<String>> rootCause,
            LongSupplier nanos,
            Pause pause) {
        this.who = who;
        this.limit = limit;
        this.alarms = alarms;
        this.rootCause = rootCause;
        this.nanos = nanos;
        this.pause = pause;
    }

    /**
     * Waits with backoff after a failed attempt.
     *
     * @param stopped read before and after the wait; true ends the retries
     * @return whether to retry
     * @throws RuntimeException the failure itself, if a retry cannot succeed
     * @throws PatienceOverException if the failures have lasted longer than the limit
     */
    public boolean again(RuntimeException failure, BooleanSupplier stopped) {
        if (stopped.getAsBoolean()) {
            return false;
        }
        if (!RetriableFailures.isRetriable(failure)) {
            throw failure;
        }
        long now = nanos.getAsLong();
        if (!failing || isReopened && now - reopenedNanos >= limit.toNanos()) {
            failing = true;
            sinceNanos = now;
            attempts = 0;
            cause = Optional.empty();
            isCauseAsked = false;
            LOG.warn("{} retries for up to {} s: {}", who, limit.toSeconds(), failure.getMessage());
        }
        isReopened = false;
        Duration lasted = Duration.ofNanos(now - sinceNanos);
        if (!isCauseAsked && lasted.compareTo(shorter(QUIET, limit)) >= 0) {
            isCauseAsked = true;
            cause = rootCause.get();
        }
        String why = cause.orElseGet(failure::getMessage);
        if (lasted.compareTo(limit) >= 0) {
            throw new PatienceOverException(
                    who + " has retried for " + lasted.toSeconds() + " s (run.patience_seconds=" + limit.toSeconds()
                            + ") without success: " + why
                            + "; committed work is kept, and a restart continues from it",
                    failure);
        }
        if (lasted.compareTo(QUIET) >= 0) {
            alarms.raise(
                    ALARM,
                    who,
                    "no progress for " + lasted.toSeconds() + " s, retrying for up to " + limit.toSeconds()
                            + " s (run.patience_seconds): " + why,
                    cause.isPresent() ? "" : remedy(failure));
        }
        try {
            pause.of(shorter(FIRST_PAUSE.multipliedBy(1L << Math.min(attempts, 10)), LONGEST_PAUSE));
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return false;
        }
        attempts++;
        return !stopped.getAsBoolean();
    }

    /** The way out; a broker also refuses records that its clock dates in the future. */
    private static String remedy(Throwable failure) {
        Throwable cause = failure;
        while (cause != null && !(cause instanceof InvalidTimestampException)) {
            cause = cause.getCause();
        }
        return cause == null
                ? "make the cluster or the registry reachable again"
                : "correct the clock of this machine or of the broker: they differ by more than the topic's"
                        + " message.timestamp.after.max.ms";
    }

    private static Duration shorter(Duration one, Duration other) {
        return one.compareTo(other) < 0 ? one : other;
    }

    /**
     * Clears the alarm after a reconnect, before an attempt has succeeded. A failure within the limit continues the old ones, a
     * later one begins anew.
     */
    public void reopened() {
        if (failing) {
            isReopened = true;
            reopenedNanos = nanos.getAsLong();
            alarms.lower(ALARM, who);
        }
    }

    /** Ends the retries after a success. */
    public void succeeded() {
        if (failing) {
            failing = false;
            alarms.lower(ALARM, who);
            LOG.warn(
                    "{} continues after {} s",
                    who,
                    Duration.ofNanos(nanos.getAsLong() - sinceNanos).toMillis() / 1e3);
        }
    }
}
