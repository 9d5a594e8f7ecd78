package dev.millrace.workloads.topology;

import com.fasterxml.jackson.annotation.JsonUnwrapped;
import dev.millrace.log.run.TopicsConfig;
import dev.millrace.report.Sample;
import dev.millrace.topology.TopologyConfig;
import dev.millrace.workloads.AlgorithmPlan;
import dev.millrace.workloads.BoundedWait;
import dev.millrace.workloads.TopicWatch;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.LogDirDescription;

/**
 * Measures how fast a backlog becomes batches, next to a raw copy of the same records. Both run from assigned
 * partitions to the last commit, alternately, each on its own backlog. Rates are uncompressed input.
 */
public final class Throughput {
    private static final long SEED = 7;
    private static final int NEWEST_VERSION = 8;
    private static final Duration LIMIT = Duration.ofMinutes(5);
    private static final int MOST_WARM_UPS = 10;
    private static final int ROUNDS_WITHOUT_GAIN = 2;
    private static final double STEADY = 0.9;
    private static final String COPY = "-copy";

    private final Map<String, Object> client;
    private final ProcessHandle broker;
    private final TopologyConfig config;
    private final TopicsConfig topics;
    private final Path scratch;
    private int runs;

    /** @param broker process behind {@code client} */
    public Throughput(
            Map<String, Object> client,
            ProcessHandle broker,
            TopologyConfig config,
            TopicsConfig topics,
            Path scratch) {
        this.client = client;
        this.broker = broker;
        this.config = config;
        this.topics = topics;
        this.scratch = scratch;
    }

    record Round(Backlog backlog, Cost copy, Cost topology, long inputLogBytes, long allLogBytes) {
        double ratio() {
            return copy.seconds() / topology.seconds();
        }

        double processorRatio() {
            return copy.processorSeconds() / topology.processorSeconds();
        }

        double written() {
            return (double) allLogBytes / inputLogBytes;
        }
    }

    /**
     * @param seconds from the first read to the last commit
     * @param processorSeconds of this process and the broker's, start-up included
     */
    record Cost(double seconds, double processorSeconds) {}

    public record Result(
            ThroughputCase of,
            Backlog backlog,
            Sample copyMegabytes,
            @JsonUnwrapped Rates rates,
            @JsonUnwrapped Ratios ratios) {}

    /** Per second. */
    public record Rates(Sample megabytes, Sample rollouts, Sample tokens) {}

    /**
     * Of a repetition.
     *
     * @param ratio topology over copy
     * @param processorRatio copy over topology in processor time: the ratio if both waited for processors only
     * @param bytesWritten per byte of input on disk, input included, copies not counted
     */
    public record Ratios(Sample ratio, Sample processorRatio, Sample bytesWritten) {}

    public Result measure(ThroughputCase what, int repetitions, Consumer<String> progress) throws InterruptedException {
        List<Round> rounds = new ArrayList<>();
        for (int r = 0; r < repetitions; r++) {
            Round round = round(what, r % 2 == 0);
            rounds.add(round);
            progress.accept(line(what, round));
        }
        Backlog backlog = rounds.get(0).backlog();
        return new Result(
                what,
                backlog,
                sample(rounds, round -> backlog.bytes() / 1e6 / round.copy().seconds()),
                new Rates(
                        sample(
                                rounds,
                                round ->
                                        backlog.bytes() / 1e6 / round.topology().seconds()),
                        sample(
                                rounds,
                                round -> backlog.rollouts() / round.topology().seconds()),
                        sample(
                                rounds,
                                round -> backlog.responseTokens()
                                        / round.topology().seconds())),
                new Ratios(
                        sample(rounds, Round::ratio),
                        sample(rounds, Round::processorRatio),
                        sample(rounds, Round::written)));
    }

    /** Repeats until two rounds in a row gain less than a tenth, when the JIT is done. */
    public void warmUp(ThroughputCase what, Consumer<String> progress) throws InterruptedException {
        double best = Double.POSITIVE_INFINITY;
        int withoutGain = 0;
        for (int r = 0; r < MOST_WARM_UPS && withoutGain < ROUNDS_WITHOUT_GAIN; r++) {
            Round round = round(what, r % 2 == 0);
            progress.accept(line(what, round));
            withoutGain = round.topology().processorSeconds() > STEADY * best ? withoutGain + 1 : 0;
            best = Math.min(best, round.topology().processorSeconds());
        }
    }

    private static String line(ThroughputCase what, Round round) {
        return String.format(
                Locale.ROOT,
                "%s: copy %.2f s (%.2f s of processors), topology %.2f s (%.2f s), ratio %.2f (%.2f)",
                what.label(),
                round.copy().seconds(),
                round.copy().processorSeconds(),
                round.topology().seconds(),
                round.topology().processorSeconds(),
                round.ratio(),
                round.processorRatio());
    }

    private static Sample sample(List<Round> rounds, java.util.function.ToDoubleFunction<Round> of) {
        return Sample.of(rounds.stream().map(of::applyAsDouble).toList());
    }

    private Round round(ThroughputCase what, boolean copyFirst) throws InterruptedException {
        String name = "throughput-" + runs++;
        try (SyntheticRun run = new SyntheticRun(
                client,
                name,
                topics,
                RolloutShape.defaults().withResponseTokens(what.responseTokens()),
                SEED,
                config.runtime().compression())) {
            run.publishVersions(NEWEST_VERSION, System.currentTimeMillis() - 3_600_000);
            Backlog backlog = Backlog.publish(run, 0, what.rollouts(), NEWEST_VERSION);
            Optional<Cost> before = copyFirst ? Optional.of(copy(run, what)) : Optional.empty();
            Cost topology = topology(run, what, scratch.resolve(name));
            Map<String, Long> bytes = LogBytes.byTopic(client);
            Cost copy = before.isPresent() ? before.get() : copy(run, what);
            String prefix = run.connection().topics().prefix();
            long input = bytes.getOrDefault(run.connection().topics().rollouts(), 0L)
                    + bytes.getOrDefault(run.connection().topics().scores(), 0L);
            long all = bytes.entrySet().stream()
                    .filter(topic ->
                            topic.getKey().startsWith(prefix) && !topic.getKey().endsWith(COPY))
                    .mapToLong(Map.Entry::getValue)
                    .sum();
            run.delete();
            return new Round(backlog, copy, topology, input, all);
        }
    }

    /** Of this process and the broker's. */
    private double processorSeconds() {
        return Stream.of(ProcessHandle.current(), broker)
                .map(process -> process.info().totalCpuDuration().orElse(Duration.ZERO))
                .mapToDouble(spent -> spent.toNanos() / 1e9)
                .sum();
    }

    private Cost copy(SyntheticRun run, ThroughputCase what) throws InterruptedException {
        double before = processorSeconds();
        double seconds = new RawCopy(
                                run.connection(),
                                List.of(
                                        run.connection().topics().rollouts(),
                                        run.connection().topics().scores()),
                                topics.partitions(),
                                config.runtime().commitIntervalMs(),
                                config.runtime().compression())
                        .run(COPY, what.allThreads())
                / 1e9;
        return new Cost(seconds, processorSeconds() - before);
    }

    private Cost topology(SyntheticRun run, ThroughputCase what, Path state) throws InterruptedException {
        int batches = what.rollouts() / config.batch().sequences();
        if (batches * config.batch().sequences() != what.rollouts()) {
            throw new LoadException(
                    "a backlog must be whole batches of " + config.batch().sequences() + ": " + what.rollouts());
        }
        AtomicLong seen = new AtomicLong();
        try (TopicWatch watch = new TopicWatch(
                        run.connection(), run.connection().topics().batches(), batch -> seen.incrementAndGet());
                RunningTopology topology = new RunningTopology(
                        config.with(config.runtime().with(what.threads(), "")),
                        AlgorithmPlan.defaults(),
                        run.connection(),
                        state,
                        what.instances())) {
            topology.awaitRunning();
            double before = processorSeconds();
            long began = System.nanoTime();
            BoundedWait.await("batch " + batches + " of " + what.label(), LIMIT, () -> {
                watch.requireAllToCome();
                topology.requireRunning();
                return seen.get() >= batches;
            });
            return new Cost((System.nanoTime() - began) / 1e9, processorSeconds() - before);
        }
    }

    /** Bytes per topic on the brokers' disks, compressed, every replica counted. */
    static final class LogBytes {
        private LogBytes() {}

        static Map<String, Long> byTopic(Map<String, Object> client) throws InterruptedException {
            try (Admin admin = Admin.create(client)) {
                var brokers = admin.describeCluster().nodes().get().stream()
                        .map(node -> node.id())
                        .toList();
                Map<String, Long> bytes = new TreeMap<>();
                for (Map<String, LogDirDescription> directories :
                        admin.describeLogDirs(brokers).allDescriptions().get().values()) {
                    for (LogDirDescription directory : directories.values()) {
                        directory
                                .replicaInfos()
                                .forEach((partition, replica) ->
                                        bytes.merge(partition.topic(), replica.size(), Long::sum));
                    }
                }
                return bytes;
            } catch (ExecutionException e) {
                throw LoadException.of("the brokers do not say what is on their disks", e);
            }
        }
    }

    /**
     * @param rollouts a multiple of the batch size
     * @param threads per instance; the copy uses as many as all instances together
     */
    public record ThroughputCase(int responseTokens, int rollouts, int instances, int threads) {

        public int allThreads() {
            return instances * threads;
        }

        public String label() {
            return responseTokens + " tokens, "
                    + (instances > 1 ? instances + " instances" : threads + (threads == 1 ? " thread" : " threads"));
        }
    }
}
