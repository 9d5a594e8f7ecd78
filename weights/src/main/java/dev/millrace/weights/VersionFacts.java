package dev.millrace.weights;

import dev.millrace.schemas.PolicyVersion;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The fields of a version's manifest without its tensors; see {@link dev.millrace.schemas.PolicyVersion}.
 *
 * @param version          0 for the initial weights
 * @param batchId          the batch that made it; -1 for the initial weights
 * @param publishedAtMs    Unix milliseconds
 * @param controls state of the learner's step controls, by name
 * @param parentEpoch for an epoch's first version, the older epoch from which it takes the version of this number; null
 * otherwise
 */
public record VersionFacts(
        long version,
        long batchId,
        String tokenizerHash,
        Progress progress,
        long publishedAtMs,
        Map<String, Double> controls,
        @Nullable Integer parentEpoch) {

    /** Totals of all batches so far. */
    public record Progress(long rolloutsConsumed, long tokensTrained) {}

    /** For a version without control state or parent epoch. */
    public VersionFacts(
            long version,
            long batchId,
            String tokenizerHash,
            long rolloutsConsumed,
            long tokensTrained,
            long publishedAtMs) {
        this(
                version,
                batchId,
                tokenizerHash,
                new Progress(rolloutsConsumed, tokensTrained),
                publishedAtMs,
                Map.of(),
                null);
    }

    public VersionFacts {
        controls = Map.copyOf(controls);
        if (version < 0) {
            throw new IllegalArgumentException("a version is at least 0: " + version);
        }
        if ((version == 0) != (batchId == -1)) {
            throw new IllegalArgumentException(
                    "version 0, and only that, is made by no batch (-1): version=" + version + ", batch=" + batchId);
        }
    }

    /** Returns the facts of the first version of an epoch that continues from an older epoch's version. */
    public static VersionFacts firstOfEpoch(PolicyVersion parent, long publishedAtMs) {
        return new VersionFacts(
                parent.getVersion(),
                parent.getBatchId(),
                parent.getTokenizerHash(),
                new Progress(parent.getRolloutsConsumed(), parent.getTokensTrained()),
                publishedAtMs,
                parent.getControls(),
                parent.getEpoch());
    }

    /** The parent version; -1 for the initial weights, and its own number for an epoch's first. */
    public long parentVersion() {
        return parentEpoch == null ? version - 1 : version;
    }
}
