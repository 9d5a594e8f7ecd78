package dev.millrace.workloads;

import dev.millrace.schemas.LearnerBatch;
import dev.millrace.workloads.topology.Distribution;
import dev.millrace.workloads.topology.LoadException;
import dev.millrace.workloads.topology.SyntheticRun;
import java.util.Objects;
import java.util.SplittableRandom;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.kafka.clients.producer.Producer;

/** Takes one batch after the other, waits as long as a step takes, and publishes the version that it would have made. */
public final class SyntheticLearner implements AutoCloseable {
    private final SyntheticRun run;
    private final Distribution stepMs;
    private final SplittableRandom random;
    private final LinkedBlockingQueue<Long> batches = new LinkedBlockingQueue<>();
    private final AtomicLong newest;
    private final AtomicLong steps = new AtomicLong();
    private final AtomicLong busyNanos = new AtomicLong();
    private volatile long stepBegan;
    private final AtomicReference<RuntimeException> failure = new AtomicReference<>();
    private final Thread thread;

    /** @param firstVersion newest version there is before the first step */
    public SyntheticLearner(SyntheticRun run, Distribution stepMs, long firstVersion, long seed) {
        this.run = run;
        this.stepMs = stepMs;
        this.random = new SplittableRandom(seed);
        this.newest = new AtomicLong(firstVersion);
        this.thread = new Thread(this::learn, "synthetic learner");
        thread.setDaemon(true);
        thread.start();
    }

    /** A batch is there for it. */
    public void offer(LearnerBatch batch) {
        batches.add(batch.getBatchId());
    }

    /** Newest version that it has published. */
    public long newestVersion() {
        if (failure.get() != null) {
            throw failure.get();
        }
        return newest.get();
    }

    /** How long it has been busy with batches so far, the step under way included. */
    public double busySeconds() {
        long began = stepBegan;
        return (busyNanos.get() + (began == 0 ? 0 : System.nanoTime() - began)) / 1e9;
    }

    /** Batches it has taken. */
    public long steps() {
        return steps.get();
    }

    private void learn() {
        try (Producer<byte[], byte[]> producer = run.producer(0)) {
            while (true) {
                long batch = batches.take();
                long began = System.nanoTime();
                stepBegan = began;
                Thread.sleep(stepMs.draw(random));
                long nowMs = System.currentTimeMillis();
                producer.send(run.record(run.records().version(newest.get() + 1, batch, nowMs), nowMs))
                        .get();
                newest.incrementAndGet();
                steps.incrementAndGet();
                stepBegan = 0;
                busyNanos.addAndGet(System.nanoTime() - began);
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt(); // closed
        } catch (ExecutionException e) {
            failure.set(new LoadException(
                    "a version could not be published: "
                            + Objects.requireNonNullElse(e.getCause(), e).getMessage(),
                    Objects.requireNonNullElse(e.getCause(), e)));
        }
    }

    @Override
    public void close() {
        thread.interrupt();
        try {
            thread.join();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
