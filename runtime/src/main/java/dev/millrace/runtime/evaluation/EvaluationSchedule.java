package dev.millrace.runtime.evaluation;

import dev.millrace.runtime.config.EvaluationConfig;
import java.util.Optional;
import java.util.OptionalLong;

/**
 * Says which version is to be evaluated next: version 0, then one in so many, and the last one that the learner is to make; or the newest,
 * every so many seconds. Where several are due, the newest of them; the others are passed over. Used by one thread.
 */
final class EvaluationSchedule {
    private final EvaluationConfig config;
    private final long maxSteps;
    private OptionalLong tried = OptionalLong.empty();
    private long triedNanos;

    /** @param maxSteps after which the learner ends; 0 for never */
    EvaluationSchedule(EvaluationConfig config, long maxSteps) {
        this.config = config;
        this.maxSteps = maxSteps;
    }

    /**
     * What is due.
     *
     * @param passedOver versions that were due before it, and are left out
     */
    record Due(long version, long passedOver) {}

    /**
     * What is due now.
     *
     * @param evaluated newest version that is evaluated; empty if none is
     * @param newest newest version there is
     * @param nanos by a clock that only runs forward
     */
    Optional<Due> next(OptionalLong evaluated, long newest, long nanos) {
        long last = Math.max(evaluated.orElse(-1), tried.orElse(-1));
        if (newest <= last) {
            return Optional.empty();
        }
        if (config.everyVersions() == 0) {
            boolean isTime = tried.isEmpty() || nanos - triedNanos >= config.everySeconds() * 1_000_000_000L;
            return isTime ? Optional.of(new Due(newest, 0)) : Optional.empty();
        }
        if (last < 0) {
            return Optional.of(new Due(0, 0)); // what the policy began as, whatever has come since
        }
        long every = config.everyVersions();
        long due = (last / every + 1) * every;
        if (newest >= due) {
            long chosen = newest / every * every;
            return Optional.of(new Due(chosen, (chosen - due) / every));
        }
        return newest == maxSteps ? Optional.of(new Due(newest, 0)) : Optional.empty();
    }

    /** A version was taken up, whatever came of it: it is not asked for again. */
    void took(long version, long nanos) {
        tried = OptionalLong.of(Math.max(version, tried.orElse(version)));
        triedNanos = nanos;
    }
}
