package dev.millrace.weights;

import java.util.Map;

/**
 * What a manifest says about a version besides its tensors; see {@link dev.millrace.schemas.PolicyVersion}.
 *
 * @param version          0 for the initial weights
 * @param batchId          the batch that made it; -1 for the initial weights
 * @param tokenizerHash    identity of the vocabulary
 * @param rolloutsConsumed in all batches so far
 * @param tokensTrained    in all batches so far
 * @param publishedAtMs    Unix milliseconds
 * @param controls         what the learner's step controls remember, by name
 */
public record VersionFacts(
        long version,
        long batchId,
        String tokenizerHash,
        long rolloutsConsumed,
        long tokensTrained,
        long publishedAtMs,
        Map<String, Double> controls) {

    /** With nothing remembered. */
    public VersionFacts(
            long version,
            long batchId,
            String tokenizerHash,
            long rolloutsConsumed,
            long tokensTrained,
            long publishedAtMs) {
        this(version, batchId, tokenizerHash, rolloutsConsumed, tokensTrained, publishedAtMs, Map.of());
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

    /** The version this one was made from; -1 for the initial weights. */
    public long parentVersion() {
        return version - 1;
    }
}
