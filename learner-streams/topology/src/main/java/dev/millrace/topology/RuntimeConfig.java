package dev.millrace.topology;

import dev.millrace.topology.state.StateStores;
import java.util.List;

/**
 * How the stream engine runs the topology.
 *
 * @param threads stream threads of this instance, at least 1
 * @param commitIntervalMs a transaction is committed this often; a record waits for half of it on average, at each of
 *     the two hops
 * @param maxTaskIdleMs how long a task goes on waiting for a partition after the broker has said that it has no more
 *     of it; 0 believes the broker at once; -1 does not ask, and then the same input may give another order
 * @param stateStores where state is kept between restarts
 * @param storeCacheBytes memory in which updates of one key are merged before they reach the changelog, at least 0
 * @param memberCacheBytes heap for log-probs of trajectories that are in no batch yet, per policy, at least 0; beyond it
 *     they are read again from the log when their batch is cut
 * @param rocksdbBytes memory for all stores on disk together, half of it for blocks that are read and half for what is
 *     not written yet; at least 8 MiB
 * @param bufferedRecords records of a partition that are read ahead, at least 1; a bound on memory where rollouts are long
 * @param standbyReplicas further instances that keep a copy of the state, at least 0
 * @param rebalanceProtocol how instances share the partitions: {@code classic}, {@code streams}, or {@code auto}, which is
 *     {@code streams} where the broker has it. After a crash only {@code classic} takes its partitions back at once
 * @param sessionTimeoutMs an instance that is not heard of for so long loses its partitions to others, at least 3000
 * @param instanceId a name of its own for this instance, under which it comes back after a crash without waiting for
 *     its former self to time out; empty for a name that its state directory keeps
 * @param transactionTimeoutMs the broker ends a transaction that was left open after so long, at least 1000; until
 *     then nobody reads what comes behind it
 * @param compression of what is written: none, lz4, zstd, snappy or gzip
 * @param startTimeoutMs longest wait for the topology to run, at least 1000; 0 for {@code run.patience_seconds}
 * @param stopTimeoutMs longest wait for it to stop, at least 1000
 * @param alarmAfterMs a stage that waits for so long without progress is an alarm, at least 1000; one whose last three
 *     pieces of progress each took longer may take three times the shortest of them
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
        if (transactionTimeoutMs <= commitIntervalMs) {
            throw new IllegalArgumentException("transaction_timeout_ms must be more than commit_interval_ms "
                    + commitIntervalMs + ", or no transaction lasts: " + transactionTimeoutMs);
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
                    "rebalance_protocol=streams must not be set beside instance_id='" + instanceId
                            + "', because that protocol knows no static members; leave instance_id out, or set rebalance_protocol=classic");
        }
    }

    private static void requireAtLeast(String key, long value, long least) {
        if (value < least) {
            throw new IllegalArgumentException(key + " must be at least " + least + ": " + value);
        }
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
                10_000,
                "lz4",
                0,
                20_000,
                60_000);
    }

    /** The same with so many threads, for the instance of this name. */
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
