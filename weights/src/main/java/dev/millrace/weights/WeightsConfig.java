package dev.millrace.weights;

import java.util.Objects;

/**
 * How versions are written to the log and read back.
 *
 * @param anchorEvery     every so many versions one is written whole, an anchor, and those between as deltas against
 *     their parent; 1 writes every version whole
 * @param onBrokenVersion what a generator or scorer does when a version, or a link of its chain of deltas, is missing or
 *     corrupt: {@code wait} for the next that can be put together, or {@code stop}
 * @param chunkBytes      largest piece of a tensor in one record; a multiple of 4 up to 983040
 * @param keptManifests   how many of the newest versions a reader knows; older ones are unavailable to it
 * @param readTimeoutMs   longest wait without progress while reading a version, and for the first look at the log
 * @param sendTimeoutMs   longest wait for the acknowledgement of a version's chunks
 */
public record WeightsConfig(int anchorEvery, OnBrokenVersion onBrokenVersion, int chunkBytes, int keptManifests,
        long readTimeoutMs, long sendTimeoutMs) {

    public WeightsConfig {
        atLeastOne("anchor_every", anchorEvery);
        Objects.requireNonNull(onBrokenVersion, "on_broken_version must be wait or stop");
        TensorChunks.requireChunkBytes(chunkBytes);
        atLeastOne("kept_manifests", keptManifests);
        atLeastOne("read_timeout_ms", readTimeoutMs);
        atLeastOne("send_timeout_ms", sendTimeoutMs);
        if (keptManifests < anchorEvery) {
            throw new IllegalArgumentException("kept_manifests must be at least anchor_every=" + anchorEvery
                + ", or a reader forgets the anchor of the newest version: " + keptManifests);
        }
    }

    public static WeightsConfig defaults() {
        return new WeightsConfig(8, OnBrokenVersion.WAIT, 512 * 1024, 1024, 30_000, 60_000);
    }

    private static void atLeastOne(String key, long value) {
        if (value < 1) {
            throw new IllegalArgumentException(key + " must be at least 1: " + value);
        }
    }
}
