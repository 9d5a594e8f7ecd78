package dev.millrace.topology;

import dev.millrace.topology.state.StateStores;
import java.util.List;

/**
 * How the stream engine runs the topology.
 *
 * @param threads stream threads, at least 1
 * @param commitIntervalMs longest time that what was made waits for its commit; a batch, and the end of a burst, are committed at
 *     once; where the input lags by more than two intervals, and state without output, after four
 * @param maxTaskIdleMs extra wait of a task for an empty partition; -1 does not wait at all, and order may differ
 *     between runs
 * @param stateStores state stores
 * @param storeCacheBytes cache before the changelog, at least 0
 * @param memberCacheBytes heap per policy for log-probs of unbatched trajectories, at least 0; the log serves the rest
 * @param rocksdbBytes memory of all RocksDB stores, half block cache, half memtables; at least 8 MiB
 * @param bufferedRecords records buffered per partition, at least 1
 * @param standbyReplicas standby replicas, at least 0
 * @param rebalanceProtocol {@code classic}, {@code streams}, or {@code auto} ({@code streams} if the broker has it);
 *     only {@code classic} recovers its partitions at once after a crash
 * @param sessionTimeoutMs session timeout, at least 3000
 * @param instanceId static member name; empty for one kept in the state directory
 * @param transactionTimeoutMs timeout of an open transaction, at least 1000; it blocks readers until then
 * @param compression {@code none}, {@code lz4}, {@code zstd}, {@code snappy} or {@code gzip}
 * @param startTimeoutMs start timeout, at least 1000; 0 is {@code run.patience_seconds}
 * @param stopTimeoutMs stop timeout, at least 1000
 * @param alarmAfterMs time without progress that raises an alarm, at least 1000; slow stages get three times their
 *     shortest recent interval
 */
public record RuntimeConfig(
        int threads,
        long commitIntervalMs,
        long maxTaskIdleMs,
        StateStores.Kind stateStores,
        long storeCacheBytes,
        long memberCacheBytes,
        long rocksdbBytes,
        int bufferedRecords,
        int standbyReplicas,
        RebalanceProtocol rebalanceProtocol,
        int sessionTimeoutMs,
        String instanceId,
        int transactionTimeoutMs,
        String compression,
        long startTimeoutMs,
        long stopTimeoutMs,
        long alarmAfterMs) {

    private static final int STATE_INTERVALS = 4;
    private static final long MIN_ROCKSDB_BYTES = 8L << 20;
    private static final List<String> COMPRESSIONS = List.of("none", "lz4", "zstd", "snappy", "gzip");

    public RuntimeConfig {
        requireAtLeast("threads", threads, 1);
        requireAtLeast("commit_interval_ms", commitIntervalMs, 1);
        requireAtLeast("max_task_idle_ms", maxTaskIdleMs, -1);
        requireAtLeast("store_cache_bytes", storeCacheBytes, 0);
        requireAtLeast("member_cache_bytes", memberCacheBytes, 0);
        requireAtLeast("rocksdb_bytes", rocksdbBytes, MIN_ROCKSDB_BYTES);
        requireAtLeast("buffered_records", bufferedRecords, 1);
        requireAtLeast("standby_replicas", standbyReplicas, 0);
        requireAtLeast("session_timeout_ms", sessionTimeoutMs, 3_000);
        if (!instanceId.matches("[A-Za-z0-9._-]{0,100}")) {
            throw new IllegalArgumentException(
                    "instance_id must be at most 100 letters, digits, '-', '_' or '.': '" + instanceId + "'");
        }
        requireAtLeast("transaction_timeout_ms", transactionTimeoutMs, 1_000);
        if (transactionTimeoutMs <= STATE_INTERVALS * commitIntervalMs) {
            throw new IllegalArgumentException("transaction_timeout_ms must be more than " + STATE_INTERVALS
                    + " times commit_interval_ms " + commitIntervalMs + ", or every transaction times out: "
                    + transactionTimeoutMs);
        }
        if (!COMPRESSIONS.contains(compression)) {
            throw new IllegalArgumentException(
                    "compression must be one of " + String.join(", ", COMPRESSIONS) + ": " + compression);
        }
        if (startTimeoutMs != 0) {
            requireAtLeast("start_timeout_ms", startTimeoutMs, 1_000);
        }
        requireAtLeast("stop_timeout_ms", stopTimeoutMs, 1_000);
        requireAtLeast("alarm_after_ms", alarmAfterMs, 1_000);
        if (rebalanceProtocol == RebalanceProtocol.STREAMS && !instanceId.isEmpty()) {
            throw new IllegalArgumentException(
                    "rebalance_protocol=streams must not be set with instance_id='" + instanceId
                            + "', because an instance is no static member of a streams group; leave instance_id out, or set rebalance_protocol=classic");
        }
    }

    private static void requireAtLeast(String key, long value, long least) {
        if (value < least) {
            throw new IllegalArgumentException(key + " must be at least " + least + ": " + value);
        }
    }

    /** Time after which the engine commits consumed offsets, even without output. */
    long engineCommitIntervalMs() {
        return STATE_INTERVALS * commitIntervalMs;
    }

    /** One thread, commits every 100 ms, state in memory. */
    public static RuntimeConfig defaults() {
        return new RuntimeConfig(
                1,
                100,
                0,
                StateStores.Kind.IN_MEMORY,
                16L << 20,
                64L << 20,
                64L << 20,
                250,
                0,
                RebalanceProtocol.CLASSIC,
                6_000,
                "",
                30_000,
                "lz4",
                0,
                20_000,
                60_000);
    }

    /** Returns this configuration with another number of threads and another instance name. */
    public RuntimeConfig with(int otherThreads, String otherInstanceId) {
        return new RuntimeConfig(
                otherThreads,
                commitIntervalMs,
                maxTaskIdleMs,
                stateStores,
                storeCacheBytes,
                memberCacheBytes,
                rocksdbBytes,
                bufferedRecords,
                standbyReplicas,
                rebalanceProtocol,
                sessionTimeoutMs,
                otherInstanceId,
                transactionTimeoutMs,
                compression,
                startTimeoutMs,
                stopTimeoutMs,
                alarmAfterMs);
    }
}
