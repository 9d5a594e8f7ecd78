package dev.millrace.loadtests.topology;

import dev.millrace.infra.topics.TopicsConfig;
import dev.millrace.loadtests.openloop.LoadPlan;
import dev.millrace.loadtests.openloop.OpenLoop;
import dev.millrace.loadtests.openloop.Schedule;
import dev.millrace.loadtests.openloop.Schedule.Arrivals;
import dev.millrace.loadtests.synthetic.Distribution;
import dev.millrace.loadtests.synthetic.RolloutShape;
import dev.millrace.loadtests.synthetic.SyntheticRun;
import dev.millrace.loadtests.watch.BatchedRollouts;
import dev.millrace.loadtests.watch.Patience;
import dev.millrace.loadtests.watch.TopicWatch;
import dev.millrace.schemas.BatchEntry;
import dev.millrace.topology.TopologyConfig;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import org.HdrHistogram.Histogram;

/**
 * Measures what the topology adds at a steady rate: from the moment a batch could be made, when the score of its last
 * rollout is on the log, until it is visible to a reader of committed records.
 *
 * <p>Two hops lie between, through {@code trajectories}, each with a transaction of its own. Waiting for the other rollouts of
 * its batch is no part of it, since the last one's score begins it. Batches are as large as they were when the rate was found
 * of which this is a share. The first third warms up and is not counted.
 */
public final class AddedLatency {
    private static final long SEED = 11;
    private static final int NEWEST_VERSION = 8;
    private static final Duration LIMIT = Duration.ofMinutes(2);

    private final Map<String, Object> client;
    private final TopologyConfig config;
    private final TopicsConfig topics;
    private final Path scratch;

    public AddedLatency(Map<String, Object> client, TopologyConfig config, TopicsConfig topics, Path scratch) {
        this.client = client;
        this.config = config;
        this.topics = topics;
        this.scratch = scratch;
    }

    /**
     * Milliseconds.
     *
     * @param batches that were counted
     * @param limitMs three commit intervals
     * @param publishDelayP99 how late the load itself was
     */
    public record Result(int responseTokens, double rolloutsPerSecond, long batches, double p50, double p99, double max, double limitMs,
        double publishDelayP99) {
    }

    /** Measures at a rate for so long. */
    public Result measure(int responseTokens, double rolloutsPerSecond, int seconds) throws InterruptedException {
        RolloutShape shape = RolloutShape.defaults().withResponseTokens(responseTokens);
        int group = shape.groupSize();
        int size = config.batch().sequences();
        long expected = Math.max(20, Math.round(rolloutsPerSecond * seconds / size));
        LoadPlan plan = new LoadPlan(rolloutsPerSecond, Arrivals.EVEN, 1, Distribution.fixed(0), 0);
        Histogram added = new Histogram(3);
        AtomicLong batches = new AtomicLong();
        try (SyntheticRun run = new SyntheticRun(client, "latency-" + responseTokens, topics, shape, SEED, config.runtime().compression())) {
            run.publishVersions(NEWEST_VERSION, System.currentTimeMillis() - 3_600_000);
            OpenLoop load = new OpenLoop(run, plan, Schedule.of(Arrivals.EVEN, rolloutsPerSecond, expected * size, SEED), 0, () -> NEWEST_VERSION);
            try (RunningTopology topology = new RunningTopology(config, run.connection(), scratch.resolve("latency"), 1);
                 TopicWatch watch = new TopicWatch(run.connection(), run.connection().topics().batches(),
                     BatchedRollouts.batches(run.connection(), batch -> {
                         long now = System.nanoTime();
                         long ready = 0;
                         for (BatchEntry entry : batch.getEntries()) {
                             ready = Math.max(ready, load.timeline().scoredAt(BatchedRollouts.index(entry, group)));
                         }
                         if (batches.incrementAndGet() > expected / 3) {
                             added.recordValue(Math.max(0, now - ready));
                         }
                     }))) {
                topology.awaitRunning();
                load.start();
                Patience.await("the last batch at " + Math.round(rolloutsPerSecond) + " rollouts/s", LIMIT.plusSeconds(seconds), () -> {
                    load.requireHealthy();
                    watch.requireWatching();
                    topology.requireRunning();
                    return batches.get() >= expected;
                });
            } finally {
                load.close();
            }
            run.delete();
            return new Result(responseTokens, rolloutsPerSecond, added.getTotalCount(), added.getValueAtPercentile(50) / 1e6,
                added.getValueAtPercentile(99) / 1e6, added.getMaxValue() / 1e6, 3.0 * config.runtime().commitIntervalMs(),
                load.publishDelay().getIntervalHistogram().getValueAtPercentile(99) / 1e6);
        }
    }
}
