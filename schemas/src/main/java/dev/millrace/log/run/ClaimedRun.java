package dev.millrace.log.run;

import dev.millrace.schemas.EpochParent;
import dev.millrace.schemas.run.EpochLineage;
import dev.millrace.schemas.run.EpochLineage.Ancestor;
import dev.millrace.schemas.run.RunIdentity;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/**
 * What the claim of a topic prefix says.
 *
 * @param configuration what the run computes, as its creator recorded it; empty if nobody did
 * @param before whether the claim was there before it was asked for
 * @param place the cluster and topics that were recorded
 * @param epochs every epoch of the run, the oldest first
 */
public record ClaimedRun(
        RunIdentity run, Optional<String> configuration, boolean before, LogPlace place, List<EpochClaim> epochs) {
    public ClaimedRun {
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

    private EpochClaim epoch(int epoch) {
        return epochs.stream()
                .filter(known -> known.epoch() == epoch)
                .findFirst()
                .orElseThrow(() -> new LogSetupException("run " + run.runId() + " has no epoch " + epoch + "; it has "
                        + epochs.stream().map(EpochClaim::epoch).toList()));
    }
}
