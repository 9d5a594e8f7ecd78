package dev.millrace.log.run;

import dev.millrace.schemas.EpochParent;
import java.util.Map;
import java.util.Optional;

/**
 * One epoch of a run, as the log keeps it for ever.
 *
 * @param parent version of an older epoch that it began from; empty for a run's first
 * @param beganAt end offset of each partition when it began, by {@code topic-partition}; empty for a run's first
 * @param claimedAtMs when it began, Unix milliseconds
 */
public record EpochClaim(int epoch, Optional<EpochParent> parent, Map<String, Long> beganAt, long claimedAtMs) {
    public EpochClaim {
        beganAt = Map.copyOf(beganAt);
    }
}
