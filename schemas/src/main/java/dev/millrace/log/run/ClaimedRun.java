package dev.millrace.log.run;

import dev.millrace.schemas.EpochParent;
import dev.millrace.schemas.run.EpochLineage;
import dev.millrace.schemas.run.EpochLineage.Ancestor;
import dev.millrace.schemas.run.RunIdentity;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * What the claim of a topic prefix says.
 *
 * @param run whose it is
 * @param configuration what the run computes, as its creator recorded it; empty if nobody did
 * @param before whether the claim was there before it was asked for
 * @param parent version of an older epoch that this epoch began from; empty for a run's first epoch
 * @param place the cluster and topics that were recorded
 * @param beganAt where on the log the epoch began: end offset by topic-partition, as {@code rollouts-0}; empty for a run's first
 *     epoch, which begins where the log does
 * @param epochs every epoch of the run, the oldest first
 */
public record ClaimedRun(
        RunIdentity run,
        Optional<String> configuration,
        boolean before,
        Optional<EpochParent> parent,
        LogPlace place,
        Map<String, Long> beganAt,
        List<EpochClaim> epochs) {
    public ClaimedRun {
        beganAt = Map.copyOf(beganAt);
        epochs = List.copyOf(epochs);
    }

    /**
     * Where an epoch comes from.
     *
     * @throws LogSetupException if the run has no such epoch
     */
    public EpochLineage lineage(int epoch) {
        EpochClaim claim = epoch(epoch);
        List<Ancestor> ancestors = new ArrayList<>();
        Optional<EpochParent> older = claim.parent();
        while (older.isPresent() && older.get().getEpoch() < epoch) {
            EpochParent of = older.get();
            ancestors.add(new Ancestor(of.getEpoch(), of.getVersion(), of.getWeightsSha256()));
            older = epochs.stream()
                    .filter(known -> known.epoch() == of.getEpoch())
                    .findFirst()
                    .flatMap(EpochClaim::parent);
        }
        return new EpochLineage(claim.beganAt(), ancestors);
    }

    /** Where the epoch after this one began, as {@link EpochClaim#beganAt}; empty for the newest, which continues. */
    public Map<String, Long> endedAt(int epoch) {
        return epochs.stream()
                .filter(known -> known.epoch() > epoch)
                .findFirst()
                .map(EpochClaim::beganAt)
                .orElse(Map.of());
    }

    private EpochClaim epoch(int epoch) {
        return epochs.stream()
                .filter(known -> known.epoch() == epoch)
                .findFirst()
                .orElseThrow(() -> new LogSetupException("run " + run.runId() + " has no epoch " + epoch + "; it has "
                        + epochs.stream().map(EpochClaim::epoch).toList()));
    }
}
