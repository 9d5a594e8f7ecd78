package dev.millrace.workloads.topology;

import dev.millrace.infra.broker.BrokerConfig;
import dev.millrace.infra.broker.BrokerProcess;
import dev.millrace.log.run.TopicsConfig;
import dev.millrace.report.ReportOrigin;
import dev.millrace.topology.TopologyConfig;
import dev.millrace.topology.batch.BatchConfig;
import dev.millrace.workloads.AlgorithmPlan;
import dev.millrace.workloads.BoundedWait;
import dev.millrace.workloads.Goal;
import dev.millrace.workloads.TopicWatch;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.utils.internals.AppInfoParser;

/**
 * The topology with its full join, default corrections and a staleness limit that never binds, exactly once, against its goals on a broker in a process of its
 * own: beside a raw transactional copy of the same bytes, over response lengths, threads and instances; bytes written;
 * latency added at half load; restarts; memory.
 */
public final class TopologyBenchmark {
    /** The least that is asked of the throughput. */
    private static final double LEAST_RATIO = 0.5;

    private static final double MOST_WRITTEN = 2.2;
    private static final double MOST_GAP_SECONDS = 5;
    private static final int MEMORY_TOKENS = 512;
    /** So that state that grows with the payloads of a backlog does not fit. */
    private static final int MEMORY_HEAP_MEGABYTES = 384;

    private static final int LEARNER_STOPPED_AT = 4;
    /** Beside its response a rollout and its score have a prompt and their fields. */
    private static final int BYTES_PER_TOKEN = 17;

    private final Plan plan;
    private final Path scratch;
    private final Consumer<String> progress;

    /** @param scratch for the broker's data and state; the caller removes it */
    public TopologyBenchmark(Plan plan, Path scratch, Consumer<String> progress) {
        this.plan = plan;
        this.scratch = scratch;
        this.progress = progress;
    }

    /** What can be measured by itself. */
    public enum Part {
        THROUGHPUT,
        LATENCY,
        RESTARTS,
        MEMORY
    }

    /**
     * How much is measured.
     *
     * @param parts which of it
     * @param responseTokens lengths of responses
     * @param threads of one instance
     * @param instances of one thread each, more than one
     * @param backlogMegabytes of input that each repetition works off, nearly
     * @param repetitions of each case, beside the warm-up
     * @param memoryRollouts rollouts of the backlog under which memory is measured
     * @param latencySeconds of the load at which added latency is measured
     * @param restartSeconds of the load under which an instance goes and comes
     */
    public record Plan(
            Set<Part> parts,
            List<Integer> responseTokens,
            List<Integer> threads,
            List<Integer> instances,
            int backlogMegabytes,
            int repetitions,
            int memoryRollouts,
            int latencySeconds,
            int restartSeconds) {

        /** Everything. */
        public static Plan whole() {
            return new Plan(
                    EnumSet.allOf(Part.class),
                    List.of(512, 4096, 32_768),
                    List.of(1, 2, 4),
                    List.of(2),
                    128,
                    5,
                    100_000,
                    90,
                    45);
        }

        /** One length, one thread, small backlogs, short loads: a few minutes. */
        public static Plan quick() {
            return new Plan(EnumSet.allOf(Part.class), List.of(512), List.of(1), List.of(), 24, 3, 4096, 18, 20);
        }

        /** The same with other repetitions, at least 1. */
        public Plan withRepetitions(int count) {
            return new Plan(
                    parts,
                    responseTokens,
                    threads,
                    instances,
                    backlogMegabytes,
                    count,
                    memoryRollouts,
                    latencySeconds,
                    restartSeconds);
        }

        /** Of the same only these parts, at least one. */
        public Plan only(Set<Part> some) {
            return new Plan(
                    some,
                    responseTokens,
                    threads,
                    instances,
                    backlogMegabytes,
                    repetitions,
                    memoryRollouts,
                    latencySeconds,
                    restartSeconds);
        }
    }

    /** What was measured, and what it means. */
    public record Report(
            ReportOrigin origin,
            TopologyConfigFacts config,
            List<Throughput.Result> throughput,
            List<AddedLatency.Result> latency,
            List<Restart.Result> restarts,
            List<BacklogMemory.Result> memory,
            List<Goal> goals) {

        /** Whether every goal was reached. */
        public boolean allHold() {
            return goals.stream().allMatch(Goal::holds);
        }
    }

    /** What of the configuration the numbers depend on. */
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
                        throughput.add(meter.measure(what, plan.repetitions(), progress));
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
                for (Restart.Way way : Restart.Way.values()) {
                    restarts.add(new Restart(broker.bootstrapServers(), topics, scratch, plan.restartSeconds())
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
        long rollouts = Math.round(plan.backlogMegabytes() * 1e6 / ((double) tokens * BYTES_PER_TOKEN));
        int whole = (int) Math.max(1, Math.round((double) rollouts / batch)) * batch;
        List<ThroughputCase> cases = new ArrayList<>();
        plan.threads().forEach(threads -> cases.add(new ThroughputCase(tokens, whole, 1, threads)));
        plan.instances().forEach(instances -> cases.add(new ThroughputCase(tokens, whole, instances, 1)));
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
                    format("%.2f", result.ratio().median()),
                    format("at least %.1f (goal 0.8)", LEAST_RATIO),
                    result.ratio().median() >= LEAST_RATIO));
        }
        for (Throughput.Result result : throughput) {
            if (result.of().allThreads() == 1) {
                goals.add(new Goal(
                        "bytes written per byte of input, " + result.of().responseTokens() + " tokens",
                        format("%.2f", result.bytesWritten().median()),
                        format("at most %.1f", MOST_WRITTEN),
                        result.bytesWritten().median() <= MOST_WRITTEN));
            }
        }
        for (AddedLatency.Result result : latency) {
            goals.add(new Goal(
                    "latency added at half load, " + result.responseTokens() + " tokens",
                    format(
                            "p50 %.0f ms, p95 %.0f ms, p99 %.0f ms of %d batches at %.0f of %.0f rollouts/s",
                            result.p50(),
                            result.p95(),
                            result.p99(),
                            result.batches(),
                            result.rolloutsPerSecond(),
                            result.followed()),
                    format("p99 below %.0f ms", result.limitMs()),
                    result.p99() < result.limitMs()));
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
                    result.survived()
                            ? format(
                                    "live heap %.0f MiB, state %.1f MiB",
                                    result.liveHeapBytes() / 1048576.0, result.stateBytes() / 1048576.0)
                            : "ended: " + result.lastWords(),
                    format("within %d MiB of heap", result.heapLimitMegabytes()),
                    result.survived()));
        }
        return goals;
    }

    private static String format(String pattern, Object... values) {
        return String.format(Locale.ROOT, pattern, values);
    }

    /**
     * Measures what an instance holds when rollouts come and the learner takes none of them: live heap and state on disk.
     *
     * <p>An instance in a process with a bounded heap reads a backlog while no version is ever published after the first
     * batches. With {@code max_outstanding = 0} batches are cut all the same and wait on the log; with a limit, groups wait in
     * the assembly.
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
         * What was seen.
         *
         * @param maxOutstanding batches that the topology may be ahead of the learner; 0 for no limit
         * @param survived whether the instance was still running when all was read
         * @param lastWords what it said last if it did not
         * @param liveHeapBytes after a full collection; 0 if it did not survive
         */
        public record Result(
                long rollouts,
                int responseTokens,
                int maxOutstanding,
                int heapLimitMegabytes,
                boolean survived,
                String lastWords,
                long liveHeapBytes,
                long stateBytes) {}

        /** Has an instance read a backlog of whole groups. */
        public Result measure(int rollouts, int responseTokens, int maxOutstanding, int heapMegabytes)
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
                                TopologyConfig.defaults()
                                        .with(new BatchConfig(
                                                256, 0, BatchConfig.Order.COMPLETION, maxOutstanding, false)),
                                AlgorithmPlan.defaults(),
                                topics);
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
                    Result result = new Result(
                            backlog.rollouts(),
                            responseTokens,
                            maxOutstanding,
                            heapMegabytes,
                            survived,
                            survived ? "" : instance.lastWords(),
                            survived ? instance.heapBytes() : 0,
                            bytesUnder(state));
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
                throw new LoadException(
                        "the progress of " + group + " cannot be asked for: "
                                + Objects.requireNonNullElse(e.getCause(), e).getMessage(),
                        Objects.requireNonNullElse(e.getCause(), e));
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                throw new LoadException("interrupted while a backlog is read", e);
            }
        }

        private static long bytesUnder(Path directory) {
            if (!Files.exists(directory)) {
                return 0; // it ended before it kept anything
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
}
