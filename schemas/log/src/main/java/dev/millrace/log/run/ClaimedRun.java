package dev.millrace.log.run;

import dev.millrace.schemas.EpochParent;
import dev.millrace.schemas.run.RunIdentity;
import java.util.Map;
import java.util.Optional;

/**
 * What the claim of a topic prefix says.
 *
 * @param run whose it is
 * @param configuration what the run computes, as its creator recorded it; empty if nobody did
 * @param before whether the claim was there before it was asked for
 * @param parent which version of which older epoch this epoch began from; empty for a run's first epoch
 * @param place the cluster and topics that were recorded
 * @param beganAt where on the log the epoch began: end offset by topic-partition, as {@code rollouts-0}; empty for a run's first
 *     epoch, which begins where the log does
 */
public record ClaimedRun(
        RunIdentity run,
        Optional<String> configuration,
        boolean before,
        Optional<EpochParent> parent,
        LogPlace place,
        Map<String, Long> beganAt) {
    public ClaimedRun {
        beganAt = Map.copyOf(beganAt);
    }
}
