package dev.millrace.weights;

/**
 * How versions are written to the log and read back.
 *
 * @param chunkBytes     largest piece of a tensor in one record; a multiple of 4 up to 983040
 * @param keptManifests  how many of the newest versions a reader knows; older ones are unavailable to it
 * @param readTimeoutMs  longest wait without progress while reading a version, and for the first look at the log
 * @param sendTimeoutMs  longest wait for the acknowledgement of a version's chunks
 */
public record WeightsConfig(int chunkBytes, int keptManifests, long readTimeoutMs, long sendTimeoutMs) {

    public WeightsConfig {
        TensorChunks.requireChunkBytes(chunkBytes);
        atLeastOne("kept_manifests", keptManifests);
        atLeastOne("read_timeout_ms", readTimeoutMs);
        atLeastOne("send_timeout_ms", sendTimeoutMs);
    }

    public static WeightsConfig defaults() {
        return new WeightsConfig(512 * 1024, 1024, 30_000, 60_000);
    }

    private static void atLeastOne(String key, long value) {
        if (value < 1) {
            throw new IllegalArgumentException(key + " must be at least 1: " + value);
        }
    }
}
