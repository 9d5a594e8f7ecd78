package dev.millrace.workloads;

import dev.millrace.workloads.topology.Backlog;
import dev.millrace.workloads.topology.LoadException;
import dev.millrace.workloads.topology.RawCopy;
import dev.millrace.workloads.topology.RolloutShape.RolloutDraw;
import dev.millrace.workloads.topology.SyntheticRun;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerRecord;

/**
 * The stock client with the same records on the same broker: publishing at full speed, and a raw transactional copy.
 *
 * @param generatorShare of a generator's time spent making records; below one half the broker saturates first
 * @param ownMicros processor time of the generator per record
 * @param copyMegabytesPerSecond of an exactly-once copy, the fastest once three in a row gain nothing
 */
public record Baseline(
        int generators,
        double publishRolloutsPerSecond,
        double publishMegabytesPerSecond,
        double generatorShare,
        double ownMicros,
        double copyMegabytesPerSecond) {

    private static final int PUBLISHING_SECONDS = 3;
    private static final int MADE_AT_ONCE = 100;
    /** For a load of at least ten seconds. */
    private static final int COPIED_MEGABYTES = 96;

    private static final Duration MAKING = Duration.ofMillis(500);
    private static final int LONG_LOAD_SECONDS = 10;
    private static final int MOST_COPIES = 12;
    private static final int COPIES_WITHOUT_GAIN = 3;
    private static final double GAIN = 1.05;
    private static final int LEAST_COPIED = 64;
    /** Of the load, up to ten seconds, that the copies take. */
    private static final double COPYING_SHARE = 0.6;

    /** About how long {@link #measure} takes on two cores. */
    static double seconds(Workload workload) {
        return 2 * Math.min(PUBLISHING_SECONDS, workload.seconds())
                + COPYING_SHARE * Math.min(LONG_LOAD_SECONDS, workload.seconds());
    }

    public static Baseline measure(Map<String, Object> client, Workload workload, String name)
            throws InterruptedException {
        String compression = workload.topology().runtime().compression();
        try (SyntheticRun run =
                new SyntheticRun(client, name, workload.topics(), workload.rollouts(), workload.seed(), compression)) {
            Duration time = Duration.ofSeconds(Math.min(PUBLISHING_SECONDS, workload.seconds()));
            Publishing warm = publish(run, workload, 0, time);
            Publishing publishing = publish(run, workload, warm.records(), time);
            run.delete();
            int parts = Math.min(LONG_LOAD_SECONDS, workload.seconds());
            Duration making = MAKING.multipliedBy(parts).dividedBy(LONG_LOAD_SECONDS);
            makingSeconds(run, making); // compiles it
            double ownSeconds = makingSeconds(run, making);
            double copied = copy(
                    client,
                    workload,
                    name + "-copied",
                    publishing.bytes() / Math.max(1, publishing.records()),
                    COPIED_MEGABYTES * 1_000_000L * parts / LONG_LOAD_SECONDS);
            return new Baseline(
                    workload.load().generators(),
                    publishing.records() / publishing.seconds(),
                    publishing.bytes() / 1e6 / publishing.seconds(),
                    ownSeconds * publishing.records() / workload.load().generators() / publishing.seconds(),
                    ownSeconds * 1e6,
                    copied);
        }
    }

    private record Publishing(long records, long bytes, double seconds) {}

    /** Processor time per record by this thread's own clock, unaffected by other load. */
    private static double makingSeconds(SyntheticRun run, Duration time) {
        ThreadMXBean threads = ManagementFactory.getThreadMXBean();
        long bytes = 0;
        long records = 0;
        long began = threads.getCurrentThreadCpuTime();
        while (threads.getCurrentThreadCpuTime() - began < time.toNanos()) {
            for (int i = 0; i < MADE_AT_ONCE; i++) {
                bytes += Backlog.bytes(
                        run.record(run.records().rollout(run.records().draw(records), 0, records), records));
                records++;
            }
        }
        if (bytes < records) { // consumed, so that nothing of it is optimised away
            throw new IllegalStateException(records + " records of " + bytes + " bytes");
        }
        return (threads.getCurrentThreadCpuTime() - began) / 1e9 / records;
    }

    /** With the workload's number of generators, each with its own producer. */
    private static Publishing publish(SyntheticRun run, Workload workload, long from, Duration time)
            throws InterruptedException {
        int generators = workload.load().generators();
        ExecutorService threads = Executors.newFixedThreadPool(generators);
        try {
            List<Future<Publishing>> parts = new ArrayList<>();
            for (int g = 0; g < generators; g++) {
                long first = from + g;
                parts.add(threads.submit(() -> publish(run, workload.load().lingerMs(), first, generators, time)));
            }
            long records = 0;
            long bytes = 0;
            double seconds = 0;
            for (Future<Publishing> part : parts) {
                records += part.get().records();
                bytes += part.get().bytes();
                seconds = Math.max(seconds, part.get().seconds());
            }
            return new Publishing(records, bytes, seconds);
        } catch (ExecutionException e) {
            throw LoadException.of("the baseline could not be published", e);
        } finally {
            threads.shutdownNow();
        }
    }

    private static Publishing publish(SyntheticRun run, int lingerMs, long from, int stride, Duration time) {
        AtomicReference<Exception> failure = new AtomicReference<>();
        long bytes = 0;
        long records = 0;
        long began = System.nanoTime();
        try (Producer<byte[], byte[]> producer = run.producer(lingerMs)) {
            while (System.nanoTime() - began < time.toNanos()) {
                RolloutDraw draw = run.records().draw(from + stride * records++);
                long nowMs = System.currentTimeMillis();
                ProducerRecord<byte[], byte[]> record = run.record(run.records().rollout(draw, 0, nowMs), nowMs);
                bytes += Backlog.bytes(record);
                producer.send(record, (at, failed) -> failure.compareAndSet(null, failed));
            }
            producer.flush();
        }
        if (failure.get() != null) {
            throw new LoadException(
                    "the baseline could not be published: " + failure.get().getMessage(), failure.get());
        }
        return new Publishing(records, bytes, (System.nanoTime() - began) / 1e9);
    }

    private static double copy(
            Map<String, Object> client, Workload workload, String name, long bytesPerRollout, long bytes)
            throws InterruptedException {
        String compression = workload.topology().runtime().compression();
        int group = workload.rollouts().groupSize();
        // a score is about as large as its rollout
        int rollouts = (int) Math.max(LEAST_COPIED, bytes / (2 * bytesPerRollout)) / group * group + group;
        try (SyntheticRun run =
                new SyntheticRun(client, name, workload.topics(), workload.rollouts(), workload.seed(), compression)) {
            Backlog backlog = Backlog.publish(
                    run, 0, rollouts, workload.rollouts().versionsBehind().most());
            RawCopy copy = new RawCopy(
                    run.connection(),
                    List.of(
                            run.connection().topics().rollouts(),
                            run.connection().topics().scores()),
                    workload.topics().partitions(),
                    workload.topology().runtime().commitIntervalMs(),
                    compression);
            int threads = workload.instances() * workload.topology().runtime().threads();
            double best = 0;
            int withoutGain = 0;
            for (int c = 0; c < MOST_COPIES && withoutGain < COPIES_WITHOUT_GAIN; c++) {
                double rate = backlog.bytes() / 1e6 / (copy.run("-copy-" + c, threads) / 1e9);
                withoutGain = rate > GAIN * best ? 0 : withoutGain + 1;
                best = Math.max(best, rate);
            }
            run.delete();
            return best;
        }
    }
}
