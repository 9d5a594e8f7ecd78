package dev.millrace.weights;

import dev.millrace.policy.weights.Dtype;
import dev.millrace.weights.store.ObjectStore;
import java.util.Objects;

/**
 * How versions are written to the log and read.
 *
 * @param store store of weights and optimizer state: {@code kafka}, a shared {@code file:///path}, or
 *     {@code s3://bucket/prefix}
 * @param optimizerStore store of the optimizer state; empty is {@code store}
 * @param dtype {@code f32}, or {@code bf16}, which rounds published weights; the optimizer stays f32; runs from a
 *     checkpoint default to {@code bf16}
 * @param anchorEvery versions per anchor, deltas between; 0 is 8, or 16 for {@code bf16} from 64 MiB
 * @param checkpointEvery versions per optimizer checkpoint; a restart re-learns the steps since; 0 is one per 16 MiB of
 *     state (1 MiB for adapters), at most 64
 * @param keepVersions newest versions to keep; older ones go once unused; 0 removes none
 * @param unservedAlarmMs time until an unserved version raises an alarm
 * @param onBrokenVersion at a missing or corrupt version, {@code wait} for the next readable one or {@code stop}
 * @param chunkBytes largest chunk per record, a multiple of 4 up to 983040
 * @param keptManifests newest versions that a reader can use
 * @param readTimeoutMs longest wait without progress while reading; 0 is {@code run.patience_seconds}
 * @param sendTimeoutMs timeout of a version's acknowledgement; 0 is {@code run.patience_seconds}
 */
public record WeightsConfig(
        String store,
        String optimizerStore,
        Dtype dtype,
        int anchorEvery,
        int checkpointEvery,
        int keepVersions,
        long unservedAlarmMs,
        BrokenVersionPolicy onBrokenVersion,
        int chunkBytes,
        int keptManifests,
        long readTimeoutMs,
        long sendTimeoutMs) {

    private static final long BYTES_A_VERSION = 16L << 20;
    private static final long BYTES_AN_ADAPTER = 1L << 20;
    private static final int MOST_BETWEEN = 64;
    private static final long LARGE_VERSION = 64L << 20;
    private static final int CHAIN = 8;
    private static final int LONG_CHAIN = 16;

    public WeightsConfig {
        ObjectStore.of(store);
        ObjectStore.of(optimizerStore.isEmpty() ? store : optimizerStore);
        Objects.requireNonNull(dtype, "dtype must be f32 or bf16");
        if (anchorEvery < 0) {
            throw new IllegalArgumentException(
                    "anchor_every must be at least 1, or 0 to decide by the model's size: " + anchorEvery);
        }
        if (checkpointEvery < 0) {
            throw new IllegalArgumentException(
                    "checkpoint_every must be at least 1, or 0 to decide by the model's size: " + checkpointEvery);
        }
        if (keepVersions < 0) {
            throw new IllegalArgumentException("keep_versions must be at least 1, or 0 to keep all: " + keepVersions);
        }
        atLeastOne("unserved_alarm_ms", unservedAlarmMs);
        Objects.requireNonNull(onBrokenVersion, "on_broken_version must be wait or stop");
        TensorChunks.requireChunkBytes(chunkBytes);
        atLeastOne("kept_manifests", keptManifests);
        if (readTimeoutMs < 0 || sendTimeoutMs < 0) {
            throw new IllegalArgumentException(
                    "read_timeout_ms and send_timeout_ms must be at least 1, or 0 for the run's patience: "
                            + readTimeoutMs + " and " + sendTimeoutMs);
        }
        int longest = checkpointEvery == 0 ? MOST_BETWEEN : checkpointEvery;
        int chain = anchorEvery == 0 ? LONG_CHAIN : anchorEvery;
        if (keptManifests < (long) keepVersions + chain + longest) {
            throw new IllegalArgumentException("kept_manifests must be at least keep_versions=" + keepVersions
                    + ", anchor_every=" + chain + " and checkpoint_every=" + longest
                    + " together, or a reader forgets the anchor of a version that is kept, or of its checkpoint: "
                    + keptManifests);
        }
    }

    /** Store of the optimizer's state, in the format of {@link #store}. */
    public String stateStore() {
        return optimizerStore.isEmpty() ? store : optimizerStore;
    }

    /** Versions per anchor, at least 1. */
    public int anchorEvery(VersionSize size) {
        if (anchorEvery > 0) {
            return anchorEvery;
        }
        return dtype == Dtype.BF16 && versionBytes(size) >= LARGE_VERSION ? LONG_CHAIN : CHAIN;
    }

    /** Versions per optimizer checkpoint, at least 1. */
    public int checkpointEvery(VersionSize size) {
        if (checkpointEvery > 0) {
            return checkpointEvery;
        }
        long bytesAVersion = size.isAdapter() ? BYTES_AN_ADAPTER : BYTES_A_VERSION;
        long every = (stateBytes(size) + bytesAVersion - 1) / bytesAVersion;
        return (int) Math.max(1, Math.min(MOST_BETWEEN, every));
    }

    public long versionBytes(VersionSize size) {
        return dtype.bytes() * size.parameters();
    }

    /** Size of a policy's optimizer state. */
    public long stateBytes(VersionSize size) {
        return OptimizerTensors.bytes(size.parameters(), dtype);
    }

    public static WeightsConfig defaults() {
        return new WeightsConfig(
                "kafka", "", Dtype.F32, 0, 0, 512, 30_000, BrokenVersionPolicy.WAIT, 512 * 1024, 1024, 0, 0);
    }

    public WeightsConfig with(Dtype other) {
        return with(other, keptManifests);
    }

    /**
     * Returns how many of the newest manifests a reader must know to read a version this far back, including those of
     * its anchor's chain.
     */
    int manifestsBackTo(long versionsBack) {
        int chain = anchorEvery == 0 ? LONG_CHAIN : anchorEvery;
        return (int) Math.min(Integer.MAX_VALUE, Math.max(0, versionsBack) + chain + 1L);
    }

    /** Returns this configuration for a reader that knows this number of manifests. */
    public WeightsConfig knowing(int manifests) {
        return with(dtype, manifests);
    }

    private WeightsConfig with(Dtype other, int manifests) {
        return new WeightsConfig(
                store,
                optimizerStore,
                other,
                anchorEvery,
                checkpointEvery,
                keepVersions,
                unservedAlarmMs,
                onBrokenVersion,
                chunkBytes,
                manifests,
                readTimeoutMs,
                sendTimeoutMs);
    }

    private static void atLeastOne(String key, long value) {
        if (value < 1) {
            throw new IllegalArgumentException(key + " must be at least 1: " + value);
        }
    }
}
