package dev.millrace.workloads.topology;

import dev.millrace.log.run.TopicsConfig;
import dev.millrace.schemas.BatchEntry;
import dev.millrace.topology.TopologyConfig;
import dev.millrace.topology.batch.BatchConfig;
import dev.millrace.workloads.AlgorithmPlan;
import dev.millrace.workloads.BatchedRollouts;
import dev.millrace.workloads.BoundedWait;
import dev.millrace.workloads.TopicWatch;
import dev.millrace.workloads.topology.Schedule.Arrivals;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Measures how long batches stop when the only instance goes and another is started in its place at once, under a steady
 * load: from the last batch before to the first one after. Starting a JVM is part of it.
 *
 * <p>Afterwards every rollout must be in exactly one batch.
 */
public final class Restart {
    private static final long SEED = 13;
    private static final int NEWEST_VERSION = 8;
    private static final double ROLLOUTS_PER_SECOND = 200;
    private static final int HEAP_MEGABYTES = 512;
    private static final Duration LIMIT = Duration.ofMinutes(3);

    private final String bootstrapServers;
    private final TopicsConfig topics;
    private final Path scratch;
    private final int seconds;

    /** @param seconds of the load */
    public Restart(String bootstrapServers, TopicsConfig topics, Path scratch, int seconds) {
        this.bootstrapServers = bootstrapServers;
        this.topics = topics;
        this.scratch = scratch;
        this.seconds = seconds;
    }

    /** How the instance goes. */
    public enum Way {
        /** It is told to stop, commits, and leaves. */
        STOPPED,
        /** It is killed. */
        KILLED
    }

    /**
     * What was seen.
     *
     * @param gapSeconds without a batch; of these
     * @param toMainSeconds from the end of the first instance until the second one's main method
     * @param toRunningSeconds from there until it has partitions to work on: connected, joined, restored
     * @param lost rollouts in no batch
     * @param repeated rollouts in more than one
     */
    public record Result(
            Way way,
            double gapSeconds,
            double toMainSeconds,
            double toRunningSeconds,
            long rollouts,
            long lost,
            long repeated) {
        /** Whether every rollout was there once. */
        public boolean isExact() {
            return lost == 0 && repeated == 0;
        }
    }

    /** Takes an instance away and brings another. */
    public Result measure(Way way) throws InterruptedException {
        RolloutShape shape = RolloutShape.defaults();
        int group = shape.groupSize();
        long count = Math.round(ROLLOUTS_PER_SECOND * seconds) / group * group;
        String name = "restart-" + way.name().toLowerCase(java.util.Locale.ROOT);
        TopologyConfig config =
                TopologyConfig.defaults().with(new BatchConfig(group, 0, BatchConfig.Order.COMPLETION, 0, false));
        AtomicLong lastBatch = new AtomicLong();
        AtomicLong longestGap = new AtomicLong();
        AtomicLong entries = new AtomicLong();
        Map<Long, Boolean> seen = new ConcurrentHashMap<>();
        try (SyntheticRun run =
                new SyntheticRun(Map.of("bootstrap.servers", bootstrapServers), name, topics, shape, SEED, "lz4")) {
            run.publishVersions(NEWEST_VERSION, System.currentTimeMillis() - 3_600_000);
            OpenLoop load = new OpenLoop(
                    run,
                    new LoadPlan(ROLLOUTS_PER_SECOND, Arrivals.EVEN, 1, Distribution.fixed(0), 0),
                    Schedule.of(Arrivals.EVEN, ROLLOUTS_PER_SECOND, count, SEED),
                    0,
                    () -> NEWEST_VERSION);
            InstanceProcess first = InstanceProcess.start(
                    bootstrapServers,
                    name,
                    scratch.resolve(name + "-1"),
                    "one",
                    HEAP_MEGABYTES,
                    config,
                    AlgorithmPlan.defaults(),
                    topics);
            InstanceProcess second = null;
            long toMain = 0;
            long toRunning = 0;
            try (TopicWatch watch = new TopicWatch(
                    run.connection(),
                    run.connection().topics().batches(),
                    BatchedRollouts.batches(run.connection(), made -> {
                        long now = System.nanoTime();
                        long before = lastBatch.getAndSet(now);
                        if (before != 0) {
                            longestGap.accumulateAndGet(now - before, Math::max);
                        }
                        for (BatchEntry entry : made.getEntries()) {
                            entries.incrementAndGet();
                            seen.put(BatchedRollouts.index(entry, group), true);
                        }
                    }))) {
                load.start();
                BoundedWait.await("a steady stream of batches", LIMIT, () -> {
                    watch.requireAllToCome();
                    load.requireHealthy();
                    return entries.get() > 0 && load.rolloutsOnLog() - entries.get() < 2 * ROLLOUTS_PER_SECOND;
                });
                if (load.isDone()) {
                    throw new LoadException("the load of " + seconds + " s was over before the topology kept up with "
                            + Math.round(ROLLOUTS_PER_SECOND)
                            + " rollouts/s, so no restart under load was seen; leave the machine to the measurement");
                }
                longestGap.set(0);
                if (way == Way.KILLED) {
                    first.kill();
                } else {
                    first.stop();
                }
                long gone = System.nanoTime();
                second = InstanceProcess.start(
                        bootstrapServers,
                        name,
                        scratch.resolve(name + "-2"),
                        "one",
                        HEAP_MEGABYTES,
                        config,
                        AlgorithmPlan.defaults(),
                        topics);
                second.awaitMain();
                toMain = System.nanoTime() - gone;
                second.awaitRunning();
                toRunning = System.nanoTime() - gone - toMain;
                BoundedWait.await("every rollout in a batch", LIMIT, () -> {
                    watch.requireAllToCome();
                    return load.isDone() && seen.size() >= count;
                });
                second.stop();
            } finally {
                load.close();
                first.close();
                if (second != null) {
                    second.close();
                }
            }
            run.delete();
            return new Result(
                    way,
                    longestGap.get() / 1e9,
                    toMain / 1e9,
                    toRunning / 1e9,
                    count,
                    count - seen.size(),
                    entries.get() - seen.size());
        }
    }
}
