package dev.millrace.weights;

import dev.millrace.policy.weights.Dtype;
import dev.millrace.weights.store.ObjectStore;
import java.util.Objects;

/**
 * How versions are written to the log and read back.
 *
 * @param store           where weights and optimiser state lie: {@code kafka}, or, where they are too large for the cluster,
 *     a directory that all roles see under the same path, as {@code file:///path}, or a bucket, as {@code s3://bucket/prefix}; the
 *     manifest on the log then names files or objects
 * @param optimizerStore  where the optimiser's state lies where that is elsewhere than the weights: written as {@code store} is; empty for
 *     the same place
 * @param dtype           what the values of a version are: {@code f32}, or {@code bf16}, half the size, to whose values each step's
 *     weights are rounded while the optimiser keeps them as float32; a run that begins with a checkpoint has {@code bf16} unless
 *     it says otherwise
 * @param anchorEvery     every so many versions one is written whole, an anchor, and those between as deltas against
 *     their parent; 1 writes every version whole; 0 decides by what a version is: every 8th, and of {@code bf16} from 64 MiB on every
 *     16th, whose deltas are small
 * @param checkpointEvery after so many versions the optimiser's state is on the log again; what lies between, a learner that starts
 *     learns again from the batches. 1 has it with every version; 0 decides by its size: one version for each 16 MiB, for each 1 MiB where
 *     versions are adapters, 64 at most
 * @param keepVersions    how many of the newest versions are kept in any case; older ones are removed once no rollout in
 *     flight, no server and no newer version's chain needs them; 0 removes none
 * @param unservedAlarmMs after so long a published version that a generator or scorer does not serve yet is an alarm
 * @param onBrokenVersion what a generator or scorer does when a version, or a link of its chain of deltas, is missing or
 *     corrupt: {@code wait} for the next that can be put together, or {@code stop}
 * @param chunkBytes      largest piece of a tensor in one record; a multiple of 4 up to 983040
 * @param keptManifests   how many of the newest versions a reader knows; older ones are unavailable to it
 * @param readTimeoutMs   longest wait without progress while reading a version, and for the first look at the log; 0 for
 *     {@code run.patience_seconds}
 * @param sendTimeoutMs   longest wait for the acknowledgement of a version's chunks; 0 for {@code run.patience_seconds}
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
                    "read_timeout_ms and send_timeout_ms must be at least 1, or 0 for the run's" + " patience: "
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

    /** Where the optimiser's state lies, as {@link #store} is written. */
    public String stateStore() {
        return optimizerStore.isEmpty() ? store : optimizerStore;
    }

    /** After how many versions of a policy one is written whole, at least 1. */
    public int anchorEvery(VersionSize size) {
        if (anchorEvery > 0) {
            return anchorEvery;
        }
        return dtype == Dtype.BF16 && versionBytes(size) >= LARGE_VERSION ? LONG_CHAIN : CHAIN;
    }

    /** After how many versions of a policy the optimiser's state is on the log again, at least 1. */
    public int checkpointEvery(VersionSize size) {
        if (checkpointEvery > 0) {
            return checkpointEvery;
        }
        long bytesAVersion = size.isAdapter() ? BYTES_AN_ADAPTER : BYTES_A_VERSION;
        long every = (stateBytes(size) + bytesAVersion - 1) / bytesAVersion;
        return (int) Math.max(1, Math.min(MOST_BETWEEN, every));
    }

    /** Size of a version that is whole. */
    public long versionBytes(VersionSize size) {
        return dtype.bytes() * size.parameters();
    }

    /** Size of the optimiser's state of a policy. */
    public long stateBytes(VersionSize size) {
        return OptimizerTensors.bytes(size.parameters(), dtype);
    }

    public static WeightsConfig defaults() {
        return new WeightsConfig(
                "kafka", "", Dtype.F32, 0, 0, 512, 30_000, BrokenVersionPolicy.WAIT, 512 * 1024, 1024, 0, 0);
    }

    /** The same whose versions are of another type. */
    public WeightsConfig with(Dtype other) {
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
                keptManifests,
                readTimeoutMs,
                sendTimeoutMs);
    }

    /** How many of the newest manifests a reader must know that reads a version so far back: those of its anchor's chain, too. */
    int manifestsBackTo(long versionsBack) {
        int chain = anchorEvery == 0 ? LONG_CHAIN : anchorEvery;
        return (int) Math.min(Integer.MAX_VALUE, Math.max(0, versionsBack) + chain + 1L);
    }

    /** The same for a reader that knows so many manifests. */
    WeightsConfig knowing(int manifests) {
        return new WeightsConfig(
                store,
                optimizerStore,
                dtype,
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
