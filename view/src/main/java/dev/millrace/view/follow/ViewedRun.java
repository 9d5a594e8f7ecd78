package dev.millrace.view.follow;

import dev.millrace.log.LogConnection;
import dev.millrace.log.follow.LogReader;
import dev.millrace.log.follow.ReadLimit;
import dev.millrace.log.topics.LogSetupException;
import dev.millrace.replay.archive.ArchiveException;
import dev.millrace.replay.archive.RecordCursor;
import dev.millrace.replay.archive.RecordedRun;
import dev.millrace.runtime.RefusedRequestException;
import dev.millrace.runtime.config.ConfigException;
import dev.millrace.runtime.live.RunStatus;
import dev.millrace.schemas.run.RunTopics;
import dev.millrace.view.index.EvaluationIndex;
import dev.millrace.view.index.RecordIndexer;
import dev.millrace.view.index.RunIndex;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.WakeupException;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A run that somebody looks at: its index, filled and kept up by two threads, and its records by their places.
 *
 * <p>One thread reads the few records that say how the run does, the newest first, so that they are there at once; the other reads what there is of
 * every rollout. Both read committed records as members of no group. Of a run that has ended the folder is given back as soon as the index is whole, and opened again
 * for what the index does not hold. Thread-safe.
 */
public final class ViewedRun implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(ViewedRun.class);

    /** Of the training log, so many of the newest records come before all others. */
    private static final long NEWEST = 400;

    private static final long LOOK_MS = 1000;
    private static final int RECORDS = 4000;
    /** Of one processor, what reading the rollouts of a run that goes on may take. */
    private static final double SHARE = 0.05;
    /** A rest; longer ones, which a cold start would ask for, would leave the page behind the run. */
    private static final long MOST_REST_MS = 2000;

    private final RunSource source;
    private final Path indexes;
    private final RunDoor door;
    private final Events events = new Events();
    private final Thread owner;
    private final CountDownLatch stopped = new CountDownLatch(1);
    private final Set<LogReader> readers = new HashSet<>();
    private volatile @Nullable RunIndex index;
    private volatile @Nullable Known known;
    private volatile IndexProgress progress = IndexProgress.NOTHING;
    private volatile String problem = "";
    private volatile boolean growing;
    private volatile @Nullable RunStatus status;

    /** What does not change while a run is open. */
    public record Known(
            dev.millrace.schemas.run.RunIdentity run,
            RunTopics topics,
            dev.millrace.runtime.config.MillraceConfig config) {}

    /** @param indexes folder of the indexes of all runs */
    public ViewedRun(RunSource source, Path indexes) {
        this.source = source;
        this.indexes = indexes;
        this.door = new RunDoor(source);
        this.owner = new Thread(this::follow, "view-" + source.name());
        owner.setDaemon(true);
    }

    /** Begins to read. */
    public ViewedRun start() {
        owner.start();
        return this;
    }

    /** Where the run is. */
    public RunSource source() {
        return source;
    }

    /** Tells what is new. */
    public Events events() {
        return events;
    }

    /** How far the index is. */
    public IndexProgress progress() {
        return progress;
    }

    /** Why the run cannot be read now, as a sentence; empty if it can. */
    public String problem() {
        return problem;
    }

    /** Whether somebody may be adding to it. */
    public boolean isGrowing() {
        return growing;
    }

    /** What the run's own process says of itself, where this is that process. */
    public Optional<RunStatus> status() {
        return Optional.ofNullable(status);
    }

    /** Takes what the run's own process says of itself. */
    public void show(RunStatus now) {
        status = now;
    }

    /** The index; empty until the run was opened once. */
    public Optional<RunIndex> index() {
        return Optional.ofNullable(index);
    }

    /** What the run is; empty until it was opened once. */
    public Optional<Known> known() {
        return Optional.ofNullable(known);
    }

    /** Asks of the run's records, which may have to be opened for it. */
    public <T> T ask(Function<OpenRun, T> question) {
        return door.ask(question);
    }

    private void follow() {
        while (!isStopped(0)) {
            try {
                growing = door.mayGrow();
                door.ask(run -> {
                    begin(run);
                    run.connection().ifPresentOrElse(this::read, () -> read(run.recorded()));
                    return true;
                });
                if (!growing) {
                    awaitGrowth();
                } else {
                    while (!door.closeIfUnused() && !isStopped(LOOK_MS / 10)) {
                        // who asks now has an answer of the old log, or none
                    }
                }
            } catch (ConfigException
                    | RefusedRequestException
                    | LogSetupException
                    | ArchiveException
                    | KafkaException
                    | IllegalStateException e) {
                if (isStopped(0)) {
                    return;
                }
                LOG.info("{} cannot be read now: {}", source.name(), e.toString());
                problem = String.valueOf(e.getMessage());
                events.tell("state", "{}");
                door.closeIfUnused();
                isStopped(LOOK_MS);
            }
        }
    }

    private boolean isStopped(long waitMs) {
        try {
            return stopped.await(waitMs, TimeUnit.MILLISECONDS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return true;
        }
    }

    /** Of a run that has ended: until it goes on again. Its folder is free meanwhile. */
    private void awaitGrowth() {
        door.closeIfUnused();
        while (!isStopped(LOOK_MS)) {
            door.closeIfIdle();
            if (door.mayGrow()) {
                events.tell("state", "{}");
                return;
            }
        }
    }

    private void begin(OpenRun run) {
        RecordedRun recorded = run.recorded();
        RunIndex before = index;
        Path folder = indexes.resolve("view-" + RunIndex.FORM + "-" + run.indexName());
        if (before == null || !before.isIn(folder)) {
            index = RunIndex.open(folder);
            if (before != null) {
                before.close(); // the run is in another epoch, or another run took its place
            }
        }
        known = new Known(recorded.run(), recorded.topics(), run.config());
        problem = "";
        events.tell("state", "{}");
    }

    private RunIndex opened() {
        return java.util.Objects.requireNonNull(index);
    }

    private RecordIndexer indexer(
            RunTopics topics, String runId, dev.millrace.schemas.registry.SchemaRegistry registry) {
        return new RecordIndexer(topics, runId, registry);
    }

    /** An archive, from one end to the other. */
    private void read(RecordedRun archive) {
        RunTopics topics = archive.topics();
        RecordIndexer indexer = indexer(topics, archive.run().runId(), archive.registry());
        List<String> all = new ArrayList<>(RecordIndexer.newest(topics));
        all.addAll(RecordIndexer.many(topics));
        long end = 0;
        for (String topic : all) {
            for (TopicPartition partition : archive.partitions(topic)) {
                end += archive.range(partition).end() - archive.range(partition).from();
            }
        }
        long read = 0;
        for (String topic : all) {
            for (TopicPartition partition : archive.partitions(topic)) {
                RecordedRun.Range range = archive.range(partition);
                long from = RecordIndexer.position(opened(), topic, partition.partition())
                        .orElse(range.from());
                long before = read;
                try (RecordCursor cursor = archive.read(partition, from)) {
                    List<ConsumerRecord<byte[], byte[]>> records = new ArrayList<>();
                    for (Optional<ConsumerRecord<byte[], byte[]>> next = cursor.next();
                            next.isPresent() && !isStopped(0);
                            next = cursor.next()) {
                        records.add(next.get());
                        if (records.size() == RECORDS) {
                            read = before + next.get().offset() - range.from();
                            take(indexer, records, true);
                            progress = new IndexProgress(read, end, false);
                            tellProgress();
                        }
                    }
                    take(indexer, records, true);
                }
                read = before + range.end() - range.from();
            }
        }
        progress = new IndexProgress(end, end, true);
        tellProgress();
    }

    private void take(RecordIndexer indexer, List<ConsumerRecord<byte[], byte[]>> records, boolean positions) {
        if (records.isEmpty()) {
            return;
        }
        RecordIndexer.Taken taken = indexer.take(opened(), records, positions);
        records.clear();
        if (taken.steps()) {
            events.tell("steps", "{}");
        }
        if (taken.letters()) {
            events.tell("state", "{}");
        }
    }

    private void tellProgress() {
        IndexProgress now = progress;
        events.tell("index", "{\"read\":" + now.read() + ",\"end\":" + now.end() + ",\"whole\":" + now.isWhole() + "}");
    }

    /** A log, to its end, and on while it may grow. */
    private void read(LogConnection connection) {
        RunTopics topics = connection.topics();
        String runId = connection.run().runId();
        Throwable[] failure = new Throwable[1];
        try (LogReader newest = reader(connection, 500);
                LogReader many = reader(connection, growing ? RECORDS / 4 : RECORDS)) {
            Thread few = new Thread(
                    () -> {
                        try {
                            newest(newest, topics, indexer(topics, runId, connection.registry()));
                        } catch (WakeupException e) {
                            // asked to stop
                        } catch (RuntimeException e) {
                            failure[0] = e;
                            many.wakeup();
                        }
                    },
                    "view-newest-" + source.name());
            few.setDaemon(true);
            synchronized (readers) {
                readers.add(newest);
                readers.add(many);
            }
            few.start();
            try {
                many(many, topics, indexer(topics, runId, connection.registry()));
            } catch (WakeupException e) {
                if (failure[0] instanceof RuntimeException cause) {
                    throw cause;
                }
            } finally {
                if (growing || isStopped(0) || failure[0] != null) {
                    newest.stop();
                }
                join(few);
                synchronized (readers) {
                    readers.remove(newest);
                    readers.remove(many);
                }
            }
        }
    }

    private static void join(Thread thread) {
        try {
            thread.join();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private static LogReader reader(LogConnection connection, int records) {
        return new LogReader(
                connection,
                Map.of(
                        ConsumerConfig.MAX_POLL_RECORDS_CONFIG,
                        records,
                        ConsumerConfig.MAX_PARTITION_FETCH_BYTES_CONFIG,
                        2 << 20));
    }

    private static List<TopicPartition> partitions(LogReader reader, List<String> topics) {
        return topics.stream()
                .flatMap(topic -> reader.partitionsOf(topic).stream())
                .toList();
    }

    private void seek(LogReader reader, List<TopicPartition> partitions) {
        reader.consumer().assign(partitions);
        for (TopicPartition partition : partitions) {
            Optional<Long> from = RecordIndexer.position(opened(), partition.topic(), partition.partition());
            if (from.isPresent()) {
                reader.consumer().seek(partition, from.get());
            } else {
                reader.consumer().seekToBeginning(List.of(partition));
            }
        }
    }

    private void newest(LogReader reader, RunTopics topics, RecordIndexer indexer) {
        List<ConsumerRecord<byte[], byte[]>> records = new ArrayList<>();
        List<TopicPartition> steps = reader.partitionsOf(topics.trainingLog());
        Map<TopicPartition, Long> ends = reader.consumer().endOffsets(steps);
        reader.consumer().assign(steps);
        ends.forEach((partition, end) -> reader.consumer().seek(partition, Math.max(0, end - NEWEST)));
        reader.readTo(ends, ReadLimit.withoutProgress(java.time.Duration.ofSeconds(30)), records::add);
        take(indexer, records, false);
        List<TopicPartition> all =
                partitions(reader, EvaluationIndex.without(RecordIndexer.newest(topics), topics, reader));
        seek(reader, all);
        Map<TopicPartition, Long> allEnds = reader.consumer().endOffsets(all);
        if (growing) {
            reader.follow(records::add, () -> take(indexer, records, true));
        } else {
            reader.readUntil(
                    () -> {
                        take(indexer, records, true);
                        return reader.hasReached(allEnds);
                    },
                    ReadLimit.withoutProgress(java.time.Duration.ofSeconds(30)),
                    records::add);
        }
    }

    private void many(LogReader reader, RunTopics topics, RecordIndexer indexer) {
        List<TopicPartition> all = partitions(reader, RecordIndexer.many(topics));
        seek(reader, all);
        Map<TopicPartition, Long> begins = reader.consumer().beginningOffsets(all);
        Map<TopicPartition, Long> ends = new HashMap<>(reader.consumer().endOffsets(all));
        List<ConsumerRecord<byte[], byte[]>> records = new ArrayList<>();
        long[] lookedAt = {System.nanoTime()};
        reader.readUntil(
                () -> {
                    long begun = System.nanoTime();
                    take(indexer, records, true);
                    long busy = System.nanoTime() - begun;
                    boolean whole = reader.hasReached(ends);
                    note(reader, begins, ends, whole);
                    if (!growing) {
                        return whole;
                    }
                    if (isStopped(Math.min(MOST_REST_MS, (long) (busy / 1e6 * (1 / SHARE - 1))))) {
                        return true;
                    }
                    if (System.nanoTime() - lookedAt[0] > LOOK_MS * 1_000_000) {
                        lookedAt[0] = System.nanoTime();
                        if (!door.mayGrow()) {
                            return true; // its process has ended: what is left is read by a broker of ours
                        }
                        ends.putAll(reader.consumer().endOffsets(all));
                    }
                    return false;
                },
                ReadLimit.withoutProgress(java.time.Duration.ofDays(3650)),
                records::add);
    }

    private void note(
            LogReader reader, Map<TopicPartition, Long> begins, Map<TopicPartition, Long> ends, boolean whole) {
        long read = 0;
        long end = 0;
        for (Map.Entry<TopicPartition, Long> partition : ends.entrySet()) {
            long begin = begins.getOrDefault(partition.getKey(), 0L);
            end += partition.getValue() - begin;
            read += Math.min(partition.getValue(), reader.position(partition.getKey())) - begin;
        }
        IndexProgress now = new IndexProgress(Math.max(0, read), end, whole);
        if (!now.equals(progress)) {
            progress = now;
            tellProgress();
        }
    }

    @Override
    public void close() {
        stopped.countDown();
        synchronized (readers) {
            readers.forEach(LogReader::stop);
        }
        join(owner);
        door.close();
        RunIndex opened = index;
        if (opened != null) {
            opened.close();
        }
    }
}
