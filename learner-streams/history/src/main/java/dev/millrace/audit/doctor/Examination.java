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
 * State of one epoch of a run.
 *
 * @param epoch examined; older ones are in the ledger alone
 * @param newestVersion published; empty if none was
 * @param strayVersion farthest manifest that continues no chain
 * @param offPolicy diagnosis over the last steps; empty before the first
 */
public record Examination(
        int epoch,
        Account account,
        OptionalLong newestVersion,
        OptionalLong strayVersion,
        Optional<Diagnosis> offPolicy,
        HeldOut heldOut,
        Observed observed) {

    /** Of records alone: nobody serves them, and nothing is known of versions and evaluations. */
    public static Examination recorded(int epoch, Account account, Optional<Diagnosis> offPolicy) {
        return new Examination(
                epoch, account, OptionalLong.empty(), OptionalLong.empty(), offPolicy, HeldOut.NONE, Observed.NONE);
    }

    public List<TrainingStep> steps() {
        return account.steps().stream().filter(step -> step.getEpoch() == epoch).toList();
    }

    /** Rollouts of the epoch, and records outside the run. */
    public Tally tally() {
        return account.balance().ofEpoch(epoch);
    }

    /**
     * The roles at a moment.
     *
     * @param serving last record of each generator and scorer
     * @param lags records left per role's consumer group
     * @param alarms known to the caller
     * @param atMs Unix milliseconds
     */
    public record Observed(List<Serving> serving, Map<String, Long> lags, List<Alarm> alarms, long atMs) {
        /** Nobody serves. */
        public static final Observed NONE = new Observed(List.of(), Map.of(), List.of(), 0);

        public Observed {
            serving = List.copyOf(serving);
            alarms = List.copyOf(alarms);
            lags = Map.copyOf(lags);
        }
    }

    /** @param isBestKept the best version's weights exist; true without one */
    public record HeldOut(Evaluations evaluations, boolean isBestKept) {
        /** Without evaluations. */
        public static final HeldOut NONE = new HeldOut(Evaluations.NONE, true);
    }
}
