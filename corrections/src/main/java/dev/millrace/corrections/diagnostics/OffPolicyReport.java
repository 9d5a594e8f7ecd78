package dev.millrace.corrections.diagnostics;

import java.util.Collections;
import java.util.SortedMap;
import java.util.TreeMap;

/**
 * How far apart two policies are on a batch, in all and by how many versions a token is behind.
 *
 * @param byLag the same for the tokens of each lag, in versions; empty if no lags were given
 */
public record OffPolicyReport(PolicyGap all, SortedMap<Long, PolicyGap> byLag) {
    public OffPolicyReport {
        byLag = Collections.unmodifiableSortedMap(new TreeMap<>(byLag));
    }
}
