package dev.millrace.topology;

import dev.millrace.topology.state.StateStores;
import java.util.Map;

/**
 * How the stream engine runs the topology.
 *
 * @param threads stream threads of this instance, at least 1
 * @param commitIntervalMs a transaction is committed this often; what a record waits for, on average, is half of it
 *     at each of the two hops
 * @param maxTaskIdleMs how long a task waits for a partition that is empty, although the broker has no more of it;
 *     0 waits until the broker says so and no longer; -1 does not even ask, and gives up on the same order twice
 * @param stateStores where state is kept between restarts
 * @param storeCacheBytes memory in which updates of one key are merged before they reach the changelog, at least 0
 * @param standbyReplicas further instances that keep a copy of the state, at least 0
 * @param sessionTimeoutMs an instance that is not heard of for so long loses its partitions to the others
 * @param instanceId a name under which this instance keeps its partitions over a restart (static membership);
 *     empty for an instance that leaves the group when it stops
 * @param transactionTimeoutMs the broker ends a transaction that was left open after so long; until then nobody
 *     reads what comes behind it, which is what a crash without a state directory costs
 * @param maxRecordBytes largest record that is written, at most the topics' {@code max.message.bytes}
 * @param compression compression of what is written: none, lz4, zstd, snappy or gzip
 * @param stallAfterMs the run stops if no task has made progress for so long although there is input; 0 never stops it
 * @param clientProperties further settings of the stream engine and its clients, by their own names
 */
public record RuntimeConfig(int threads, long commitIntervalMs, long maxTaskIdleMs, StateStores.Kind stateStores,
    long storeCacheBytes, int standbyReplicas, int sessionTimeoutMs, String instanceId, int transactionTimeoutMs,
    int maxRecordBytes, String compression, Map<String, String> clientProperties) {
}
