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
 * Bounds the attempts of one role at something that fails: they go on from the first failure until a success, for so long at
 * most. One line says that they began, and why; one says after how long they ended. In between an alarm {@value #ALARM} stands,
 * unless it is over at once; it says the true cause where that can be found out, since what fails looks the same to a client
 * whether a broker is away or a topic was deleted.
 *
 * <p>Time is that of a clock that nobody sets. Used by one thread.
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
    private final Supplier<Optional<String>> trueCause;
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
     * @param who the role, for the lines
     * @param limit from the first failure on
     * @param alarms of the process
     * @param trueCause asked once if the failures last: what is wrong and the way out, in a sentence, if it is not the failure itself
     */
    public Patience(String who, Duration limit, Alarms alarms, Supplier<Optional<String>> trueCause) {
        this(who, limit, alarms, trueCause, System::nanoTime, duration -> Thread.sleep(duration.toMillis()));
    }

    /** As the other, whose pauses end when somebody counts down. */
    Patience(String who, Duration limit, Alarms alarms, Supplier<Optional<String>> trueCause, CountDownLatch stopped) {
        this(who, limit, alarms, trueCause, System::nanoTime, duration -> {
            boolean isStopped = stopped.await(duration.toMillis(), TimeUnit.MILLISECONDS);
            if (isStopped) {
                LOG.debug("{} waits no longer", who);
            }
        });
    }

    Patience(
            String who,
            Duration limit,
            Alarms alarms,
            Supplier<Optional<String>> trueCause,
            LongSupplier nanos,
            Pause pause) {
        this.who = who;
        this.limit = limit;
        this.alarms = alarms;
        this.trueCause = trueCause;
        this.nanos = nanos;
        this.pause = pause;
    }

    /**
     * An attempt has failed: waits a moment before the next one, longer from one to the next.
     *
     * @param stopped looked at before and after; true ends the attempts
     * @return false if they are to end
     * @throws RuntimeException the failure itself, if waiting does not mend it
     * @throws PatienceOverException if it has lasted for too long
     */
    public boolean again(RuntimeException failure, BooleanSupplier stopped) {
        if (stopped.getAsBoolean()) {
            return false;
        }
        if (!Passing.mayPass(failure)) {
            throw failure;
        }
        long now = nanos.getAsLong();
        if (!failing || isReopened && now - reopenedNanos >= limit.toNanos()) {
            failing = true;
            sinceNanos = now;
            attempts = 0;
            cause = Optional.empty();
            isCauseAsked = false;
            LOG.warn("{} tries again, for up to {} s: {}", who, limit.toSeconds(), failure.getMessage());
        }
        isReopened = false;
        Duration lasted = Duration.ofNanos(now - sinceNanos);
        if (!isCauseAsked && lasted.compareTo(shorter(QUIET, limit)) >= 0) {
            isCauseAsked = true;
            cause = trueCause.get();
        }
        String why = cause.orElseGet(failure::getMessage);
        if (lasted.compareTo(limit) >= 0) {
            throw new PatienceOverException(
                    who + " has tried for " + lasted.toSeconds() + " s (run.patience_seconds=" + limit.toSeconds()
                            + ") and could not go on: " + why
                            + "; what is committed stays, and a start continues from there",
                    failure);
        }
        if (lasted.compareTo(QUIET) >= 0) {
            alarms.raise(
                    ALARM,
                    who,
                    "it has not got on for " + lasted.toSeconds() + " s, and tries for " + limit.toSeconds()
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

    /** A broker refuses what is dated in its future, which looks as if it were away. */
    private static String remedy(Throwable failure) {
        Throwable cause = failure;
        while (cause != null && !(cause instanceof InvalidTimestampException)) {
            cause = cause.getCause();
        }
        return cause == null
                ? "bring back what is away"
                : "set the clock of this machine or of the broker's right: they differ by more than the topic's"
                        + " message.timestamp.after.max.ms";
    }

    private static Duration shorter(Duration one, Duration other) {
        return one.compareTo(other) < 0 ? one : other;
    }

    /**
     * What was away is there again, though nothing has succeeded yet, perhaps since there is nothing to do: what fails at once
     * fails still, what fails long after that fails anew.
     */
    public void reopened() {
        if (failing) {
            isReopened = true;
            reopenedNanos = nanos.getAsLong();
            alarms.lower(ALARM, who);
        }
    }

    /** What had failed has succeeded; says so if it had. */
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
