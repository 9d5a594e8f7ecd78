package dev.millrace.audit.doctor;

import dev.millrace.audit.ledger.Account;
import dev.millrace.corrections.diagnostics.Diagnosis;
import dev.millrace.log.alarm.Alarm;
import dev.millrace.schemas.Serving;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;

/**
 * What is known of a run at one moment.
 *
 * @param account the ledger
 * @param serving the last record of each generator and scorer
 * @param newestVersion that was published; empty if none was
 * @param offPolicy why sampler and learner disagree, over the last steps; empty if there is no step yet
 * @param lags records that each consumer group has still to consume, by role
 * @param alarms that last, as far as they are known to the one who asks
 * @param atMs when, Unix milliseconds
 */
public record Examination(
        Account account,
        List<Serving> serving,
        OptionalLong newestVersion,
        Optional<Diagnosis> offPolicy,
        Map<String, Long> lags,
        List<Alarm> alarms,
        long atMs) {

    public Examination {
        serving = List.copyOf(serving);
        alarms = List.copyOf(alarms);
        lags = Map.copyOf(lags);
    }
}
