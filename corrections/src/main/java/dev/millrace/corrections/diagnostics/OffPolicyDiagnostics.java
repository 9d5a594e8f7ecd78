package dev.millrace.corrections.diagnostics;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.ratio.LogRatio;
import dev.millrace.corrections.ratio.TokenBlock;
import dev.millrace.corrections.staleness.BatchVersions;
import dev.millrace.corrections.staleness.VersionSpan;
import java.util.SortedMap;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/**
 * Every off-policy diagnostic of a batch in one pass: divergences, perplexities, weights, agreement of probabilities,
 * in all and per version lag.
 *
 * <p>Nothing is corrected, and nothing is divided by what a rejection left: the numbers describe the data as it came,
 * so that they still show what a rejection hides. A batch without trained tokens gives a report of zeros.
 *
 * <p>Immutable and thread-safe. O(tokens); allocates a few numbers per lag.
 */
public final class OffPolicyDiagnostics {
    private final DiagnosticBounds bounds;

    public OffPolicyDiagnostics(DiagnosticBounds bounds) {
        this.bounds = bounds;
    }

    /**
     * The diagnostics of a batch that nothing has been rejected from.
     *
     * @throws dev.millrace.corrections.NonFiniteLogProbException naming policy, sequence and token
     */
    public OffPolicyReport compute(TokenBatch batch, LogRatio ratio) {
        return compute(batch, ratio, null);
    }

    /**
     * Computes the diagnostics of a batch after a rejection.
     *
     * @param kept one per packed token: 1 = still trained; null if all are; only counted, see
     *     {@link PolicyGap.TokenShares#rejected()}
     */
    public OffPolicyReport compute(TokenBatch batch, LogRatio ratio, byte @Nullable [] kept) {
        return compute(batch, ratio, kept, true);
    }

    /** As {@link #computeRatios(BatchVersions, long, LogRatio)}, in all only. */
    public OffPolicyReport computeRatios(TokenBatch batch, LogRatio ratio) {
        return compute(batch, ratio, null, false);
    }

    private OffPolicyReport compute(
            TokenBatch batch, LogRatio ratio, byte @Nullable [] kept, boolean withProbabilities) {
        ratio.requireFits(batch);
        requireFits(batch, kept);
        GapSums all = new GapSums();
        GapBlock block = new GapBlock(bounds, withProbabilities);
        for (int s = 0; s < batch.sequenceCount(); s++) {
            for (int t = batch.start(s); t < batch.end(s); t += TokenBlock.CAPACITY) {
                if (block.load(batch, ratio, kept, s, t, Math.min(t + TokenBlock.CAPACITY, batch.end(s)))) {
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
     * @param versions which version sampled which tokens of the batch
     * @throws IllegalArgumentException if a token is newer than {@code currentVersion}
     */
    public OffPolicyReport compute(
            BatchVersions versions, long currentVersion, LogRatio ratio, byte @Nullable [] kept) {
        return compute(versions, currentVersion, ratio, kept, true);
    }

    /**
     * The diagnostics of a batch that nothing has been rejected from, in all and by lag, without what compares the two
     * probabilities, which is half of the work: {@link PolicyGap#probabilities()} is NaN, its total variation aside, and has
     * no correlation. For where the engines are compared by another report.
     *
     * @throws IllegalArgumentException if a token is newer than {@code currentVersion}
     */
    public OffPolicyReport computeRatios(BatchVersions versions, long currentVersion, LogRatio ratio) {
        return compute(versions, currentVersion, ratio, null, false);
    }

    private static void requireFits(TokenBatch batch, byte @Nullable [] kept) {
        if (kept != null) {
            batch.requireLength("kept mask", kept.length);
        }
    }

    private OffPolicyReport compute(
            BatchVersions versions,
            long currentVersion,
            LogRatio ratio,
            byte @Nullable [] kept,
            boolean withProbabilities) {
        TokenBatch batch = versions.batch();
        ratio.requireFits(batch);
        requireFits(batch, kept);
        GapSums all = new GapSums();
        GapBlock block = new GapBlock(bounds, withProbabilities);
        SortedMap<Long, GapSums> byLag = new TreeMap<>();
        for (int s = 0; s < batch.sequenceCount(); s++) {
            for (VersionSpan span : versions.spans(s)) {
                GapSums ofLag = byLag.computeIfAbsent(lag(s, span, currentVersion), lag -> new GapSums());
                int end = batch.start(s) + span.end();
                for (int t = batch.start(s) + span.start(); t < end; t += TokenBlock.CAPACITY) {
                    if (block.load(batch, ratio, kept, s, t, Math.min(t + TokenBlock.CAPACITY, end))) {
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

    private static long lag(int sequence, VersionSpan span, long currentVersion) {
        if (span.version() > currentVersion) {
            throw new IllegalArgumentException("a token cannot be newer than the current version: sequence=" + sequence
                    + ", span=" + span + ", currentVersion=" + currentVersion);
        }
        return currentVersion - span.version();
    }
}
