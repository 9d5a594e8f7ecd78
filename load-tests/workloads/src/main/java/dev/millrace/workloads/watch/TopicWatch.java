package dev.millrace.workloads.watch;

import dev.millrace.log.LogConnection;
import dev.millrace.log.follow.LogReader;
import dev.millrace.workloads.synthetic.LoadException;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;
import org.apache.kafka.clients.consumer.ConsumerRecord;

/**
 * Shows every committed record of a topic to somebody as soon as it is visible, on a thread of its own.
 *
 * <p>It belongs to no group and commits nothing. Closing it waits for the thread.
 */
public final class TopicWatch implements AutoCloseable {
    private final LogReader log;
    private final Thread thread;
    private final CountDownLatch ended = new CountDownLatch(1);
    private final AtomicReference<RuntimeException> failure = new AtomicReference<>();

    /**
     * Begins at the beginning of every partition.
     *
     * @param viewer called by the watch's thread alone
     */
    public TopicWatch(LogConnection connection, String topic, Consumer<ConsumerRecord<byte[], byte[]>> viewer) {
        log = new LogReader(connection);
        log.fromBeginning(topic);
        thread = new Thread(() -> watch(viewer), "watch of " + topic);
        thread.setDaemon(true);
        thread.start();
    }

    private void watch(Consumer<ConsumerRecord<byte[], byte[]>> viewer) {
        try (log) {
            log.follow(viewer, () -> {});
        } catch (RuntimeException e) {
            failure.set(e);
        } finally {
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
        log.stop();
        try {
            ended.await();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
