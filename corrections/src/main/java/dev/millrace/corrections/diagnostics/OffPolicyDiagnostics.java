package dev.millrace.corrections.diagnostics;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.ratio.LogRatio;
import dev.millrace.corrections.ratio.TokenBlock;
import dev.millrace.corrections.staleness.BatchVersions;
import dev.millrace.corrections.staleness.VersionSpan;
import java.util.SortedMap;
import java.util.TreeMap;

/**
 * Every off-policy diagnostic of a batch in one pass: divergences, perplexities, weights, agreement of probabilities,
 * in all and per version lag.
 *
 * <p>Nothing is corrected, and nothing is divided by what a rejection left: the numbers describe the data as it came,
 * so that they still show what a rejection hides. A batch without trained tokens gives a report of zeros.
 *
 * <p>O(tokens); allocates a few numbers per lag.
 */
public final class OffPolicyDiagnostics {
    private OffPolicyDiagnostics() {}

    /** @throws dev.millrace.corrections.NonFiniteLogProbException naming policy, sequence and token */
    public static OffPolicyReport compute(TokenBatch batch, LogRatio ratio) {
        return compute(batch, ratio, true);
    }

    /** As {@link #computeRatios(BatchVersions, long, LogRatio)}, in all only. */
    public static OffPolicyReport computeRatios(TokenBatch batch, LogRatio ratio) {
        return compute(batch, ratio, false);
    }

    private static OffPolicyReport compute(TokenBatch batch, LogRatio ratio, boolean withProbabilities) {
        ratio.requireFits(batch);
        GapSums all = new GapSums();
        GapBlock block = new GapBlock(withProbabilities);
        for (int s = 0; s < batch.sequenceCount(); s++) {
            for (int t = batch.start(s); t < batch.end(s); t += TokenBlock.CAPACITY) {
                if (block.load(batch, ratio, s, t, Math.min(t + TokenBlock.CAPACITY, batch.end(s)))) {
                    all.add(block);
                }
            }
            all.endOfSequence();
        }
        return new OffPolicyReport(all.gap(), new TreeMap<>());
    }

    /**
     * As above, and for each lag the diagnostics of the tokens that were sampled that many versions before
     * {@code currentVersion}.
     *
     * @throws IllegalArgumentException if a token is newer than {@code currentVersion}
     */
    public static OffPolicyReport compute(BatchVersions versions, long currentVersion, LogRatio ratio) {
        return compute(versions, currentVersion, ratio, true);
    }

    /**
     * As {@link #compute(BatchVersions, long, LogRatio)} without what compares the two probabilities, which is half of the work: {@link PolicyGap#probabilities()} is NaN
     * and has no correlation. For where the engines are compared by another report.
     *
     * @throws IllegalArgumentException if a token is newer than {@code currentVersion}
     */
    public static OffPolicyReport computeRatios(BatchVersions versions, long currentVersion, LogRatio ratio) {
        return compute(versions, currentVersion, ratio, false);
    }

    private static OffPolicyReport compute(
            BatchVersions versions, long currentVersion, LogRatio ratio, boolean withProbabilities) {
        TokenBatch batch = versions.batch();
        ratio.requireFits(batch);
        GapSums all = new GapSums();
        GapBlock block = new GapBlock(withProbabilities);
        SortedMap<Long, GapSums> byLag = new TreeMap<>();
        for (int s = 0; s < batch.sequenceCount(); s++) {
            for (VersionSpan span : versions.spans(s)) {
                GapSums ofLag =
                        byLag.computeIfAbsent(BatchVersions.staleness(s, span, currentVersion), lag -> new GapSums());
                int end = batch.start(s) + span.end();
                for (int t = batch.start(s) + span.start(); t < end; t += TokenBlock.CAPACITY) {
                    if (block.load(batch, ratio, s, t, Math.min(t + TokenBlock.CAPACITY, end))) {
                        all.add(block);
                        ofLag.add(block);
                    }
                }
            }
            all.endOfSequence();
            byLag.values().forEach(GapSums::endOfSequence);
        }
        SortedMap<Long, PolicyGap> gaps = new TreeMap<>();
        byLag.forEach((lag, sums) -> gaps.put(lag, sums.gap()));
        return new OffPolicyReport(all.gap(), gaps);
    }
}
