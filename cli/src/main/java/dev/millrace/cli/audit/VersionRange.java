package dev.millrace.cli.audit;

import dev.millrace.audit.ledger.Balance;
import dev.millrace.audit.ledger.RolloutOrigin;
import dev.millrace.audit.ledger.Tally;
import dev.millrace.runtime.config.ConfigException;
import java.util.SortedMap;
import java.util.TreeMap;

/** Which versions are shown: {@code from} to {@code to}, both included. */
record VersionRange(long from, long to) {
    VersionRange {
        if (from > to) {
            throw new ConfigException(
                    "--from-version " + from + " is newer than --to-version " + to + "; nothing could be shown");
        }
    }

    /** True if all of them are, records that have no version included. */
    boolean isAll() {
        return from == Long.MIN_VALUE && to == Long.MAX_VALUE;
    }

    SortedMap<RolloutOrigin, Tally> of(Balance balance) {
        SortedMap<RolloutOrigin, Tally> chosen = new TreeMap<>();
        balance.byOrigin().forEach((origin, tally) -> {
            if (isAll()
                    || !origin.equals(RolloutOrigin.NOT_OURS) && origin.version() >= from && origin.version() <= to) {
                chosen.put(origin, tally);
            }
        });
        return chosen;
    }
}
