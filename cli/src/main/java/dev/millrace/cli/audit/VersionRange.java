package dev.millrace.cli.audit;

import dev.millrace.audit.ledger.Balance;
import dev.millrace.audit.ledger.RolloutOrigin;
import dev.millrace.audit.ledger.Tally;
import dev.millrace.runtime.config.ConfigException;
import java.util.SortedMap;
import java.util.TreeMap;

/** Range of shown versions: {@code from} to {@code to}, inclusive. */
record VersionRange(long from, long to) {
    VersionRange {
        if (from > to) {
            throw new ConfigException(
                    "--from-version " + from + " is newer than --to-version " + to + "; the range is empty");
        }
    }

    /** True if all are shown, including records without a version. */
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
