package dev.millrace.runtime.evaluation;

import dev.millrace.runtime.config.EvaluationConfig;
import java.util.Optional;
import java.util.OptionalLong;

/**
 * Chooses the next version to evaluate: version 0, every {@code every_versions}-th and the learner's last; or the newest, every
 * {@code every_seconds}. Of several due versions it takes the newest and skips the others. Confined to one thread.
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
     * The version to evaluate.
     *
     * @param passedOver skipped earlier due versions
     */
    record Due(long version, long passedOver) {}

    /**
     * Returns the version to evaluate now.
     *
     * @param evaluated newest evaluated version; empty if none is
     * @param newest newest published version
     * @param nanos of a monotonic clock
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
            return Optional.of(new Due(0, 0)); // the initial policy, even if newer versions are there
        }
        long every = config.everyVersions();
        long due = (last / every + 1) * every;
        if (newest >= due) {
            long chosen = newest / every * every;
            return Optional.of(new Due(chosen, (chosen - due) / every));
        }
        return newest == maxSteps ? Optional.of(new Due(newest, 0)) : Optional.empty();
    }

    /** Marks a version as tried, successful or not: it is not due again. */
    void took(long version, long nanos) {
        tried = OptionalLong.of(Math.max(version, tried.orElse(version)));
        triedNanos = nanos;
    }
}
