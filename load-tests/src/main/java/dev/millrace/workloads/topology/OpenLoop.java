package dev.millrace.workloads.topology;

import dev.millrace.schemas.LogCoordinates;
import dev.millrace.workloads.BoundedWait;
import dev.millrace.workloads.topology.RolloutShape.RolloutDraw;
import dev.millrace.workloads.topology.RolloutShape.RolloutDraw.Fate;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.DelayQueue;
import java.util.concurrent.Delayed;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLongArray;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.atomic.LongAdder;
import java.util.concurrent.locks.LockSupport;
import java.util.function.LongSupplier;
import org.HdrHistogram.Recorder;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;

/**
 * Synthetic generators and scorer: publishes rollouts by the schedule, and each score after its rollout.
 *
 * <pre>
 *   intended ──publish delay──> handed to the producer ──> on the log ──score_after_ms──> score on the log
 *   └───────────────publish latency──────────────────────┘
 * </pre>
 *
 * <p>A late generator publishes everything due at once. Started once; owns its threads.
 */
public final class OpenLoop implements AutoCloseable {
    private static final long HIGHEST_NANOS = TimeUnit.HOURS.toNanos(1);
    private static final int DIGITS = 3;
    private static final byte[] GARBAGE = "no record".getBytes(StandardCharsets.UTF_8);

    private final SyntheticRun run;
    private final LoadPlan plan;
    private final Schedule schedule;
    private final Timeline timeline;
    private final long firstIndex;
    private final LongSupplier newestVersion;
    private final List<Thread> threads = new ArrayList<>();
    private final DelayQueue<Unscored> unscored = new DelayQueue<>();
    private final AtomicReference<Exception> failure = new AtomicReference<>();
    private final AtomicBoolean stopped = new AtomicBoolean();
    private final LongAdder rolloutsOnLog = new LongAdder();
    private final LongAdder rolloutsDone = new LongAdder();
    private final LongAdder bytes = new LongAdder();
    private final LongAdder ownNanos = new LongAdder();
    private final LongAdder madeRecords = new LongAdder();
    private final Recorder publishDelay = new Recorder(HIGHEST_NANOS, DIGITS);
    private final Recorder publishLatency = new Recorder(HIGHEST_NANOS, DIGITS);

    /**
     * @param firstIndex run index of the schedule's first record
     * @param newestVersion called once per rollout
     */
    public OpenLoop(SyntheticRun run, LoadPlan plan, Schedule schedule, long firstIndex, LongSupplier newestVersion) {
        this.run = run;
        this.plan = plan;
        this.schedule = schedule;
        this.timeline = new Timeline(schedule);
        this.firstIndex = firstIndex;
        this.newestVersion = newestVersion;
    }

    private record Unscored(RolloutDraw draw, LogCoordinates at, long version, long dueNanos) implements Delayed {
        @Override
        public long getDelay(TimeUnit unit) {
            return unit.convert(dueNanos - System.nanoTime(), TimeUnit.NANOSECONDS);
        }

        @Override
        public int compareTo(Delayed other) {
            return Long.compare(dueNanos, ((Unscored) other).dueNanos);
        }
    }

    public void start() {
        timeline.begin(System.nanoTime());
        for (int g = 0; g < plan.generators(); g++) {
            int generator = g;
            threads.add(new Thread(() -> guarded(() -> generate(generator)), "load generator " + g));
        }
        threads.add(new Thread(() -> guarded(this::score), "load scorer"));
        threads.forEach(thread -> thread.setDaemon(true));
        threads.forEach(Thread::start);
    }

    private interface Work {
        void run() throws InterruptedException;
    }

    private void guarded(Work work) {
        try {
            work.run();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt(); // closed
        } catch (RuntimeException e) {
            failure.compareAndSet(null, e);
        }
    }

    private void generate(int generator) {
        try (Producer<byte[], byte[]> producer = run.producer(plan.lingerMs())) {
            for (long i = generator; i < schedule.count() && !stopped.get(); i += plan.generators()) {
                long intended = timeline.intended(i);
                for (long wait = intended - System.nanoTime();
                        wait > 0 && !stopped.get();
                        wait = intended - System.nanoTime()) {
                    LockSupport.parkNanos(wait);
                }
                publish(producer, i, intended);
            }
            producer.flush();
        }
    }

    private void publish(Producer<byte[], byte[]> producer, long index, long intended) {
        long began = System.nanoTime();
        long version = newestVersion.getAsLong();
        long nowMs = System.currentTimeMillis();
        RolloutDraw draw = run.records().draw(firstIndex + index);
        ProducerRecord<byte[], byte[]> record = draw.fate() == Fate.GARBAGE
                ? new ProducerRecord<>(
                        run.connection().topics().rollouts(),
                        run.records().groupId(draw.index()).getBytes(StandardCharsets.UTF_8),
                        GARBAGE)
                : run.record(run.records().rollout(draw, version, nowMs), nowMs);
        bytes.add(Backlog.bytes(record));
        publishDelay.recordValue(Math.max(0, Math.min(HIGHEST_NANOS, began - intended)));
        long handed = System.nanoTime();
        ownNanos.add(handed - began);
        madeRecords.increment();
        producer.send(record, (at, failed) -> published(draw, version, intended, at, failed));
    }

    /** On the producer's thread. */
    private void published(RolloutDraw draw, long version, long intended, RecordMetadata at, Exception failed) {
        if (failed != null) {
            failure.compareAndSet(null, failed);
            return;
        }
        long now = System.nanoTime();
        publishLatency.recordValue(Math.max(0, Math.min(HIGHEST_NANOS, now - intended)));
        rolloutsOnLog.increment();
        if (draw.fate() == Fate.SCORED) {
            long delayMs = plan.scoreAfterMs().draw(new java.util.SplittableRandom(draw.index()));
            unscored.add(new Unscored(
                    draw,
                    new LogCoordinates(at.topic(), at.partition(), at.offset()),
                    version,
                    now + TimeUnit.MILLISECONDS.toNanos(delayMs)));
        } else {
            rolloutsDone.increment();
        }
    }

    private void score() throws InterruptedException {
        try (Producer<byte[], byte[]> producer = run.producer(plan.lingerMs())) {
            while (rolloutsDone.sum() < schedule.count() && !stopped.get()) {
                Unscored next = unscored.poll(50, TimeUnit.MILLISECONDS);
                if (next == null) {
                    continue;
                }
                long began = System.nanoTime();
                long nowMs = System.currentTimeMillis();
                ProducerRecord<byte[], byte[]> record =
                        run.record(run.records().score(next.draw(), next.at(), next.version(), nowMs), nowMs);
                bytes.add(Backlog.bytes(record));
                ownNanos.add(System.nanoTime() - began);
                madeRecords.increment();
                producer.send(record, (at, failed) -> {
                    failure.compareAndSet(null, failed);
                    if (failed == null) {
                        timeline.scored(next.draw().index() - firstIndex, System.nanoTime());
                    }
                    rolloutsDone.increment();
                });
            }
        }
    }

    /** True once all rollouts and scores are on the log. */
    public boolean isDone() {
        requireHealthy();
        return rolloutsDone.sum() >= schedule.count();
    }

    public void requireHealthy() {
        if (failure.get() != null) {
            throw new LoadException(
                    "the load could not be published: " + failure.get().getMessage(), failure.get());
        }
    }

    public Timeline timeline() {
        return timeline;
    }

    /** Intended time to producer, nanoseconds. */
    public Recorder publishDelay() {
        return publishDelay;
    }

    /** Intended time to acknowledgement, nanoseconds. */
    public Recorder publishLatency() {
        return publishLatency;
    }

    public long rolloutsOnLog() {
        return rolloutsOnLog.sum();
    }

    /** Keys and values handed to producers, uncompressed. */
    public long bytes() {
        return bytes.sum();
    }

    /** A negative index means the backlog. */
    public long tokensOf(long index) {
        return run.records().draw(firstIndex + index).response().tokens();
    }

    /** Mean nanoseconds to make a record; 0 before the first. */
    public double ownNanosPerRecord() {
        return madeRecords.sum() == 0 ? 0 : (double) ownNanos.sum() / madeRecords.sum();
    }

    /** Stops publishing, and waits for the threads. */
    @Override
    public void close() {
        stopped.set(true);
        threads.forEach(LockSupport::unpark);
        threads.forEach(BoundedWait::join);
    }

    /**
     * Times of each rollout, {@link System#nanoTime()} by index; 0 if not yet. Thread-safe with one writer per entry.
     */
    public static final class Timeline {
        private final Schedule schedule;
        private final AtomicLongArray scored;
        private volatile long startNanos;

        public Timeline(Schedule schedule) {
            this.schedule = schedule;
            this.scored = new AtomicLongArray(Math.toIntExact(schedule.count()));
        }

        void begin(long nowNanos) {
            startNanos = nowNanos;
        }

        public long intended(long index) {
            return startNanos + schedule.nanos(index);
        }

        void scored(long index, long nowNanos) {
            scored.set((int) index, nowNanos);
        }

        /** When rollout and score were both on the log; 0 if not yet. */
        public long scoredAt(long index) {
            return scored.get((int) index);
        }
    }
}
