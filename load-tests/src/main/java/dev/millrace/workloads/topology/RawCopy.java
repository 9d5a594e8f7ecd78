package dev.millrace.workloads.topology;

import dev.millrace.log.LogConnection;
import dev.millrace.log.run.TopicAdministration;
import dev.millrace.log.run.TopicSettings;
import dev.millrace.log.run.TopicsConfig;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.TopicConfig;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Copies topics with a consumer and a transactional producer: read-committed, offsets in the same transaction, the
 * stream engine's interval and client settings.
 *
 * <p>This is the cost of exactly-once delivery alone, the baseline of every ratio. Each thread has its own clients and
 * fixed partitions.
 */
public final class RawCopy {
    private static final int LINGER_MS = 100;
    private static final int BATCH_BYTES = 256 << 10;
    private static final int MAX_POLL_RECORDS = 1000;
    /** The client's own, as is the next. */
    private static final int MAX_IN_FLIGHT = 5;

    private static final int RETRY_BACKOFF_MS = 100;

    private static final long LIMIT_MINUTES = 10;

    private final LogConnection connection;
    private final List<String> topics;
    private final int partitions;
    private final long commitIntervalMs;
    private final String compression;

    /** @param topics of {@code partitions} partitions each */
    public RawCopy(
            LogConnection connection, List<String> topics, int partitions, long commitIntervalMs, String compression) {
        this.connection = connection;
        this.topics = topics;
        this.partitions = partitions;
        this.commitIntervalMs = commitIntervalMs;
        this.compression = compression;
    }

    /**
     * Copies everything present now.
     *
     * @param name suffix of the copied topics
     * @return nanoseconds from the first poll to the last commit
     */
    public long run(String name, int threads) throws InterruptedException {
        Map<TopicPartition, Long> ends = prepare(name);
        ExecutorService pool = Executors.newFixedThreadPool(threads);
        try {
            List<Future<Long>> starts = new ArrayList<>();
            for (int t = 0; t < threads; t++) {
                Map<TopicPartition, Long> share = new HashMap<>();
                int thread = t;
                ends.forEach((partition, end) -> {
                    if (partition.partition() % threads == thread && end > 0) {
                        share.put(partition, end);
                    }
                });
                starts.add(pool.submit(copy(name, t, share)));
            }
            long first = Long.MAX_VALUE;
            for (Future<Long> start : starts) {
                first = Math.min(first, start.get(LIMIT_MINUTES, TimeUnit.MINUTES));
            }
            return System.nanoTime() - first;
        } catch (ExecutionException | java.util.concurrent.TimeoutException e) {
            throw new LoadException("the raw copy failed: " + e, e);
        } finally {
            pool.shutdownNow();
        }
    }

    /** Creates the target topics; returns the end of each partition. */
    private Map<TopicPartition, Long> prepare(String name) throws InterruptedException {
        try (Admin admin = Admin.create(connection.admin());
                TopicAdministration administration =
                        new TopicAdministration(connection.admin(), TopicsConfig.defaults())) {
            Map<String, String> settings = Map.of(
                    TopicConfig.MAX_MESSAGE_BYTES_CONFIG,
                    String.valueOf(connection.clientProperties().get("max.request.size")));
            administration.prepare(topics.stream()
                    .map(topic -> new TopicSettings(topic + name, partitions, settings))
                    .toList());
            Map<TopicPartition, OffsetSpec> latest = new HashMap<>();
            for (String topic : topics) {
                for (int p = 0; p < partitions; p++) {
                    latest.put(new TopicPartition(topic, p), OffsetSpec.latest());
                }
            }
            Map<TopicPartition, Long> ends = new HashMap<>();
            admin.listOffsets(latest).all().get().forEach((partition, end) -> ends.put(partition, end.offset()));
            return ends;
        } catch (ExecutionException e) {
            throw LoadException.of("the raw copy could not be prepared", e);
        }
    }

    private Callable<Long> copy(String name, int thread, Map<TopicPartition, Long> ends) {
        return () -> {
            String group = connection.scoped("copy" + name);
            try (KafkaConsumer<byte[], byte[]> consumer = consumer(group);
                    KafkaProducer<byte[], byte[]> producer = producer(group + "-" + thread)) {
                producer.initTransactions();
                consumer.assign(ends.keySet());
                consumer.seekToBeginning(ends.keySet());
                long began = System.nanoTime();
                Map<TopicPartition, Long> reached = new HashMap<>();
                while (!reached.equals(ends)) {
                    producer.beginTransaction();
                    long commitAt = System.nanoTime() + commitIntervalMs * 1_000_000;
                    do {
                        for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(10))) {
                            producer.send(new ProducerRecord<>(
                                    record.topic() + name,
                                    record.partition(),
                                    record.timestamp(),
                                    record.key(),
                                    record.value()));
                            reached.put(new TopicPartition(record.topic(), record.partition()), record.offset() + 1);
                        }
                    } while (System.nanoTime() < commitAt && !reached.equals(ends));
                    Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
                    reached.forEach((partition, offset) -> offsets.put(partition, new OffsetAndMetadata(offset)));
                    producer.sendOffsetsToTransaction(offsets, consumer.groupMetadata());
                    producer.commitTransaction();
                }
                return began;
            }
        };
    }

    private KafkaConsumer<byte[], byte[]> consumer(String group) {
        return new KafkaConsumer<>(
                connection.consumer(Map.of(
                        ConsumerConfig.GROUP_ID_CONFIG,
                        group,
                        ConsumerConfig.ENABLE_AUTO_COMMIT_CONFIG,
                        false,
                        ConsumerConfig.ISOLATION_LEVEL_CONFIG,
                        "read_committed",
                        ConsumerConfig.MAX_POLL_RECORDS_CONFIG,
                        MAX_POLL_RECORDS)),
                new ByteArrayDeserializer(),
                new ByteArrayDeserializer());
    }

    private KafkaProducer<byte[], byte[]> producer(String transactionalId) {
        return new KafkaProducer<>(
                connection.producer(Map.of(
                        ProducerConfig.TRANSACTIONAL_ID_CONFIG, transactionalId,
                        ProducerConfig.MAX_IN_FLIGHT_REQUESTS_PER_CONNECTION, MAX_IN_FLIGHT,
                        ProducerConfig.RETRY_BACKOFF_MS_CONFIG, RETRY_BACKOFF_MS,
                        ProducerConfig.LINGER_MS_CONFIG, LINGER_MS,
                        ProducerConfig.BATCH_SIZE_CONFIG, BATCH_BYTES,
                        ProducerConfig.COMPRESSION_TYPE_CONFIG, compression)),
                new ByteArraySerializer(),
                new ByteArraySerializer());
    }
}
