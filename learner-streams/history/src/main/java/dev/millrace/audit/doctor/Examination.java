package dev.millrace.audit.doctor;

import dev.millrace.audit.ledger.Account;
import dev.millrace.audit.ledger.Tally;
import dev.millrace.corrections.diagnostics.Diagnosis;
import dev.millrace.log.Alarm;
import dev.millrace.log.Evaluations;
import dev.millrace.schemas.Serving;
import dev.millrace.schemas.TrainingStep;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;

/**
 * What is known of one epoch of a run at one moment.
 *
 * @param epoch that is examined; older ones are in the ledger alone
 * @param account the ledger, over all epochs
 * @param serving the last record of each generator and scorer
 * @param newestVersion that was published; empty if none was
 * @param strayVersion the farthest that a manifest names which continues no chain; empty if none does
 * @param offPolicy why sampler and learner disagree, over the last steps; empty if there is no step yet
 * @param heldOut how its versions do on held-out prompts
 * @param lags records that each consumer group has still to consume, by role
 * @param alarms that last, as far as they are known to the one who asks
 * @param atMs when, Unix milliseconds
 */
public record Examination(
        int epoch,
        Account account,
        List<Serving> serving,
        OptionalLong newestVersion,
        OptionalLong strayVersion,
        Optional<Diagnosis> offPolicy,
        HeldOut heldOut,
        Map<String, Long> lags,
        List<Alarm> alarms,
        long atMs) {

    public Examination {
        serving = List.copyOf(serving);
        alarms = List.copyOf(alarms);
        lags = Map.copyOf(lags);
    }

    /** The epoch's own steps, in order: those of an older one were another course. */
    public List<TrainingStep> steps() {
        return account.steps().stream().filter(step -> step.getEpoch() == epoch).toList();
    }

    /** Returns the ends of the epoch's own rollouts, and of records that do not belong to the run. */
    public Tally tally() {
        return account.balance().ofEpoch(epoch);
    }

    /**
     * What is known of a run's versions on held-out prompts.
     *
     * @param evaluations those that can be compared
     * @param isBestKept whether the best one's weights are still there; true without one
     */
    public record HeldOut(Evaluations evaluations, boolean isBestKept) {
        /** Nothing was evaluated. */
        public static final HeldOut NONE = new HeldOut(Evaluations.NONE, true);
    }
}
