package dev.millrace.corrections.staleness;

import dev.millrace.corrections.stage.MaskStage;
import dev.millrace.corrections.stage.StageBatch;
import dev.millrace.corrections.stage.StageInput;
import dev.millrace.corrections.stage.StageOutcome;
import dev.millrace.corrections.stage.StageSettings;
import java.util.Arrays;
import java.util.Map;
import java.util.Set;

/**
 * Hard limit on staleness: tokens, or whole sequences, more than {@code maxVersions} versions behind the current one
 * are not trained on.
 *
 * <p>Masking tokens keeps the fresh tail of a sequence that a weight swap divided, and its siblings keep their
 * baseline; rejecting the sequence keeps credit assignment within one answer whole. A limit of 0 admits on-policy
 * tokens only.
 *
 * <p>Unit: token ({@link #maskTokens}) or sequence ({@link #rejectSequences}). Immutable and thread-safe.
 *
 * @param maxVersions largest admitted staleness, in versions, not negative
 */
public record StalenessLimit(long maxVersions) implements MaskStage {
    public StalenessLimit {
        if (maxVersions < 0) {
            throw new IllegalArgumentException("max_versions must be at least 0: " + maxVersions);
        }
    }

    @Override
    public String name() {
        return "staleness";
    }

    @Override
    public Set<StageInput> inputs() {
        return Set.of(StageInput.VERSIONS);
    }

    /** Masks tokens; mean and oldest are over the sequences' own trained tokens, and 0 where there is none. */
    @Override
    public StageOutcome apply(StageBatch batch) {
        byte[] keep = new byte[batch.left().tokenCount()];
        long version = batch.facts().version();
        StalenessSummary summary = maskTokens(batch.facts().versions(), version, keep);
        Map<String, Double> values = StageSettings.of(this);
        values.put("current_version", (double) version);
        values.put("mean", summary.mean());
        values.put("oldest", (double) summary.oldest());
        return batch.mask(this, keep, values);
    }

    /**
     * Overwrites {@code mask}, one byte per packed token: 1 if trained and fresh enough, else 0.
     *
     * @throws IllegalArgumentException if the mask has not one element per token, or a span is newer than
     *     {@code currentVersion}
     */
    public StalenessSummary maskTokens(BatchVersions versions, long currentVersion, byte[] mask) {
        return decide(versions, currentVersion, mask, false);
    }

    /**
     * Overwrites {@code mask}: 1 if trained and no trained token of the sequence is staler than the limit, else 0.
     *
     * @throws IllegalArgumentException as {@link #maskTokens}
     */
    public StalenessSummary rejectSequences(BatchVersions versions, long currentVersion, byte[] mask) {
        return decide(versions, currentVersion, mask, true);
    }

    private StalenessSummary decide(BatchVersions versions, long currentVersion, byte[] mask, boolean wholeSequence) {
        var batch = versions.batch();
        batch.requireLength("mask", mask.length);
        batch.copyMask(0, mask, 0, mask.length);
        long oldest = 0;
        double sum = 0;
        for (int s = 0; s < batch.sequenceCount(); s++) {
            int start = batch.start(s);
            boolean stale = false;
            for (VersionSpan span : versions.spans(s)) {
                long staleness = BatchVersions.staleness(s, span, currentVersion);
                int trained = versions.trainedTokens(s, span);
                if (trained > 0) {
                    oldest = Math.max(oldest, staleness);
                    sum += (double) trained * staleness;
                }
                if (staleness > maxVersions && trained > 0) {
                    stale = true;
                    Arrays.fill(mask, start + span.start(), start + span.end(), (byte) 0);
                }
            }
            if (wholeSequence && stale) {
                Arrays.fill(mask, start, batch.end(s), (byte) 0);
            }
        }
        return new StalenessSummary(oldest, batch.trainedTokens() == 0 ? 0.0 : sum / batch.trainedTokens());
    }
}
