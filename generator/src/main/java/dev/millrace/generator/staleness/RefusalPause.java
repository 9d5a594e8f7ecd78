package dev.millrace.generator.staleness;

import java.time.Duration;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Holds releases back while nearly everything is refused or fails: more samples than the limit without a new policy version.
 *
 * <p>Whatever is wrong then, such as another vocabulary on one side or a verifier that answers garbage, releasing more only fills
 * the dead letters and the outcomes. Once a while a
 * batch's worth is released all the same, to see whether it has been mended; a new version ends the pause. Confined to
 * admission's thread.
 */
final class RefusalPause {
    private static final Logger LOG = LoggerFactory.getLogger(RefusalPause.class);
    private static final Duration TRY_AGAIN = Duration.ofSeconds(60);

    private final long limit;
    private final long trial;
    private long sinceVersion;
    private boolean isPaused;
    private long pausedAt;

    /**
     * @param limit samples that may be refused while no new version appears
     * @param trial of these, how many are forgiven after a while
     */
    RefusalPause(long limit, long trial) {
        this.limit = limit;
        this.trial = trial;
    }

    void refused(long samples, String reason) {
        sinceVersion += samples;
        if (sinceVersion > limit && !isPaused) {
            isPaused = true;
            pausedAt = System.nanoTime();
            LOG.warn(
                    "{} samples were refused, ended unfinished or left with a batch that failed while no new policy version appeared, more than the"
                            + " dead_letter_limit_batches: no prompts are released but one batch every {} s, until a version"
                            + " appears; millrace dead-letters list and millrace trace say what is wrong; the last is {}",
                    sinceVersion,
                    TRY_AGAIN.toSeconds(),
                    reason);
        }
    }

    /** A new version has appeared. */
    void progress() {
        if (isPaused) {
            LOG.info("a new policy version has appeared: prompts are released as before");
        }
        sinceVersion = 0;
        isPaused = false;
    }

    boolean isPaused() {
        return isPaused;
    }

    /** Whether prompts may be released now. */
    boolean mayRelease(long nowNanos) {
        if (isPaused && nowNanos - pausedAt > TRY_AGAIN.toNanos()) {
            isPaused = false;
            sinceVersion = Math.max(0, limit - trial);
        }
        return !isPaused;
    }
}
