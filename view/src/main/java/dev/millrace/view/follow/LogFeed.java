package dev.millrace.view.follow;

import dev.millrace.log.LogConnection;
import dev.millrace.log.scan.LogReader;
import dev.millrace.log.scan.ReadLimit;
import dev.millrace.schemas.run.RunTopics;
import dev.millrace.view.index.EvaluationIndex;
import dev.millrace.view.index.RecordIndexer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.function.Supplier;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.WakeupException;
import org.jspecify.annotations.Nullable;

/**
 * Reads a run's log into its index, to its end and on while it may grow, with two threads: one for the few records that say how the run does, the newest
 * first, so that they are there at once; the caller's for what there is of every rollout. Both read committed records as members of no group, and rest at
 * the end of a growing log while nobody looks.
 */
final class LogFeed implements AutoCloseable {
    private static final long LOOK_NANOS = 1_000_000_000;
    private static final int RECORDS = 4000;
    private static final int FEW_RECORDS = 500;
    /** Of a run that continues, the broker gathers what is new for so long, and does not answer for each record by itself. */
    private static final int GATHERED_MS = 20;
    /** Between two looks; a question that is left open meanwhile has the broker count anew with every record that is written. */
    private static final long REST_MS = 400;

    private static final int GATHERED_BYTES = 1 << 20;
    /** Of one processor, what reading the rollouts of a run that continues may take. */
    private static final double SHARE = 0.005;
    /** A rest; longer ones, which a cold start would ask for, would leave the page behind the run. */
    private static final long MOST_REST_MS = 2000;
    /** How often it is asked whether somebody has come. */
    private static final long UNSEEN_MS = 100;

    private final RunTopics topics;
    private final Supplier<IndexFeed> feeds;
    private final boolean growing;
    private final BooleanSupplier mayGrow;
    private final BooleanSupplier lookedAt;
    private final CountDownLatch stopped = new CountDownLatch(1);
    private final LogReader newest;
    private final LogReader many;
    private volatile @Nullable RuntimeException failure;

    /**
     * @param feeds one for each thread
     * @param growing whether to go on at the log's end
     * @param mayGrow asked now and then, whether to
     * @param lookedAt whether anybody looks: the log is read to its end without, and on when somebody does
     */
    LogFeed(
            LogConnection connection,
            Supplier<IndexFeed> feeds,
            boolean growing,
            BooleanSupplier mayGrow,
            BooleanSupplier lookedAt) {
        this.topics = connection.topics();
        this.feeds = feeds;
        this.growing = growing;
        this.mayGrow = mayGrow;
        this.lookedAt = lookedAt;
        this.newest = reader(connection, FEW_RECORDS, growing);
        this.many = reader(connection, growing ? RECORDS / 8 : RECORDS, growing);
    }

    /** Reads until the log has ended or {@link #stop} was called, on the thread that calls it. */
    void read(String name) {
        Thread few = new Thread(
                () -> {
                    try {
                        newest(feeds.get());
                    } catch (WakeupException e) {
                        // asked to stop
                    } catch (RuntimeException e) {
                        failure = e;
                        many.wakeup();
                    }
                },
                "view-newest-" + name);
        few.setDaemon(true);
        few.start();
        try {
            many(feeds.get());
        } catch (WakeupException e) {
            RuntimeException cause = failure;
            if (cause != null) {
                throw cause;
            }
        } finally {
            if (growing || isStopped(0) || failure != null) {
                stopped.countDown();
                newest.stop();
            }
            join(few);
        }
    }

    /** Ends {@link #read}; from any thread. */
    void stop() {
        stopped.countDown();
        newest.stop();
        many.stop();
    }

    private boolean isStopped(long waitMs) {
        try {
            return stopped.await(waitMs, TimeUnit.MILLISECONDS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return true;
        }
    }

    private static void join(Thread thread) {
        try {
            thread.join();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private static LogReader reader(LogConnection connection, int records, boolean growing) {
        Map<String, Object> settings = new HashMap<>(Map.of(
                ConsumerConfig.MAX_POLL_RECORDS_CONFIG,
                records,
                ConsumerConfig.MAX_PARTITION_FETCH_BYTES_CONFIG,
                2 << 20));
        if (growing) {
            settings.put(ConsumerConfig.FETCH_MIN_BYTES_CONFIG, GATHERED_BYTES);
            settings.put(ConsumerConfig.FETCH_MAX_WAIT_MS_CONFIG, GATHERED_MS);
        }
        return new LogReader(connection.as("view"), settings);
    }

    private static List<TopicPartition> partitions(LogReader reader, List<String> topics) {
        return topics.stream()
                .flatMap(topic -> reader.partitionsOf(topic).stream())
                .toList();
    }

    private static void seek(IndexFeed feed, LogReader reader, List<TopicPartition> partitions) {
        reader.consumer().assign(partitions);
        for (TopicPartition partition : partitions) {
            Optional<Long> from = feed.position(partition);
            if (from.isPresent()) {
                reader.consumer().seek(partition, from.get());
            } else {
                reader.consumer().seekToBeginning(List.of(partition));
            }
        }
    }

    private void newest(IndexFeed feed) {
        List<ConsumerRecord<byte[], byte[]>> records = new ArrayList<>();
        List<TopicPartition> steps = newest.partitionsOf(topics.trainingLog());
        Map<TopicPartition, Long> ends = newest.consumer().endOffsets(steps);
        newest.consumer().assign(steps);
        ends.forEach((partition, end) -> newest.consumer().seek(partition, Math.max(0, end - IndexFeed.NEWEST)));
        newest.readTo(ends, ReadLimit.withoutProgress(Duration.ofSeconds(30)), records::add);
        feed.take(records, false);
        List<TopicPartition> all =
                partitions(newest, EvaluationIndex.without(RecordIndexer.newest(topics), topics, newest));
        seek(feed, newest, all);
        Map<TopicPartition, Long> allEnds = newest.consumer().endOffsets(all);
        if (growing) {
            boolean[] isSecond = {false};
            newest.follow(records::add, () -> {
                boolean isBehind = records.size() == FEW_RECORDS;
                feed.take(records, true);
                if (isSecond[0] && !isBehind) {
                    isStopped(REST_MS); // the first look after a rest has what was fetched before it
                }
                isSecond[0] = !isSecond[0];
                while (!lookedAt.getAsBoolean() && newest.hasReached(allEnds) && !isStopped(UNSEEN_MS)) {
                    // nobody asks for what is new
                }
            });
        } else {
            newest.readUntil(
                    () -> {
                        feed.take(records, true);
                        return newest.hasReached(allEnds);
                    },
                    ReadLimit.withoutProgress(Duration.ofSeconds(30)),
                    records::add);
        }
    }

    private void many(IndexFeed feed) {
        List<TopicPartition> all = partitions(many, RecordIndexer.many(topics));
        seek(feed, many, all);
        Map<TopicPartition, Long> begins = many.consumer().beginningOffsets(all);
        Map<TopicPartition, Long> ends = new HashMap<>(many.consumer().endOffsets(all));
        List<ConsumerRecord<byte[], byte[]>> records = new ArrayList<>();
        long[] checkedAt = {System.nanoTime()};
        many.readUntil(
                () -> {
                    long begun = System.nanoTime();
                    feed.take(records, true);
                    long busy = System.nanoTime() - begun;
                    boolean whole = many.hasReached(ends);
                    note(feed, begins, ends, whole);
                    if (!growing) {
                        return whole;
                    }
                    if (isStopped(Math.min(MOST_REST_MS, (long) (busy / 1e6 * (1 / SHARE - 1))))) {
                        return true;
                    }
                    do {
                        if (System.nanoTime() - checkedAt[0] > LOOK_NANOS) {
                            checkedAt[0] = System.nanoTime();
                            if (!mayGrow.getAsBoolean()) {
                                return true; // its process has ended: what is left is read by a broker of ours
                            }
                            if (lookedAt.getAsBoolean()) {
                                ends.putAll(many.consumer().endOffsets(all));
                            }
                        }
                    } while (whole && !lookedAt.getAsBoolean() && !isStopped(UNSEEN_MS));
                    return isStopped(0);
                },
                ReadLimit.withoutProgress(Duration.ofDays(3650)),
                records::add);
    }

    private void note(IndexFeed feed, Map<TopicPartition, Long> begins, Map<TopicPartition, Long> ends, boolean whole) {
        long read = 0;
        long end = 0;
        for (Map.Entry<TopicPartition, Long> partition : ends.entrySet()) {
            long begin = begins.getOrDefault(partition.getKey(), 0L);
            end += partition.getValue() - begin;
            read += Math.min(partition.getValue(), many.position(partition.getKey())) - begin;
        }
        feed.note(new IndexProgress(Math.max(0, read), end, whole));
    }

    @Override
    public void close() {
        newest.close();
        many.close();
    }
}
