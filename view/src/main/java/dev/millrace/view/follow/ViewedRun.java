package dev.millrace.view.follow;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import dev.millrace.api.tokenizer.Tokenizer;
import dev.millrace.log.LogConnection;
import dev.millrace.log.run.LogSetupException;
import dev.millrace.replay.archive.ArchiveException;
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
import dev.millrace.view.index.RecordIndexer;
import dev.millrace.view.index.RunIndex;
import java.nio.file.Path;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import org.apache.kafka.common.KafkaException;
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
}
