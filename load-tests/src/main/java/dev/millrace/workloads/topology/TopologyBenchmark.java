package dev.millrace.workloads.topology;

import com.fasterxml.jackson.annotation.JsonUnwrapped;
import dev.millrace.infra.broker.BrokerConfig;
import dev.millrace.infra.broker.BrokerProcess;
import dev.millrace.log.run.TopicsConfig;
import dev.millrace.report.Column;
import dev.millrace.report.ReportOrigin;
import dev.millrace.report.Section;
import dev.millrace.report.Table;
import dev.millrace.schemas.BatchEntry;
import dev.millrace.topology.TopologyConfig;
import dev.millrace.topology.batch.BatchConfig;
import dev.millrace.workloads.AlgorithmPlan;
import dev.millrace.workloads.BoundedWait;
import dev.millrace.workloads.Goal;
import dev.millrace.workloads.Knee;
import dev.millrace.workloads.Knee.KneeSearch;
import dev.millrace.workloads.TopicWatch;
import dev.millrace.workloads.TopicWatch.BatchedRollouts;
import dev.millrace.workloads.topology.Schedule.Arrivals;
import dev.millrace.workloads.topology.Throughput.ThroughputCase;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.HdrHistogram.Histogram;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.utils.internals.AppInfoParser;

/**
 * The topology with full join, default corrections and exactly-once delivery against its goals, on its own broker:
 * throughput next to a raw copy over lengths, threads and instances; bytes written; latency at half load; restarts;
 * memory.
 */
public final class TopologyBenchmark {
    /** Required throughput ratio. */
    private static final double LEAST_RATIO = 0.5;

    private static final double MOST_WRITTEN = 2.2;
    private static final double MOST_GAP_SECONDS = 5;
    private static final int MEMORY_TOKENS = 512;
    /** Too small for state that grows with a backlog's payloads. */
    private static final int MEMORY_HEAP_MEGABYTES = 384;

    private static final int LEARNER_STOPPED_AT = 4;
    /** Of rollout and score with prompt and fields. */
    private static final int BYTES_PER_TOKEN = 17;

    private final Plan plan;
    private final Path scratch;
    private final Consumer<String> progress;

    public TopologyBenchmark(Plan plan, Path scratch, Consumer<String> progress) {
        this.plan = plan;
        this.scratch = scratch;
        this.progress = progress;
    }

    /** A part that can be measured alone. */
    public enum Part {
        THROUGHPUT,
        LATENCY,
        RESTARTS,
        MEMORY
    }

    /**
     * Parameters of the throughput measurement.
     *
     * @param instances of one thread each, more than one
     * @param backlogMegabytes input per repetition, approximately
     * @param repetitions after the warm-up
     */
    public record Repeated(List<Integer> threads, List<Integer> instances, int backlogMegabytes, int repetitions) {}

    /**
     * @param memoryRollouts backlog of the memory measurement
     * @param restartSeconds load of the restart measurement
     */
    public record Plan(
            Set<Part> parts,
            List<Integer> responseTokens,
            Repeated throughput,
            int memoryRollouts,
            int latencySeconds,
            int restartSeconds) {

        public static Plan whole() {
            return new Plan(
                    EnumSet.allOf(Part.class),
                    List.of(512, 4096, 32_768),
                    new Repeated(List.of(1, 2, 4), List.of(2), 512, 5),
                    100_000,
                    90,
                    45);
        }

        public static Plan quick() {
            return new Plan(
                    EnumSet.allOf(Part.class), List.of(512), new Repeated(List.of(1), List.of(), 24, 3), 4096, 18, 20);
        }

        /** This plan with another number of repetitions, at least 1. */
        public Plan withRepetitions(int count) {
            return new Plan(
                    parts,
                    responseTokens,
                    new Repeated(throughput.threads(), throughput.instances(), throughput.backlogMegabytes(), count),
                    memoryRollouts,
                    latencySeconds,
                    restartSeconds);
        }

        public Plan only(Set<Part> some) {
            return new Plan(some, responseTokens, throughput, memoryRollouts, latencySeconds, restartSeconds);
        }
    }

    /** Results and goals. */
    public record Report(
            ReportOrigin origin,
            TopologyConfigFacts config,
            List<Throughput.Result> throughput,
            List<AddedLatency.Result> latency,
            List<Restart.Result> restarts,
            List<BacklogMemory.Result> memory,
            List<Goal> goals) {}

    /** Settings that the results depend on. */
    public record TopologyConfigFacts(
            int partitions, int batchSequences, long commitIntervalMs, String compression, String stateStores) {}

    /** Measures everything, one after the other. */
    public Report run(String command) throws InterruptedException {
        ReportOrigin origin = ReportOrigin.here(command, AppInfoParser.getVersion());
        TopologyConfig config = TopologyConfig.defaults();
        TopicsConfig topics = TopicsConfig.defaults();
        List<Throughput.Result> throughput = new ArrayList<>();
        List<AddedLatency.Result> latency = new ArrayList<>();
        List<Restart.Result> restarts = new ArrayList<>();
        List<BacklogMemory.Result> memory = new ArrayList<>();
        try (BrokerProcess broker =
                BrokerProcess.start(scratch.resolve("broker"), BrokerConfig.defaults(), List.of("-Xmx1g"))) {
            Map<String, Object> client = Map.of("bootstrap.servers", broker.bootstrapServers());
            if (plan.parts().contains(Part.THROUGHPUT)) {
                Throughput meter =
                        new Throughput(client, ProcessHandle.of(broker.pid()).orElseThrow(), config, topics, scratch);
                for (int tokens : plan.responseTokens()) {
                    List<ThroughputCase> cases = cases(tokens, config.batch().sequences());
                    meter.warmUp(cases.get(0), line -> progress.accept("warming up: " + line));
                    for (ThroughputCase what : cases) {
                        throughput.add(meter.measure(what, plan.throughput().repetitions(), progress));
                    }
                }
            }
            if (plan.parts().contains(Part.LATENCY)) {
                AddedLatency meter = new AddedLatency(client, config, topics, scratch, plan.latencySeconds());
                for (int tokens : plan.responseTokens()) {
                    latency.add(meter.measure(tokens, tokens * BYTES_PER_TOKEN, progress));
                    progress.accept("latency at half load: " + latency.get(latency.size() - 1));
                }
            }
            if (plan.parts().contains(Part.RESTARTS)) {
                double rate = latency.stream()
                        .filter(of -> of.responseTokens() == Restart.RESPONSE_TOKENS)
                        .mapToDouble(result -> result.added().rolloutsPerSecond())
                        .reduce(Restart.HIGHEST_RATE, Math::min);
                for (Restart.Way way : Restart.Way.values()) {
                    restarts.add(new Restart(broker.bootstrapServers(), topics, scratch, plan.restartSeconds(), rate)
                            .measure(way));
                    progress.accept("restart: " + restarts.get(restarts.size() - 1));
                }
            }
            if (plan.parts().contains(Part.MEMORY)) {
                for (int outstanding : List.of(0, LEARNER_STOPPED_AT)) {
                    memory.add(new BacklogMemory(broker.bootstrapServers(), topics, scratch)
                            .measure(plan.memoryRollouts(), MEMORY_TOKENS, outstanding, MEMORY_HEAP_MEGABYTES));
                    progress.accept("memory: " + memory.get(memory.size() - 1));
                }
            }
        }
        return new Report(
                origin,
                new TopologyConfigFacts(
                        topics.partitions(),
                        config.batch().sequences(),
                        config.runtime().commitIntervalMs(),
                        config.runtime().compression(),
                        config.runtime().stateStores().name()),
                throughput,
                latency,
                restarts,
                memory,
                goals(throughput, latency, restarts, memory));
    }

    private List<ThroughputCase> cases(int tokens, int batch) {
        long rollouts = Math.round(plan.throughput().backlogMegabytes() * 1e6 / ((double) tokens * BYTES_PER_TOKEN));
        int whole = (int) Math.max(1, Math.round((double) rollouts / batch)) * batch;
        List<ThroughputCase> cases = new ArrayList<>();
        plan.throughput().threads().forEach(threads -> cases.add(new ThroughputCase(tokens, whole, 1, threads)));
        plan.throughput().instances().forEach(instances -> cases.add(new ThroughputCase(tokens, whole, instances, 1)));
        return cases;
    }

    private static List<Goal> goals(
            List<Throughput.Result> throughput,
            List<AddedLatency.Result> latency,
            List<Restart.Result> restarts,
            List<BacklogMemory.Result> memory) {
        List<Goal> goals = new ArrayList<>();
        for (Throughput.Result result : throughput) {
            goals.add(new Goal(
                    "throughput against a copy, " + result.of().label(),
                    format("%.2f", result.ratios().ratio().median()),
                    format("at least %.1f (goal 0.8)", LEAST_RATIO),
                    result.ratios().ratio().median() >= LEAST_RATIO));
        }
        for (Throughput.Result result : throughput) {
            if (result.of().allThreads() == 1) {
                goals.add(new Goal(
                        "bytes written per byte of input, " + result.of().responseTokens() + " tokens",
                        format("%.2f", result.ratios().bytesWritten().median()),
                        format("at most %.1f", MOST_WRITTEN),
                        result.ratios().bytesWritten().median() <= MOST_WRITTEN));
            }
        }
        for (AddedLatency.Result result : latency) {
            goals.add(new Goal(
                    "latency added at half load, " + result.responseTokens() + " tokens",
                    format(
                            "p50 %.0f ms, p95 %.0f ms, p99 %.0f ms of %d batches at %.0f of %.0f rollouts/s",
                            result.added().p50(),
                            result.added().p95(),
                            result.added().p99(),
                            result.added().batches(),
                            result.added().rolloutsPerSecond(),
                            result.followed()),
                    format("p99 below %.0f ms", result.limitMs()),
                    result.added().p99() < result.limitMs()));
        }
        for (Restart.Result result : restarts) {
            goals.add(new Goal(
                    "restart, instance " + result.way().name().toLowerCase(Locale.ROOT),
                    format(
                            "%.1f s (%.1f to its main, %.1f until it runs), %d lost, %d repeated",
                            result.gapSeconds(),
                            result.toMainSeconds(),
                            result.toRunningSeconds(),
                            result.lost(),
                            result.repeated()),
                    format("below %.0f s, counts exact", MOST_GAP_SECONDS),
                    result.gapSeconds() < MOST_GAP_SECONDS && result.isExact()));
        }
        for (BacklogMemory.Result result : memory) {
            goals.add(new Goal(
                    format("backlog of %d rollouts, max_outstanding %d", result.rollouts(), result.maxOutstanding()),
                    result.end().survived()
                            ? format(
                                    "live heap %.0f MiB, state %.1f MiB",
                                    result.end().liveHeapBytes() / 1048576.0,
                                    result.end().stateBytes() / 1048576.0)
                            : "ended: " + result.end().lastWords(),
                    format("within %d MiB of heap", result.heapLimitMegabytes()),
                    result.end().survived()));
        }
        return goals;
    }

    private static String format(String pattern, Object... values) {
        return String.format(Locale.ROOT, pattern, values);
    }

    /**
     * Measures live heap and state on disk of an instance whose learner takes no batch.
     *
     * <p>The instance runs in a process with a bounded heap and reads a backlog; no version follows the first batches. With
     * {@code max_outstanding = 0} batches are cut and wait on the log; with a limit, groups wait in the assembly.
     */
    static final class BacklogMemory {
        private static final long SEED = 17;
        private static final int NEWEST_VERSION = 8;
        private static final Duration LIMIT = Duration.ofMinutes(10);

        private final String bootstrapServers;
        private final TopicsConfig topics;
        private final Path scratch;

        public BacklogMemory(String bootstrapServers, TopicsConfig topics, Path scratch) {
            this.bootstrapServers = bootstrapServers;
            this.topics = topics;
            this.scratch = scratch;
        }

        /**
         * Result of one backlog.
         *
         * @param maxOutstanding batches that the topology may be ahead of the learner; 0 for no limit
         */
        public record Result(
                long rollouts,
                int responseTokens,
                int maxOutstanding,
                int heapLimitMegabytes,
                @JsonUnwrapped End end) {}

        /**
         * State of the instance after the backlog.
         *
         * @param survived whether it is running
         * @param lastWords its last output if not
         * @param liveHeapBytes after a full collection; 0 if it did not survive
         */
        public record End(boolean survived, String lastWords, long liveHeapBytes, long stateBytes) {}

        /** Lets an instance read a backlog of whole groups. */
        public BacklogMemory.Result measure(int rollouts, int responseTokens, int maxOutstanding, int heapMegabytes)
                throws InterruptedException {
            String name = "memory-" + maxOutstanding;
            Path state = scratch.resolve(name);
            AtomicLong trajectories = new AtomicLong();
            AtomicLong lastOffset = new AtomicLong();
            try (SyntheticRun run = new SyntheticRun(
                    Map.of("bootstrap.servers", bootstrapServers),
                    name,
                    topics,
                    RolloutShape.defaults().withResponseTokens(responseTokens),
                    SEED,
                    "lz4")) {
                run.publishVersions(NEWEST_VERSION, System.currentTimeMillis() - 3_600_000);
                Backlog backlog = Backlog.publish(run, 0, rollouts, NEWEST_VERSION);
                try (InstanceProcess instance = InstanceProcess.start(
                                bootstrapServers,
                                name,
                                state,
                                "one",
                                heapMegabytes,
                                new InstanceProcess.Settings(
                                        TopologyConfig.defaults()
                                                .with(new BatchConfig(
                                                        256, 0, BatchConfig.Order.COMPLETION, maxOutstanding, false)),
                                        AlgorithmPlan.defaults(),
                                        topics));
                        TopicWatch watch = new TopicWatch(
                                run.connection(), run.connection().topics().trajectories(), trajectory -> {
                                    lastOffset.set(trajectory.offset());
                                    trajectories.incrementAndGet();
                                });
                        Admin admin = Admin.create(run.connection().admin())) {
                    BoundedWait.await("trajectories of " + rollouts + " rollouts", LIMIT, () -> {
                        watch.requireAllToCome();
                        return trajectories.get() >= rollouts || !instance.isAlive();
                    });
                    TopicPartition read =
                            new TopicPartition(run.connection().topics().trajectories(), 0);
                    BoundedWait.await(
                            "the assembly to have read them",
                            LIMIT,
                            () -> !instance.isAlive()
                                    || committed(admin, run.connection().group("topology"), read) > lastOffset.get());
                    boolean survived = instance.isAlive();
                    BacklogMemory.Result result = new BacklogMemory.Result(
                            backlog.rollouts(),
                            responseTokens,
                            maxOutstanding,
                            heapMegabytes,
                            new End(
                                    survived,
                                    survived ? "" : instance.lastWords(),
                                    survived ? instance.heapBytes() : 0,
                                    bytesUnder(state)));
                    if (survived) {
                        instance.stop();
                    }
                    run.delete();
                    return result;
                }
            }
        }

        /** The next offset that a group reads; 0 if it has not committed any. */
        private static long committed(Admin admin, String group, TopicPartition partition) {
            try {
                OffsetAndMetadata offset = admin.listConsumerGroupOffsets(group)
                        .partitionsToOffsetAndMetadata()
                        .get()
                        .get(partition);
                return offset == null ? 0 : offset.offset();
            } catch (ExecutionException e) {
                throw LoadException.of("the progress of " + group + " cannot be asked for", e);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                throw new LoadException("interrupted while a backlog is read", e);
            }
        }

        private static long bytesUnder(Path directory) {
            if (!Files.exists(directory)) {
                return 0; // it ended before it wrote state
            }
            try (Stream<Path> files = Files.walk(directory)) {
                return files.filter(Files::isRegularFile)
                        .mapToLong(file -> file.toFile().length())
                        .sum();
            } catch (IOException e) {
                throw new LoadException("the state in " + directory + " cannot be measured: " + e.getMessage(), e);
            }
        }
    }

    /**
     * Measures the latency that the topology adds at half load: from the score of a batch's last rollout on the log until the
     * batch is visible to a read_committed consumer.
     *
     * <p>The record passes join and assembly, through {@code trajectories}, with a transaction each. The wait for the batch's
     * other rollouts does not count.
     *
     * <p>Half load is half of the highest sustained rate, found with load generator, broker and topology on one machine: a
     * topology that drains a backlog has the processors to itself. A rate is sustained if its load is done in time, from the
     * first intended publish until the last batch is visible. The search begins once the first rate is sustained, after the
     * code is compiled. The first third of the measurement is warm-up.
     */
    static final class AddedLatency {
        private static final long SEED = 11;
        private static final int NEWEST_VERSION = 8;
        private static final Duration LIMIT = Duration.ofMinutes(2);
        /** Input rate at which the search begins. */
        private static final double FIRST_BYTES_PER_SECOND = 8e6;

        private static final int WARM_UPS = 4;
        private static final int KNEE_POINTS = 6;
        /** Search loads last this share of the measurement. */
        private static final int SHORTER = 9;
        /** Long rollouts make smaller batches, so that there are enough for a percentile. */
        private static final int MOST_TOKENS_OF_A_BATCH = 1 << 20;

        private static final int LEAST_BATCHES = 20;

        private final Map<String, Object> client;
        private final TopologyConfig config;
        private final TopicsConfig topics;
        private final Path scratch;
        private final int seconds;
        private int runs;

        public AddedLatency(
                Map<String, Object> client, TopologyConfig config, TopicsConfig topics, Path scratch, int seconds) {
            this.client = client;
            this.config = config;
            this.topics = topics;
            this.scratch = scratch;
            this.seconds = seconds;
        }

        /**
         * Milliseconds unless stated otherwise.
         *
         * @param followed highest sustained rate, rollouts per second
         * @param limitMs three commit intervals
         */
        public record Result(
                int responseTokens,
                int batchSequences,
                double followed,
                @JsonUnwrapped Added added,
                double limitMs,
                double publishDelayP99) {}

        /**
         * Latency of batches.
         *
         * @param rolloutsPerSecond of the measurement, half of the sustained rate
         */
        public record Added(double rolloutsPerSecond, long batches, double p50, double p95, double p99, double max) {}

        private record Round(double achieved, Histogram added, double publishDelayP99) {}

        /** Finds the highest sustained rate, then measures at half of it. */
        public AddedLatency.Result measure(int responseTokens, int bytesPerRollout, Consumer<String> progress)
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
            return new AddedLatency.Result(
                    responseTokens,
                    batchSequences(responseTokens),
                    followed,
                    new Added(
                            followed / 2,
                            added.getTotalCount(),
                            added.getValueAtPercentile(50) / 1e6,
                            added.getValueAtPercentile(95) / 1e6,
                            added.getValueAtPercentile(99) / 1e6,
                            added.getMaxValue() / 1e6),
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
            TopologyConfig batched = config.with(new BatchConfig(
                    size, 0, config.batch().order(), config.batch().maxOutstanding(), false));
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

    /**
     * Measures the gap between batches while the only instance is replaced under steady load, JVM start included. The load begins
     * once the first instance runs. Afterwards every rollout must be in exactly one batch.
     */
    static final class Restart {
        private static final long SEED = 13;
        private static final int NEWEST_VERSION = 8;
        /** Most rollouts per second; less if half of the sustained rate is less. */
        static final double HIGHEST_RATE = 200;
        /** Least rate; a slower machine is too busy to measure. */
        private static final double LOWEST_RATE = 8;
        /** Of the default shape. */
        static final int RESPONSE_TOKENS = 512;

        private static final int HEAP_MEGABYTES = 512;
        private static final Duration LIMIT = Duration.ofMinutes(3);

        private final String bootstrapServers;
        private final TopicsConfig topics;
        private final Path scratch;
        private final int seconds;
        private final double rolloutsPerSecond;

        public Restart(
                String bootstrapServers, TopicsConfig topics, Path scratch, int seconds, double rolloutsPerSecond) {
            this.bootstrapServers = bootstrapServers;
            this.topics = topics;
            this.scratch = scratch;
            this.seconds = seconds;
            this.rolloutsPerSecond = rolloutsPerSecond;
        }

        public enum Way {
            /** Stops in order. */
            STOPPED,
            KILLED
        }

        /**
         * @param toMainSeconds from the first instance's end to the second's main
         * @param toRunningSeconds from main to assigned and restored partitions
         * @param repeated rollouts in several batches
         */
        public record Result(
                Way way,
                double gapSeconds,
                double toMainSeconds,
                double toRunningSeconds,
                long rollouts,
                long lost,
                long repeated) {
            public boolean isExact() {
                return lost == 0 && repeated == 0;
            }
        }

        /**
         * Where the load is over before the first instance, a new process, keeps up with it, it begins again at half the rate.
         *
         * @throws LoadException if it does not keep up with the lowest rate either
         */
        public Restart.Result measure(Way way) throws InterruptedException {
            for (double rate = rolloutsPerSecond; ; rate /= 2) {
                Optional<Restart.Result> measured = measure(way, rate);
                if (measured.isPresent()) {
                    return measured.get();
                }
                if (rate < LOWEST_RATE) {
                    throw new LoadException("the load of " + seconds + " s was over before the topology kept up with "
                            + Math.round(rate) + " rollouts/s, so no restart under load was seen; leave the machine to"
                            + " the measurement");
                }
            }
        }

        private Optional<Restart.Result> measure(Way way, double rate) throws InterruptedException {
            RolloutShape shape = RolloutShape.defaults();
            int group = shape.groupSize();
            long count = Math.round(rate * seconds) / group * group;
            String name = "restart-" + way.name().toLowerCase(java.util.Locale.ROOT) + "-" + Math.round(rate);
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
                        new LoadPlan(rate, Arrivals.EVEN, 1, Distribution.fixed(0), 0),
                        Schedule.of(Arrivals.EVEN, rate, count, SEED),
                        0,
                        () -> NEWEST_VERSION);
                InstanceProcess first = InstanceProcess.start(
                        bootstrapServers,
                        name,
                        scratch.resolve(name + "-1"),
                        "one",
                        HEAP_MEGABYTES,
                        new InstanceProcess.Settings(config, AlgorithmPlan.defaults(), topics));
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
                    first.awaitRunning();
                    load.start();
                    BoundedWait.await("a steady stream of batches", LIMIT, () -> {
                        watch.requireAllToCome();
                        load.requireHealthy();
                        return entries.get() > 0 && load.rolloutsOnLog() - entries.get() < 2 * rate;
                    });
                    if (load.isDone()) {
                        return Optional.empty(); // its topics go with the broker
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
                            new InstanceProcess.Settings(config, AlgorithmPlan.defaults(), topics));
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
                return Optional.of(new Restart.Result(
                        way,
                        longestGap.get() / 1e9,
                        toMain / 1e9,
                        toRunning / 1e9,
                        count,
                        count - seen.size(),
                        entries.get() - seen.size()));
            }
        }
    }

    public static final class TopologyReport {
        private static final List<Column<Throughput.Result>> COLUMNS = List.of(
                Column.text("case", r -> r.of().label()),
                Column.<Throughput.Result>text("copy", r -> r.copyMegabytes().range(0))
                        .in("MB/s"),
                Column.<Throughput.Result>text(
                                "topology", r -> r.rates().megabytes().range(0))
                        .in("MB/s"),
                Column.number("rollouts/s", 0, r -> r.rates().rollouts().median()),
                Column.number("M tokens/s", 2, r -> r.rates().tokens().median() / 1e6),
                Column.text("of the copy", r -> r.ratios().ratio().range(2)),
                Column.text(
                        "by processor time", r -> r.ratios().processorRatio().range(2)),
                Column.text("written per byte", r -> r.ratios().bytesWritten().range(2)));

        private TopologyReport() {}

        /** Ranges are median, minimum and maximum. */
        public static dev.millrace.report.Report of(TopologyBenchmark.Report of) {
            return dev.millrace.report.Report.of(
                            "The topology against a raw copy", Goal.verdict(of.origin(), of.goals()))
                    .madeBy(of.origin())
                    .with(Section.of("Throughput").with(Table.of("", COLUMNS, of.throughput())))
                    .with(Section.of("Goals").with(Goal.table(of.goals())));
        }
    }
}
