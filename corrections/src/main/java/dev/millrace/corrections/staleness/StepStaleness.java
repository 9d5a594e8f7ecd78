package dev.millrace.corrections.staleness;

import dev.millrace.corrections.TokenBatch;
import java.util.Collections;
import java.util.Map;
import java.util.Optional;
import java.util.SortedMap;
import java.util.TreeMap;

/**
 * How stale the tokens of a step are: the version at its start less the version that sampled a token, and the two parts of
 * that, in versions.
 *
 * @param max the largest
 * @param inFlightMean the part until the sequence was scored, mean
 * @param inQueueMean the part from then until the step started, mean; both parts together are {@code mean}
 * @param tokensAt how many tokens are so stale, by staleness; a copy is kept
 */
public record StepStaleness(
        long tokens, double mean, long max, double inFlightMean, double inQueueMean, SortedMap<Long, Long> tokensAt) {

    public StepStaleness {
        tokensAt = Collections.unmodifiableSortedMap(new TreeMap<>(tokensAt));
    }

    /**
     * The least staleness that at least so large a share of the tokens does not exceed.
     *
     * @param share above 0, at most 1
     */
    public long quantile(double share) {
        if (!(share > 0 && share <= 1)) {
            throw new IllegalArgumentException("the share of a quantile must be above 0 and at most 1: " + share);
        }
        long below = 0;
        for (Map.Entry<Long, Long> at : tokensAt.entrySet()) {
            below += at.getValue();
            if (below >= share * tokens) {
                return at.getKey();
            }
        }
        return max;
    }

    /**
     * Over the tokens that a mask leaves.
     *
     * @param left the layout under the mask in force; in a span of {@code versions} wherever it trains
     * @param scoredAt one per sequence: the newest version when it was scored
     * @param version at the start of the step
     * @return empty if no token is left
     * @throws IllegalArgumentException if a span is newer than the step
     */
    public static Optional<StepStaleness> of(TokenBatch left, BatchVersions versions, long[] scoredAt, long version) {
        long tokens = 0;
        long max = 0;
        double sum = 0;
        double inQueue = 0;
        SortedMap<Long, Long> tokensAt = new TreeMap<>();
        for (int s = 0; s < left.sequenceCount(); s++) {
            for (VersionSpan span : versions.spans(s)) {
                int trained = 0;
                for (int t = left.start(s) + span.start(); t < left.start(s) + span.end(); t++) {
                    trained += left.isTrained(t) ? 1 : 0;
                }
                if (trained > 0) {
                    long staleness = BatchVersions.staleness(s, span, version);
                    max = Math.max(max, staleness);
                    sum += (double) trained * staleness;
                    inQueue += (double) trained * (version - scoredAt[s]);
                    tokens += trained;
                    tokensAt.merge(staleness, (long) trained, Long::sum);
                }
            }
        }
        return tokens == 0
                ? Optional.empty()
                : Optional.of(new StepStaleness(
                        tokens, sum / tokens, max, (sum - inQueue) / tokens, inQueue / tokens, tokensAt));
    }
}
