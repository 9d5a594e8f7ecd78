package dev.millrace.view.follow;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import dev.millrace.api.tokenizer.Tokenizer;
import dev.millrace.log.LogConnection;
import dev.millrace.log.run.LogSetupException;
import dev.millrace.log.scan.LogReader;
import dev.millrace.log.scan.ReadLimit;
import dev.millrace.replay.archive.ArchiveException;
import dev.millrace.replay.archive.RecordCursor;
import dev.millrace.replay.archive.RecordedRun;
import dev.millrace.runtime.RefusedRequestException;
import dev.millrace.runtime.config.ConfigException;
import dev.millrace.runtime.config.MillraceConfig;
import dev.millrace.runtime.pipeline.RunTokenizer;
import dev.millrace.runtime.train.RunStatus;
import dev.millrace.schemas.registry.SchemaRegistry;
import dev.millrace.schemas.registry.SchemaRegistryException;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.schemas.run.RunTopics;
import dev.millrace.view.index.EvaluationIndex;
import dev.millrace.view.index.RecordIndexer;
import dev.millrace.view.index.RunIndex;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.LongSupplier;
import java.util.function.Supplier;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.WakeupException;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A viewed run: its index, kept up to date, and its records by position. Follows a growing run by its own broker while
 * a client is connected; reads an ended one from its files, so that it can resume. Thread-safe.
 */
public final class ViewedRun implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(ViewedRun.class);

    private static final long LOOK_MS = 1000;
    /** Wait for the last step to be indexed. */
    private static final long LAST_STEP_MS = 3000;
    /** Time for pages to fetch the last step. */
    private static final long LAST_ANSWERS_MS = 1500;

    private final RunSource source;
    private final Path indexes;
    private final SharedRun shared;
    private final Events events = new Events();
    private final ViewerActivity viewers = new ViewerActivity(events, System::nanoTime);
    private final Thread owner;
    private final CountDownLatch stopped = new CountDownLatch(1);
    /** Guarded by {@link #stopped}. */
    private @Nullable LogFeed reading;

    private volatile @Nullable RunIndex index;
    private volatile @Nullable Known known;
    private volatile IndexProgress progress = IndexProgress.NOTHING;
    private volatile String problem = "";
    private volatile boolean growing;
    private volatile @Nullable RunStatus status;
    private volatile String ended = "";

    public record Known(RunIdentity run, RunTopics topics, MillraceConfig config) {}

    public ViewedRun(RunSource source, Path indexes) {
        this.source = source;
        this.indexes = indexes;
        this.shared = new SharedRun(source);
        this.owner = new Thread(this::follow, "view-" + source.name());
        owner.setDaemon(true);
    }

    public ViewedRun start() {
        owner.start();
        return this;
    }

    public RunSource source() {
        return source;
    }

    /** Marks a client: the index of a growing run is kept up while there is one. */
    void look() {
        viewers.seen();
    }

    public Events events() {
        return events;
    }

    public IndexProgress progress() {
        return progress;
    }

    /** Why the run cannot be read; empty if it can. */
    public String problem() {
        return problem;
    }

    public boolean isGrowing() {
        return growing && ended.isEmpty();
    }

    /** Status from the run's own process, if it is this one. */
    public Optional<RunStatus> status() {
        return Optional.ofNullable(status);
    }

    public void show(RunStatus now) {
        status = now;
    }

    /** How the run ended in this process; empty before. */
    public String ended() {
        return ended;
    }

    /**
     * Tells pages that the run ended; waits a few seconds for the last step to be indexed and fetched.
     *
     * @param how such as "ended at step 40: the goal was reached"
     */
    public void end(String how, long steps) {
        long deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(LAST_STEP_MS);
        while (events.isWatched() && steps() < steps && System.nanoTime() < deadline && !isStopped(LOOK_MS / 20)) {
            // its last steps are being read
        }
        ended = how;
        status = null;
        events.tell("steps", "{}");
        events.tell("state", "{}");
        events.tell("end", JsonNodeFactory.instance.objectNode().put("how", how).toString());
        if (events.isWatched()) {
            isStopped(LAST_ANSWERS_MS);
        }
    }

    private long steps() {
        RunIndex read = index;
        Known opened = known;
        return read == null || opened == null
                ? 0
                : read.numbers(
                                "SELECT count(*) FROM step WHERE epoch = ?",
                                opened.run().epoch())
                        .get(0);
    }

    /** Empty until the run was opened. */
    public Optional<RunIndex> index() {
        return Optional.ofNullable(index);
    }

    /** Empty until the run was opened. */
    public Optional<Known> known() {
        return Optional.ofNullable(known);
    }

    public <T> T ask(Function<OpenRun, T> question) {
        return shared.ask(question);
    }

    private void follow() {
        while (!isStopped(0)) {
            try {
                growing = source.mayGrow();
                shared.ask(run -> {
                    begin(run);
                    Optional<Tokenizer> tokenizer = RunTokenizer.of(
                            run.config(), run.connection(), why -> LOG.info("without its text: {}", why));
                    run.connection()
                            .ifPresentOrElse(log -> read(log, tokenizer), () -> read(run.everything(), tokenizer));
                    return true;
                });
                if (!growing) {
                    awaitGrowth();
                }
                while (!shared.closeIfUnused() && !isStopped(LOOK_MS / 10)) {
                    // requests until now get an answer of the old log, or none
                }
            } catch (ConfigException
                    | RefusedRequestException
                    | LogSetupException
                    | ArchiveException
                    | SchemaRegistryException
                    | KafkaException
                    | IllegalStateException e) {
                if (isStopped(0)) {
                    return;
                }
                LOG.info("{} cannot be read now: {}", source.name(), e.toString());
                problem = String.valueOf(e.getMessage());
                events.tell("state", "{}");
                shared.closeIfUnused();
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

    private void awaitGrowth() {
        while (!isStopped(LOOK_MS)) {
            if (source.mayGrow()) {
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

    private IndexFeed feed(RunTopics topics, String runId, SchemaRegistry registry, Optional<Tokenizer> tokenizer) {
        return new IndexFeed(
                Objects.requireNonNull(index),
                new RecordIndexer(topics, runId, registry, tokenizer),
                events,
                this::note);
    }

    private void note(IndexProgress now) {
        if (!now.equals(progress)) {
            progress = now;
            events.tell(
                    "index", "{\"read\":" + now.read() + ",\"end\":" + now.end() + ",\"whole\":" + now.isWhole() + "}");
        }
    }

    private void read(RecordedRun recorded, Optional<Tokenizer> tokenizer) {
        long[] lookedAt = {System.nanoTime()};
        new RecordedFeed(
                        recorded,
                        feed(recorded.topics(), recorded.run().runId(), recorded.registry(), tokenizer),
                        () -> {
                            boolean isTime = System.nanoTime() - lookedAt[0] > TimeUnit.MILLISECONDS.toNanos(LOOK_MS);
                            if (isTime) {
                                lookedAt[0] = System.nanoTime();
                            }
                            return isStopped(0) || isTime && source.mayGrow();
                        })
                .read();
    }

    private void read(LogConnection connection, Optional<Tokenizer> tokenizer) {
        String runId = connection.run().runId();
        try (LogFeed feed = new LogFeed(
                connection,
                () -> feed(connection.topics(), runId, connection.registry(), tokenizer),
                growing,
                source::mayGrow,
                viewers::isPresent)) {
            synchronized (stopped) {
                reading = feed;
                if (isStopped(0)) {
                    return;
                }
            }
            try {
                feed.read(source.name());
            } finally {
                synchronized (stopped) {
                    reading = null;
                }
            }
        }
    }

    @Override
    public void close() {
        stopped.countDown();
        synchronized (stopped) {
            if (reading != null) {
                reading.stop();
            }
        }
        try {
            owner.join();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        shared.close();
        RunIndex opened = index;
        if (opened != null) {
            opened.close();
        }
    }

    /** Opens a run on demand and closes it when unused. Thread-safe. */
    static final class SharedRun implements AutoCloseable {
        private final RunSource source;
        private @Nullable OpenRun open;
        private int users;

        SharedRun(RunSource source) {
            this.source = source;
        }

        <T> T ask(Function<OpenRun, T> question) {
            OpenRun run = enter();
            try {
                return question.apply(run);
            } finally {
                leave();
            }
        }

        private synchronized OpenRun enter() {
            OpenRun run = open;
            if (run == null) {
                run = source.open();
                open = run;
            }
            users++;
            return run;
        }

        private synchronized void leave() {
            users--;
        }

        synchronized boolean closeIfUnused() {
            if (users == 0) {
                close();
            }
            return open == null;
        }

        @Override
        public synchronized void close() {
            if (open != null) {
                open.close();
                open = null;
            }
        }
    }

    /**
     * Reads a run's log into its index with two threads: training records, newest first; and the records of every
     * rollout on the caller's. Reads committed records without a group; rests while no client is connected.
     */
    static final class LogFeed implements AutoCloseable {
        private static final long LOOK_NANOS = 1_000_000_000;
        private static final int RECORDS = 4000;
        private static final int FEW_RECORDS = 500;
        /** Fetch wait, so that the broker answers in batches. */
        private static final int GATHERED_MS = 20;
        /** Pause between polls of a growing run. */
        private static final long REST_MS = 400;

        private static final int GATHERED_BYTES = 1 << 20;
        /** Share of a processor for reading rollouts of a growing run. */
        private static final double SHARE = 0.005;
        /** Upper bound of a pause after a slow start. */
        private static final long MOST_REST_MS = 2000;
        /** Interval of checks for a client. */
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
         * @param feeds one per thread
         * @param growing follow beyond the log's end
         * @param lookedAt whether a client is connected; only then the log is followed
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

        /** Reads to the end of the log or {@link #stop}, on the calling thread. */
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
                        isStopped(REST_MS); // the first poll after a pause returns older fetches
                    }
                    isSecond[0] = !isSecond[0];
                    while (!lookedAt.getAsBoolean() && newest.hasReached(allEnds) && !isStopped(UNSEEN_MS)) {
                        // no client is connected
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
                                    return true; // its process has ended: read the rest through our own broker
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

        private void note(
                IndexFeed feed, Map<TopicPartition, Long> begins, Map<TopicPartition, Long> ends, boolean whole) {
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

    /** Indexes an ended run: the newest steps first, then everything in order. */
    static final class RecordedFeed {
        private static final int RECORDS = 4000;

        private final RecordedRun run;
        private final IndexFeed feed;
        private final BooleanSupplier stopped;
        private final long newest;

        /** @param stopped polled every few thousand records */
        RecordedFeed(RecordedRun run, IndexFeed feed, BooleanSupplier stopped) {
            this(run, feed, stopped, IndexFeed.NEWEST);
        }

        /** @param newest offsets of the training log that come first */
        RecordedFeed(RecordedRun run, IndexFeed feed, BooleanSupplier stopped, long newest) {
            this.run = run;
            this.feed = feed;
            this.stopped = stopped;
            this.newest = newest;
        }

        /** @return whether everything is indexed */
        boolean read() {
            RunTopics topics = run.topics();
            for (TopicPartition partition : partitions(List.of(topics.trainingLog()))) {
                newest(partition);
            }
            List<String> all = new ArrayList<>(RecordIndexer.newest(topics));
            all.addAll(RecordIndexer.many(topics));
            List<TopicPartition> partitions = partitions(all);
            long end = 0;
            for (TopicPartition partition : partitions) {
                if (stopped.getAsBoolean()) {
                    return false;
                }
                RecordedRun.Range range = run.range(partition);
                end += range.end() - range.from();
            }
            long read = 0;
            for (TopicPartition partition : partitions) {
                read(partition, read, end);
                if (stopped.getAsBoolean()) {
                    return false; // unindexed records are not marked as indexed
                }
                RecordedRun.Range range = run.range(partition);
                read += range.end() - range.from();
            }
            feed.note(new IndexProgress(end, end, true));
            return true;
        }

        private List<TopicPartition> partitions(List<String> topics) {
            return topics.stream()
                    .flatMap(topic -> run.partitions(topic).stream())
                    .toList();
        }

        private void newest(TopicPartition partition) {
            RecordedRun.Range range = run.range(partition);
            long from = Math.max(range.from(), range.end() - newest);
            if (feed.position(partition).orElse(range.from()) >= from) {
                return; // later offsets come first anyway
            }
            List<ConsumerRecord<byte[], byte[]>> records = new ArrayList<>();
            try (RecordCursor cursor = run.read(partition, from)) {
                for (Optional<ConsumerRecord<byte[], byte[]>> next = cursor.next();
                        next.isPresent();
                        next = cursor.next()) {
                    records.add(next.get());
                }
            }
            feed.take(records, false);
        }

        private void read(TopicPartition partition, long before, long end) {
            long begin = run.range(partition).from();
            List<ConsumerRecord<byte[], byte[]>> records = new ArrayList<>();
            try (RecordCursor cursor =
                    run.read(partition, feed.position(partition).orElse(begin))) {
                for (Optional<ConsumerRecord<byte[], byte[]>> next = cursor.next();
                        next.isPresent();
                        next = cursor.next()) {
                    records.add(next.get());
                    if (records.size() == RECORDS) {
                        feed.take(records, true);
                        feed.note(new IndexProgress(before + next.get().offset() - begin, end, false));
                        if (stopped.getAsBoolean()) {
                            return;
                        }
                    }
                }
                feed.take(records, true);
            }
        }
    }

    /** True while a client listens, and for five seconds after a request. Thread-safe. */
    static final class ViewerActivity {
        private static final long STAYS_NANOS = TimeUnit.SECONDS.toNanos(5);

        private final Events events;
        private final LongSupplier nanos;
        private final AtomicLong lastRequest;

        /** @param nanos monotonic clock */
        ViewerActivity(Events events, LongSupplier nanos) {
            this.events = events;
            this.nanos = nanos;
            this.lastRequest = new AtomicLong(nanos.getAsLong());
        }

        void seen() {
            lastRequest.set(nanos.getAsLong());
        }

        boolean isPresent() {
            return events.isWatched() || nanos.getAsLong() - lastRequest.get() < STAYS_NANOS;
        }
    }

    /** Notifies listeners of a run. Thread-safe; listeners must not block. */
    public static final class Events {
        private final List<Consumer<Event>> listeners = new CopyOnWriteArrayList<>();

        /** @param name {@code steps}, {@code index}, {@code state}, or finally {@code end} */
        public record Event(String name, String json) {}

        public void add(Consumer<Event> listener) {
            listeners.add(listener);
        }

        public void remove(Consumer<Event> listener) {
            listeners.remove(listener);
        }

        public boolean isWatched() {
            return !listeners.isEmpty();
        }

        void tell(String name, String json) {
            Event event = new Event(name, json);
            listeners.forEach(listener -> listener.accept(event));
        }
    }

    /**
     * Progress of an index.
     *
     * @param end existing offsets
     * @param isWhole everything seen by the last poll is indexed
     */
    public record IndexProgress(long read, long end, boolean isWhole) {
        static final IndexProgress NOTHING = new IndexProgress(0, 0, false);
    }
}
