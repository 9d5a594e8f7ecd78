package dev.millrace.workloads.watch;

import dev.millrace.log.LogConnection;
import dev.millrace.workloads.synthetic.LoadException;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.WakeupException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Shows every committed record of a topic to somebody as soon as it is visible, on a thread of its own.
 *
 * <p>It belongs to no group and commits nothing. Closing it waits for the thread.
 */
public final class TopicWatch implements AutoCloseable {
    private static final Duration POLL = Duration.ofMillis(100);

    private final KafkaConsumer<byte[], byte[]> consumer;
    private final Thread thread;
    private final CountDownLatch ended = new CountDownLatch(1);
    private final AtomicReference<RuntimeException> failure = new AtomicReference<>();

    /**
     * Begins at the beginning of every partition.
     *
     * @param viewer called by the watch's thread alone
     */
    public TopicWatch(LogConnection connection, String topic, Consumer<ConsumerRecord<byte[], byte[]>> viewer) {
        consumer = new KafkaConsumer<>(
                connection.consumer(Map.of(
                        ConsumerConfig.ISOLATION_LEVEL_CONFIG, "read_committed",
                        ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "earliest")),
                new ByteArrayDeserializer(),
                new ByteArrayDeserializer());
        List<TopicPartition> partitions = consumer.partitionsFor(topic).stream()
                .map(info -> new TopicPartition(topic, info.partition()))
                .toList();
        consumer.assign(partitions);
        consumer.seekToBeginning(partitions);
        thread = new Thread(() -> watch(viewer), "watch of " + topic);
        thread.setDaemon(true);
        thread.start();
    }

    private void watch(Consumer<ConsumerRecord<byte[], byte[]>> viewer) {
        try {
            while (true) {
                consumer.poll(POLL).forEach(viewer);
            }
        } catch (WakeupException e) {
            // closed
        } catch (RuntimeException e) {
            failure.set(e);
        } finally {
            consumer.close();
            ended.countDown();
        }
    }

    /** Refuses to go on if watching has failed. */
    public void requireWatching() {
        if (failure.get() != null) {
            throw new LoadException(
                    "a topic could not be watched: " + failure.get().getMessage(), failure.get());
        }
    }

    @Override
    public void close() {
        consumer.wakeup();
        try {
            ended.await();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
