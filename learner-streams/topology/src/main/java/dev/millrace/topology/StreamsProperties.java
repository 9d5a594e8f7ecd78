package dev.millrace.topology;

import dev.millrace.log.LogConnection;
import dev.millrace.log.deadletter.DeadLetters;
import dev.millrace.topology.state.RecordTimestampExtractor;
import dev.millrace.topology.state.SharedRocksDbMemory;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.streams.GroupProtocol;
import org.apache.kafka.streams.StreamsConfig;

/** The settings of the stream engine and its clients for one instance of the topology. */
final class StreamsProperties {
    /** The client's 16 KiB hold one trajectory of a few hundred tokens: every one of them would be a request. */
    private static final int BATCH_BYTES = 256 << 10;

    /** So long a wait for records holds up the commit of what was made. */
    private static final long POLL_MS = 10;

    private StreamsProperties() {}

    /**
     * @param guarantee the engine's {@code processing.guarantee}
     * @param instanceName under which the instance comes back; empty in the broker's streams group, which has no such names
     */
    static Properties of(
            RuntimeConfig config,
            LogConnection connection,
            Path stateDirectory,
            String guarantee,
            String instanceName) {
        Map<String, Object> settings = new HashMap<>();
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, connection.group("topology"));
        settings.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, guarantee);
        settings.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, config.threads());
        settings.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, config.engineCommitIntervalMs());
        settings.put(StreamsConfig.POLL_MS_CONFIG, POLL_MS);
        settings.put(StreamsConfig.MAX_TASK_IDLE_MS_CONFIG, config.maxTaskIdleMs());
        settings.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, config.storeCacheBytes());
        settings.put(StreamsConfig.BUFFERED_RECORDS_PER_PARTITION_CONFIG, config.bufferedRecords());
        // by run: what an earlier run under the same prefix left here is no state of this one
        settings.put(
                StreamsConfig.STATE_DIR_CONFIG,
                stateDirectory.resolve(connection.run().runId()).toString());
        settings.put(StreamsConfig.ROCKSDB_CONFIG_SETTER_CLASS_CONFIG, SharedRocksDbMemory.class);
        settings.put(SharedRocksDbMemory.BYTES, config.rocksdbBytes());
        settings.put(StreamsConfig.DEFAULT_TIMESTAMP_EXTRACTOR_CLASS_CONFIG, RecordTimestampExtractor.class);
        settings.put(StreamsConfig.LOG_SUMMARY_INTERVAL_MS_CONFIG, -1L);
        long patienceMs = connection.patience().toMillis();
        settings.put(StreamsConfig.TASK_TIMEOUT_MS_CONFIG, patienceMs);
        // a task that looks back for a record may wait so long for it, and its connections must outlast it
        int longestPollMs = Math.toIntExact(patienceMs) + config.sessionTimeoutMs();
        settings.put(StreamsConfig.consumerPrefix(ConsumerConfig.MAX_POLL_INTERVAL_MS_CONFIG), longestPollMs);
        settings.put(
                StreamsConfig.consumerPrefix(ConsumerConfig.CONNECTIONS_MAX_IDLE_MS_CONFIG),
                Math.max(longestPollMs, LogConnection.CLIENTS_IDLE_MS));
        if (instanceName.isEmpty()) {
            settings.put(StreamsConfig.GROUP_PROTOCOL_CONFIG, GroupProtocol.STREAMS.name()); // the rest is the group's
        } else {
            settings.put(StreamsConfig.NUM_STANDBY_REPLICAS_CONFIG, config.standbyReplicas());
            settings.put(
                    StreamsConfig.consumerPrefix(ConsumerConfig.SESSION_TIMEOUT_MS_CONFIG), config.sessionTimeoutMs());
            settings.put(
                    StreamsConfig.consumerPrefix(ConsumerConfig.HEARTBEAT_INTERVAL_MS_CONFIG),
                    config.sessionTimeoutMs() / 4);
            settings.put(StreamsConfig.consumerPrefix(ConsumerConfig.GROUP_INSTANCE_ID_CONFIG), instanceName);
        }
        settings.put(StreamsConfig.producerPrefix(ProducerConfig.COMPRESSION_TYPE_CONFIG), config.compression());
        settings.put(StreamsConfig.producerPrefix(ProducerConfig.BATCH_SIZE_CONFIG), BATCH_BYTES);
        if (guarantee.equals(StreamsConfig.EXACTLY_ONCE_V2)) {
            LogConnection.TRANSACTIONAL.forEach((key, value) -> settings.put(StreamsConfig.producerPrefix(key), value));
            settings.put(
                    StreamsConfig.producerPrefix(ProducerConfig.TRANSACTION_TIMEOUT_CONFIG),
                    config.transactionTimeoutMs());
        }
        Properties properties = new Properties();
        connection.streams(settings).forEach((key, value) -> properties.put(key, value));
        // a record of the largest size, refused, is larger by its headers
        properties.put(
                StreamsConfig.producerPrefix(ProducerConfig.MAX_REQUEST_SIZE_CONFIG),
                MillraceTopology.maxRequestBytes(connection) + DeadLetters.MAX_HEADERS_BYTES);
        return properties;
    }

    /** What the transactional ids of an instance with a name begin with. */
    static String transactionalPrefix(LogConnection connection, String instanceName) {
        return connection.scoped("topology") + "-" + instanceName;
    }
}
