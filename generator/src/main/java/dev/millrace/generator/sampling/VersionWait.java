package dev.millrace.generator.sampling;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Holds a prompt until weights at least as new as its admitted version arrive, which bounds staleness; after {@code
 * version_wait_ms} it starts with older ones. Confined to one thread.
 */
public final class VersionWait {
    private static final Logger LOG = LoggerFactory.getLogger(VersionWait.class);

    private final GeneratorConfig config;
    private long awaited = -1;
    private long awaitedSince;
    private long gaveUpWaitingFor = -1;

    public VersionWait(GeneratorConfig config) {
        this.config = config;
    }

    /**
     * True if the prompt may start.
     *
     * @param admittedVersion that admission knew
     * @param served that would sample it now
     */
    public boolean mayBegin(long admittedVersion, long served) {
        if (admittedVersion <= Math.max(served, gaveUpWaitingFor)) {
            return true;
        }
        long now = SamplingLoop.monotonicMs();
        if (awaited != admittedVersion) {
            awaited = admittedVersion;
            awaitedSince = now;
        }
        if (now - awaitedSince < config.versionWaitMs()) {
            return false;
        }
        LOG.warn(
                "generator {} samples with version {}: version {}, which admission knew, did not come within {} ms"
                        + " (version_wait_ms)",
                config.id(),
                served,
                admittedVersion,
                config.versionWaitMs());
        gaveUpWaitingFor = admittedVersion;
        return true;
    }
}
