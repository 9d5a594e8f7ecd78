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
 * A run that somebody looks at: its index, filled when it is opened and kept up, and its records by their places. A run that continues in its folder is read
 * by its own broker, for as long as somebody looks, one that has ended by that broker's files, so that it can go on at any moment; this then follows it. Thread-safe.
 */
public final class ViewedRun implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(ViewedRun.class);

    private static final long LOOK_MS = 1000;
    /** How long an end waits for the index to have the last step. */
    private static final long LAST_STEP_MS = 3000;
    /** How long a page that is told of the end has to ask for the last step. */
    private static final long LAST_ANSWERS_MS = 1500;

    private final RunSource source;
    private final Path indexes;
    private final RunDoor door;
    private final Events events = new Events();
    private final Onlookers onlookers = new Onlookers(events, System::nanoTime);
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

    /** What does not change while a run is open. */
    public record Known(RunIdentity run, RunTopics topics, MillraceConfig config) {}

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

    /** Somebody looks at it now: of a run that continues, its index is kept up for as long as somebody does. */
    void look() {
        onlookers.ask();
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
        return growing && ended.isEmpty();
    }

    /** What the run's own process says of itself, where this is that process. */
    public Optional<RunStatus> status() {
        return Optional.ofNullable(status);
    }

    /** Takes what the run's own process says of itself. */
    public void show(RunStatus now) {
        status = now;
    }

    /** How the run ended in this process, such as "ended at step 40: the goal was reached"; empty before. */
    public String ended() {
        return ended;
    }

    /**
     * Tells the pages how the run of this process ended. Waits a few seconds while a page listens: first for the last step to be in the index, then for the
     * page to ask for it.
     *
     * @param how such as "ended at step 40: the goal was reached"
     * @param steps of the whole run
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
                growing = source.mayGrow();
                door.ask(run -> {
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
                while (!door.closeIfUnused() && !isStopped(LOOK_MS / 10)) {
                    // who asks now has an answer of the old log, or none
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

    /** Of a run that has ended: until it continues again. */
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
                onlookers::areThere)) {
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
        door.close();
        RunIndex opened = index;
        if (opened != null) {
            opened.close();
        }
    }

    /** Opens a run when somebody asks of it, and closes it when it is to be looked at anew and nobody asks. Thread-safe. */
    static final class RunDoor implements AutoCloseable {
        private final RunSource source;
        private @Nullable OpenRun open;
        private int users;

        RunDoor(RunSource source) {
            this.source = source;
        }

        /** Asks of the open run, which is opened if it is not. */
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

        /** Closes the run if nobody asks of it now; whether it is closed. */
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
     * Reads a run's log into its index, to its end and on while it may grow, with two threads: one for the few records that say how the run does, the newest
     * first, so that they are there at once; the caller's for what there is of every rollout. Both read committed records as members of no group, and rest at
     * the end of a growing log while nobody looks.
     */
    static final class LogFeed implements AutoCloseable {
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

    /** Reads a run that does not go on into an index: the newest steps first, then all of it, from one end to the other. */
    static final class RecordedFeed {
        private static final int RECORDS = 4000;

        private final RecordedRun run;
        private final IndexFeed feed;
        private final BooleanSupplier stopped;
        private final long newest;

        /** @param stopped asked after each few thousand records, whether to leave the rest for later */
        RecordedFeed(RecordedRun run, IndexFeed feed, BooleanSupplier stopped) {
            this(run, feed, stopped, IndexFeed.NEWEST);
        }

        /** @param newest so many offsets of the training log come first */
        RecordedFeed(RecordedRun run, IndexFeed feed, BooleanSupplier stopped, long newest) {
            this.run = run;
            this.feed = feed;
            this.stopped = stopped;
            this.newest = newest;
        }

        /** @return whether all of it is in */
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
                    return false; // what is not in has not been noted as being in
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

        /** So that they are there before anything else of the run is looked at. */
        private void newest(TopicPartition partition) {
            RecordedRun.Range range = run.range(partition);
            long from = Math.max(range.from(), range.end() - newest);
            if (feed.position(partition).orElse(range.from()) >= from) {
                return; // what is behind it comes first anyway
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

    /**
     * Whether anybody looks at a run: listens to what is new of it, or asked of it a moment ago. A run that nobody looks at is not read, so that a page that is
     * open to be opened costs the run nothing. Thread-safe.
     */
    static final class Onlookers {
        private static final long STAYS_NANOS = TimeUnit.SECONDS.toNanos(5);

        private final Events events;
        private final LongSupplier nanos;
        private final AtomicLong asked;

        /** @param nanos a clock of which differences count */
        Onlookers(Events events, LongSupplier nanos) {
            this.events = events;
            this.nanos = nanos;
            this.asked = new AtomicLong(nanos.getAsLong());
        }

        /** Somebody asks now. */
        void ask() {
            asked.set(nanos.getAsLong());
        }

        /** Whether there are any. */
        boolean areThere() {
            return events.isWatched() || nanos.getAsLong() - asked.get() < STAYS_NANOS;
        }
    }

    /** Tells those who look at a run what is new of it. Thread-safe; a listener must not wait. */
    public static final class Events {
        private final List<Consumer<Event>> listeners = new CopyOnWriteArrayList<>();

        /**
         * Something new.
         *
         * @param name of its kind: {@code steps}, {@code index}, {@code state}, or {@code end}, the last
         * @param json what is to be said of it, on one line
         */
        public record Event(String name, String json) {}

        /** Tells it from now on. */
        public void add(Consumer<Event> listener) {
            listeners.add(listener);
        }

        /** Tells it no more. */
        public void remove(Consumer<Event> listener) {
            listeners.remove(listener);
        }

        /** Whether anybody looks. */
        public boolean isWatched() {
            return !listeners.isEmpty();
        }

        void tell(String name, String json) {
            Event event = new Event(name, json);
            listeners.forEach(listener -> listener.accept(event));
        }
    }

    /**
     * How far the index of a run is.
     *
     * @param read offsets that are in it
     * @param end offsets that there are
     * @param isWhole whether everything that there was at the last look is in it
     */
    public record IndexProgress(long read, long end, boolean isWhole) {
        static final IndexProgress NOTHING = new IndexProgress(0, 0, false);
    }
}
