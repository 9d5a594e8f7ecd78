package dev.millrace.log.scan;

import dev.millrace.log.LogConnection;
import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.CloseOptions;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.InterruptException;
import org.apache.kafka.common.errors.WakeupException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Reads committed records of partitions that it assigns itself, to an end or for ever.
 *
 * <p>It is a member of no group, so nothing is rebalanced, and it commits nothing; given a {@code group.id}, it can ask what
 * that group has committed. Every reading that has an end also has a time limit, and returns whether it reached the end; the caller decides what
 * that means.
 *
 * <p>Owned by one thread, except {@link #wakeup()} and {@link #stop()}.
 */
public final class LogReader implements AutoCloseable {
    private static final Duration POLL = Duration.ofMillis(200);
    private static final Duration LEISURE = Duration.ofMillis(250);
    /** A fetch that waits at the end of a log delays the next request to the same broker, and the close. */
    private static final int FETCH_WAIT_MS = 100;

    private static final Map<String, Object> SETTINGS = Map.of(
            "isolation.level",
            "read_committed",
            "enable.auto.commit",
            false,
            "auto.offset.reset",
            "earliest",
            "fetch.max.wait.ms",
            FETCH_WAIT_MS);

    private final org.apache.kafka.clients.consumer.Consumer<byte[], byte[]> consumer;
    private final CountDownLatch stopped = new CountDownLatch(1);

    public LogReader(LogConnection connection) {
        this(connection, Map.of());
    }

    /** @param ofRole settings of the role, over the common ones */
    public LogReader(LogConnection connection, Map<String, Object> ofRole) {
        this(connection.consumer(over(ofRole)));
    }

    private LogReader(Map<String, Object> properties) {
        this(new KafkaConsumer<>(properties, new ByteArrayDeserializer(), new ByteArrayDeserializer()));
    }

    /** As {@link #following(LogConnection, Map)}, with the common settings. */
    public static LogReader following(LogConnection connection) {
        return following(connection, Map.of());
    }

    /**
     * Returns a reader for endless polling: at the end of the log its fetches wait for Kafka's default of 500 ms, so that few
     * come back empty. Other requests to the same broker wait with them.
     */
    public static LogReader following(LogConnection connection, Map<String, Object> ofRole) {
        Map<String, Object> settings = new HashMap<>(ofRole);
        settings.put("fetch.max.wait.ms", ConsumerConfig.DEFAULT_FETCH_MAX_WAIT_MS);
        return new LogReader(connection, settings);
    }

    /** Returns a reader of any log, with consumer settings over the common ones. */
    public static LogReader with(Map<String, Object> properties) {
        return new LogReader(over(properties));
    }

    LogReader(org.apache.kafka.clients.consumer.Consumer<byte[], byte[]> consumer) {
        this.consumer = consumer;
    }

    private static Map<String, Object> over(Map<String, Object> ofRole) {
        Map<String, Object> settings = new HashMap<>(SETTINGS);
        settings.putAll(ofRole);
        return settings;
    }

    /**
     * Every partition of a topic.
     *
     * @throws IllegalStateException if there is no such topic
     */
    public List<TopicPartition> partitionsOf(String topic) {
        List<PartitionInfo> found = consumer.partitionsFor(topic);
        if (found == null || found.isEmpty()) {
            throw new IllegalStateException("topic " + topic + " does not exist; create the run's topics first");
        }
        return found.stream()
                .map(info -> new TopicPartition(topic, info.partition()))
                .toList();
    }

    /** Reads all of a topic from its beginning, from the next reading on. */
    public List<TopicPartition> fromBeginning(String topic) {
        List<TopicPartition> partitions = partitionsOf(topic);
        consumer.assign(partitions);
        consumer.seekToBeginning(partitions);
        return partitions;
    }

    /** Reads one partition, from the next reading on. */
    public void from(TopicPartition partition, long offset) {
        consumer.assign(List.of(partition));
        consumer.seek(partition, offset);
    }

    public org.apache.kafka.clients.consumer.Consumer<byte[], byte[]> consumer() {
        return consumer;
    }

    /** The first offset that the log keeps of a partition. */
    public long begin(TopicPartition partition, Duration limit) {
        return Objects.requireNonNull(
                consumer.beginningOffsets(List.of(partition), limit).get(partition));
    }

    /** The offset behind the last committed record of a partition. */
    public long end(TopicPartition partition, Duration limit) {
        return Objects.requireNonNull(
                consumer.endOffsets(List.of(partition), limit).get(partition));
    }

    /** The offset behind what was read. */
    public long position(TopicPartition partition) {
        return consumer.position(partition);
    }

    /** Whether all that lies before these offsets was read. */
    public boolean hasReached(Map<TopicPartition, Long> ends) {
        return ends.entrySet().stream().allMatch(end -> consumer.position(end.getKey()) >= end.getValue());
    }

    /** How far it has come, for a message: {@code rollouts-0@17, rollouts-1@3}. */
    public String progress() {
        return progress(consumer.assignment());
    }

    private String progress(Collection<TopicPartition> partitions) {
        return partitions.stream()
                .map(partition -> partition + "@" + consumer.position(partition))
                .sorted()
                .collect(Collectors.joining(", "));
    }

    /**
     * Hands over what is committed, up to these ends and what was fetched with it: a caller to whom it matters passes over
     * what lies behind.
     *
     * @return false if the limit passed first; the next reading continues where this one stopped
     */
    public boolean readTo(
            Map<TopicPartition, Long> ends, ReadLimit limit, Consumer<ConsumerRecord<byte[], byte[]>> reader) {
        return readUntil(() -> hasReached(ends), limit, reader);
    }

    /**
     * Hands over what is committed until somebody has enough, who is asked before every fetch.
     *
     * @return false if the limit passed first; the next reading continues where this one stopped
     * @throws WakeupException after {@link #wakeup()}
     */
    public boolean readUntil(BooleanSupplier enough, ReadLimit limit, Consumer<ConsumerRecord<byte[], byte[]>> reader) {
        long nanos = limit.duration().toNanos();
        long since = System.nanoTime();
        Map<TopicPartition, Long> before = Map.of();
        while (!enough.getAsBoolean()) {
            if (limit.restarts()) {
                Map<TopicPartition, Long> now = positions();
                if (!now.equals(before)) {
                    before = now;
                    since = System.nanoTime();
                }
            }
            long left = Math.max(0, nanos - (System.nanoTime() - since));
            consumer.poll(left < POLL.toNanos() ? Duration.ofNanos(left) : POLL).forEach(reader);
            boolean isOver = System.nanoTime() - since >= nanos
                    && (!limit.restarts() || positions().equals(before));
            if (isOver && !enough.getAsBoolean()) {
                return false;
            }
        }
        return true;
    }

    private Map<TopicPartition, Long> positions() {
        return consumer.assignment().stream().collect(Collectors.toMap(partition -> partition, consumer::position));
    }

    /**
     * Hands over committed records, and later ones as they come, until {@link #stop()}.
     *
     * @param fetched called after every fetch, with or without a record
     */
    public void follow(Consumer<ConsumerRecord<byte[], byte[]>> reader, Runnable fetched) {
        follow(reader, fetched, Duration.ZERO);
    }

    /** As {@link #follow}, a moment behind: what others write record by record is fetched a few times a second. */
    public void followAtLeisure(Consumer<ConsumerRecord<byte[], byte[]>> reader, Runnable fetched) {
        follow(reader, fetched, LEISURE);
    }

    private void follow(Consumer<ConsumerRecord<byte[], byte[]>> reader, Runnable fetched, Duration pause) {
        try {
            boolean isOver = isStopped();
            while (!isOver) {
                consumer.poll(POLL).forEach(reader);
                fetched.run();
                isOver = stopped.await(pause.toMillis(), TimeUnit.MILLISECONDS);
            }
        } catch (WakeupException e) {
            if (!isStopped()) {
                throw e;
            }
        } catch (InterruptedException e) {
            throw new InterruptException(e);
        }
    }

    private boolean isStopped() {
        return stopped.getCount() == 0;
    }

    /** Ends {@link #follow}, now or when it begins; from any thread. */
    public void stop() {
        stopped.countDown();
        consumer.wakeup();
    }

    /** Ends a reading under way, or the next one, with a {@link WakeupException}; from any thread. */
    public void wakeup() {
        consumer.wakeup();
    }

    /** At once: without a group only a fetch under way would be waited for. */
    @Override
    public void close() {
        consumer.close(CloseOptions.timeout(Duration.ZERO));
    }
}
