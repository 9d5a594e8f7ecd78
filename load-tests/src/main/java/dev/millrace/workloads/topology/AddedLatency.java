package dev.millrace.workloads.topology;

import dev.millrace.log.run.TopicsConfig;
import dev.millrace.schemas.BatchEntry;
import dev.millrace.topology.TopologyConfig;
import dev.millrace.topology.batch.BatchConfig;
import dev.millrace.workloads.AlgorithmPlan;
import dev.millrace.workloads.BatchedRollouts;
import dev.millrace.workloads.BoundedWait;
import dev.millrace.workloads.Knee;
import dev.millrace.workloads.KneeSearch;
import dev.millrace.workloads.TopicWatch;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;
import org.HdrHistogram.Histogram;

/**
 * Measures what the topology adds at half load: from the moment a batch could be made, when the score of its last rollout is
 * on the log, until it is visible to a reader of committed records.
 *
 * <p>Two hops lie between, through {@code trajectories}, each with a transaction of its own. Waiting for the other rollouts of
 * its batch is no part of it, since the last one's score begins it.
 *
 * <p>Half load is half of the highest rate that is followed, found with the load running beside broker and topology on the same
 * machine: what works off a prepared backlog has the processors to itself, and half of that may be more than all three can do.
 * A rate is followed if a load of it is done in time, from its first intended moment until its last batch is visible; the search
 * begins once the first rate is, when what matters is compiled. The first third of the
 * measurement warms up and is not counted.
 */
public final class AddedLatency {
    private static final long SEED = 11;
    private static final int NEWEST_VERSION = 8;
    private static final Duration LIMIT = Duration.ofMinutes(2);
    /** Bytes of input per second at which the search begins. */
    private static final double FIRST_BYTES_PER_SECOND = 8e6;

    private static final int WARM_UPS = 4;
    private static final int KNEE_POINTS = 6;
    /** The rates of the search are loads of this share of the measurement. */
    private static final int SHORTER = 9;
    /** Batches of long rollouts have fewer of them, so that there are enough batches to speak of a percentile. */
    private static final int MOST_TOKENS_OF_A_BATCH = 1 << 20;

    private static final int LEAST_BATCHES = 20;

    private final Map<String, Object> client;
    private final TopologyConfig config;
    private final TopicsConfig topics;
    private final Path scratch;
    private final int seconds;
    private int runs;

    /** @param seconds of the load at which it is measured */
    public AddedLatency(
            Map<String, Object> client, TopologyConfig config, TopicsConfig topics, Path scratch, int seconds) {
        this.client = client;
        this.config = config;
        this.topics = topics;
        this.scratch = scratch;
        this.seconds = seconds;
    }

    /**
     * Milliseconds, where nothing else is said.
     *
     * @param batchSequences rollouts of a batch
     * @param followed most rollouts per second that the topology followed with the load beside it
     * @param rolloutsPerSecond of the measurement, half of it
     * @param batches that were counted
     * @param limitMs three commit intervals
     * @param publishDelayP99 how late the load itself was
     */
    public record Result(
            int responseTokens,
            int batchSequences,
            double followed,
            double rolloutsPerSecond,
            long batches,
            double p50,
            double p95,
            double p99,
            double max,
            double limitMs,
            double publishDelayP99) {}

    /** What one load came to. */
    private record Round(double achieved, Histogram added, double publishDelayP99) {}

    /** Finds the highest rate that is followed, then measures at half of it. */
    public Result measure(int responseTokens, int bytesPerRollout, Consumer<String> progress)
            throws InterruptedException {
        double first = FIRST_BYTES_PER_SECOND / bytesPerRollout;
        boolean warm = false;
        for (int i = 0; i < WARM_UPS && !warm; i++) {
            warm = new Knee.Point(first, achieved("warming up, ", responseTokens, first, progress)).followed();
        }
        List<Knee.Point> points =
                KneeSearch.run(first, KNEE_POINTS, offered -> achieved("", responseTokens, offered, progress));
        double followed = Knee.highestFollowed(points);
        if (followed == 0) {
            throw new LoadException("at " + responseTokens
                    + " tokens the topology followed none of the rates that were offered: " + points);
        }
        Round half = round(responseTokens, followed / 2, seconds);
        Histogram added = half.added();
        return new Result(
                responseTokens,
                batchSequences(responseTokens),
                followed,
                followed / 2,
                added.getTotalCount(),
                added.getValueAtPercentile(50) / 1e6,
                added.getValueAtPercentile(95) / 1e6,
                added.getValueAtPercentile(99) / 1e6,
                added.getMaxValue() / 1e6,
                3.0 * config.runtime().commitIntervalMs(),
                half.publishDelayP99());
    }

    private double achieved(String why, int responseTokens, double offered, Consumer<String> progress)
            throws InterruptedException {
        double achieved = round(responseTokens, offered, seconds / SHORTER).achieved();
        progress.accept(String.format(
                Locale.ROOT,
                "%s%d tokens under load: %.0f rollouts/s of %.0f",
                why,
                responseTokens,
                achieved,
                offered));
        return achieved;
    }

    private int batchSequences(int responseTokens) {
        return Math.min(config.batch().sequences(), Math.max(1, MOST_TOKENS_OF_A_BATCH / responseTokens));
    }

    private Round round(int responseTokens, double rolloutsPerSecond, int seconds) throws InterruptedException {
        RolloutShape shape = RolloutShape.defaults().withResponseTokens(responseTokens);
        int group = shape.groupSize();
        int size = batchSequences(responseTokens);
        TopologyConfig batched = config.with(
                new BatchConfig(size, 0, config.batch().order(), config.batch().maxOutstanding(), false));
        long expected = Math.max(LEAST_BATCHES, Math.round(rolloutsPerSecond * seconds / size));
        LoadPlan plan = LoadPlan.defaults().withRate(rolloutsPerSecond).withScoreAfterMs(0);
        Histogram added = new Histogram(3);
        AtomicLong batches = new AtomicLong();
        AtomicLong lastSeen = new AtomicLong();
        String name = "latency-" + runs++;
        try (SyntheticRun run = new SyntheticRun(
                client, name, topics, shape, SEED, config.runtime().compression())) {
            run.publishVersions(NEWEST_VERSION, System.currentTimeMillis() - 3_600_000);
            OpenLoop load = new OpenLoop(
                    run,
                    plan,
                    Schedule.of(plan.arrivals(), rolloutsPerSecond, expected * size, SEED),
                    0,
                    () -> NEWEST_VERSION);
            try (RunningTopology topology = new RunningTopology(
                            batched, AlgorithmPlan.defaults(), run.connection(), scratch.resolve(name), 1);
                    TopicWatch watch = new TopicWatch(
                            run.connection(),
                            run.connection().topics().batches(),
                            BatchedRollouts.batches(run.connection(), batch -> {
                                long now = System.nanoTime();
                                long ready = 0;
                                for (BatchEntry entry : batch.getEntries()) {
                                    ready = Math.max(
                                            ready, load.timeline().scoredAt(BatchedRollouts.index(entry, group)));
                                }
                                if (batches.get() >= expected / 3) {
                                    added.recordValue(Math.max(0, now - ready));
                                }
                                lastSeen.set(now);
                                batches.incrementAndGet();
                            }))) {
                topology.awaitRunning();
                load.start();
                BoundedWait.await(
                        "the last batch at " + Math.round(rolloutsPerSecond) + " rollouts/s",
                        LIMIT.plusSeconds(seconds),
                        () -> {
                            load.requireHealthy();
                            watch.requireAllToCome();
                            topology.requireRunning();
                            return batches.get() >= expected;
                        });
            } finally {
                load.close();
            }
            run.delete();
            return new Round(
                    expected * size / ((lastSeen.get() - load.timeline().intended(0)) / 1e9),
                    added,
                    load.publishDelay().getIntervalHistogram().getValueAtPercentile(99) / 1e6);
        }
    }
}
