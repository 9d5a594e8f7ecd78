package dev.millrace.workloads.topology;

import com.sun.management.OperatingSystemMXBean;
import dev.millrace.infra.broker.BrokerConfig;
import dev.millrace.infra.broker.BrokerProcess;
import dev.millrace.log.run.TopicsConfig;
import dev.millrace.report.Column;
import dev.millrace.report.ReportOrigin;
import dev.millrace.report.Sample;
import dev.millrace.report.Section;
import dev.millrace.report.Table;
import dev.millrace.schemas.run.RunTopics;
import dev.millrace.topology.TopologyConfig;
import dev.millrace.workloads.AlgorithmPlan;
import dev.millrace.workloads.BoundedWait;
import dev.millrace.workloads.Goal;
import dev.millrace.workloads.TopicWatch;
import java.lang.management.ManagementFactory;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.EnumMap;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;
import java.util.function.ToDoubleFunction;
import java.util.stream.Stream;
import org.apache.kafka.common.utils.internals.AppInfoParser;
import org.jspecify.annotations.Nullable;

/**
 * What a rollout costs the topology, over one dimension of the load at a time: processor time and bytes on the log.
 *
 * <p>Instances of one thread run in this process next to a broker process. A backlog lies in an open transaction until
 * all of them run; the cost counts from its commit to the last batch. A cost that grows over a dimension as
 * {@code value^exponent} is fitted by least squares of the logarithms and held to the dimension's bound.
 */
public final class GrowthBenchmark {
    static final String PROCESSOR_TIME = "processor time";

    private static final long SEED = 29;
    private static final int NEWEST_VERSION = 8;
    /** Of rollout and score with prompt and fields. */
    private static final int BYTES_PER_TOKEN = 17;
    /** Backlogs of longer responses than the base point's have fewer rollouts, down to this size. */
    private static final double MOST_BYTES = 256e6;

    private static final int MOST_WARM_UPS = 10;
    private static final int ROUNDS_WITHOUT_GAIN = 2;
    private static final double STEADY = 0.9;
    private static final Duration LIMIT = Duration.ofMinutes(3);
    private static final long LIMIT_MS_PER_ROLLOUT = 10;

    private final Plan plan;
    private final Path scratch;
    private final Consumer<String> progress;
    private final TopologyConfig config = TopologyConfig.defaults();
    private final TopicsConfig topics = TopicsConfig.defaults();
    private final OperatingSystemMXBean system = (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
    private int runs;

    public GrowthBenchmark(Plan plan, Path scratch, Consumer<String> progress) {
        this.plan = plan;
        this.scratch = scratch;
        this.progress = progress;
    }

    /** A property of the load. */
    public enum Dimension {
        ROLLOUTS("rollouts", 10_240, 1_000_000, 0.1),
        /** Each partition is a task with its own stores and its own part of every commit. */
        PARTITIONS("partitions", 4, 1000, 0.25),
        INSTANCES("instances", 1, 16, 0.25),
        /** A token costs the same at every length. */
        RESPONSE_TOKENS("response tokens", 512, 131_072, 1.1);

        private final String words;
        private final int base;
        private final int most;
        private final double bound;

        Dimension(String words, int base, int most, double bound) {
            this.words = words;
            this.base = base;
            this.most = most;
            this.bound = bound;
        }

        public String words() {
            return words;
        }

        int base() {
            return base;
        }

        /** Largest exponent of a rollout's cost. */
        public double bound() {
            return bound;
        }
    }

    /**
     * @param values of each dimension
     * @param repetitions of each point
     */
    public record Plan(Map<Dimension, List<Integer>> values, int repetitions) {
        public Plan {
            Map<Dimension, List<Integer>> complete = new EnumMap<>(Dimension.class);
            requireBetween("--repetitions", repetitions, 1, 100);
            for (Dimension of : Dimension.values()) {
                List<Integer> each = values.getOrDefault(of, List.of(of.base)).stream()
                        .sorted()
                        .distinct()
                        .toList();
                if (each.isEmpty()) {
                    throw new IllegalArgumentException("cannot measure growth: no " + of.words + " are given");
                }
                for (int value : each) {
                    requireBetween("--" + of.words.replace("response ", ""), value, 1, of.most);
                }
                if (each.size() == 2 && repetitions == 1) {
                    throw new IllegalArgumentException("cannot fit an exponent to two measurements over " + of.words
                            + "; give a third value or --repetitions 2");
                }
                complete.put(of, each);
            }
            values = complete;
        }

        private static void requireBetween(String option, int value, int least, int most) {
            if (value < least || value > most) {
                throw new IllegalArgumentException(
                        "cannot measure growth: " + option + " is " + value + ", expected " + least + " to " + most);
            }
        }

        List<Integer> over(Dimension dimension) {
            return values.getOrDefault(dimension, List.of(dimension.base));
        }

        /** The point that every dimension is varied from: its usual value, or else the first that is given. */
        Point base() {
            Point base = new Point(0, 0, 0, 0);
            for (Dimension of : Dimension.values()) {
                List<Integer> each = over(of);
                base = base.with(of, each.contains(of.base) ? of.base : each.get(0));
            }
            return base;
        }
    }

    public record Point(int rollouts, int partitions, int instances, int responseTokens) {
        public int of(Dimension dimension) {
            return switch (dimension) {
                case ROLLOUTS -> rollouts;
                case PARTITIONS -> partitions;
                case INSTANCES -> instances;
                case RESPONSE_TOKENS -> responseTokens;
            };
        }

        Point with(Dimension dimension, int value) {
            return switch (dimension) {
                case ROLLOUTS -> new Point(value, partitions, instances, responseTokens);
                case PARTITIONS -> new Point(rollouts, value, instances, responseTokens);
                case INSTANCES -> new Point(rollouts, partitions, value, responseTokens);
                case RESPONSE_TOKENS -> new Point(rollouts, partitions, instances, value);
            };
        }

        /** Whole batches of about this number of rollouts, fewer if responses are long. */
        Point wholeBatches(int batch, int baseTokens) {
            double fitting = responseTokens <= baseTokens
                    ? rollouts
                    : Math.min(rollouts, MOST_BYTES / ((double) responseTokens * BYTES_PER_TOKEN));
            return with(Dimension.ROLLOUTS, (int) Math.max(1, Math.round(fitting / batch)) * batch);
        }
    }

    /**
     * Of a rollout, from the commit of the backlog to its last batch.
     *
     * @param processorMicros of this process, which runs all instances and a reader of the batches
     */
    public record Cost(double processorMicros, double brokerMicros, double seconds, LogBytes log) {}

    /** Bytes of a rollout on the disk of one replica, compressed. {@code others} are mainly changelogs. */
    public record LogBytes(double rollouts, double scores, double trajectories, double batches, double others) {
        public double sum() {
            return rollouts + scores + trajectories + batches + others;
        }
    }

    /** @param varied null at the base point */
    public record Measured(@Nullable Dimension varied, Point at, List<Cost> costs) {
        public Sample sample(ToDoubleFunction<Cost> of) {
            return Sample.of(costs.stream().map(of::applyAsDouble).toList());
        }
    }

    /** @param cost what of a rollout grows over the dimension */
    public record Growth(Dimension dimension, String cost, int least, int most, PowerLaw fit) {
        boolean holds() {
            return fit.exponent() <= dimension.bound;
        }

        Goal goal() {
            return new Goal(
                    String.format(Locale.ROOT, "%s of a rollout over %s %d to %d", cost, dimension.words, least, most),
                    String.format(
                            Locale.ROOT,
                            "exponent %.3f, standard error %.3f%s",
                            fit.exponent(),
                            fit.standardError(),
                            holds() || fit.exponent() - 2 * fit.standardError() > dimension.bound
                                    ? ""
                                    : ", within two of the bound: measure with more --repetitions"),
                    String.format(Locale.ROOT, "at most %.2f", dimension.bound),
                    holds());
        }
    }

    /** {@code y ~ x^exponent}, by least squares of the logarithms. */
    public record PowerLaw(double exponent, double standardError) {
        /** @throws IllegalArgumentException for fewer than three points, or two values of {@code x} */
        public static PowerLaw fit(double[] x, double[] y) {
            int n = x.length;
            double[] u = Arrays.stream(x).map(Math::log).toArray();
            double[] v = Arrays.stream(y).map(Math::log).toArray();
            double meanU = Arrays.stream(u).average().orElseThrow();
            double meanV = Arrays.stream(v).average().orElseThrow();
            double uu = 0;
            double uv = 0;
            for (int i = 0; i < n; i++) {
                uu += (u[i] - meanU) * (u[i] - meanU);
                uv += (u[i] - meanU) * (v[i] - meanV);
            }
            if (n < 3 || !(uu > 0)) {
                throw new IllegalArgumentException(
                        "cannot fit an exponent: it needs three points at two values: " + Arrays.toString(x));
            }
            double exponent = uv / uu;
            double residuals = 0;
            for (int i = 0; i < n; i++) {
                double residual = v[i] - meanV - exponent * (u[i] - meanU);
                residuals += residual * residual;
            }
            return new PowerLaw(exponent, Math.sqrt(residuals / (n - 2) / uu));
        }
    }

    /** What of the configuration the figures depend on; each instance has one thread. */
    public record Config(int batchSequences, long commitIntervalMs, String compression, String stateStores) {}

    public record Report(
            ReportOrigin origin,
            Config config,
            Point base,
            List<Measured> measured,
            List<Growth> growth,
            List<Goal> goals) {

        public Report {
            if (origin == null || base == null || measured == null || measured.isEmpty() || growth == null) {
                throw new IllegalArgumentException("it lacks origin, base, measured or growth");
            }
        }

        /** The base point and those that vary in the dimension, ascending. */
        public List<Measured> over(Dimension dimension) {
            return measured.stream()
                    .filter(each -> each.varied() == null || each.varied() == dimension)
                    .sorted(Comparator.comparingInt(each -> each.at().of(dimension)))
                    .toList();
        }
    }

    public Report run(String command) throws InterruptedException {
        ReportOrigin origin = ReportOrigin.here(command, AppInfoParser.getVersion());
        int batch = config.batch().sequences();
        Point base = plan.base().wholeBatches(batch, plan.base().responseTokens());
        Map<Point, List<Cost>> costs = new LinkedHashMap<>();
        Map<Point, Dimension> varied = new HashMap<>();
        costs.put(base, new ArrayList<>());
        for (Dimension dimension : Dimension.values()) {
            for (int value : plan.over(dimension)) {
                Point at = base.with(dimension, value).wholeBatches(batch, base.responseTokens());
                if (costs.putIfAbsent(at, new ArrayList<>()) == null) {
                    varied.put(at, dimension);
                }
            }
        }
        try (BrokerProcess broker =
                BrokerProcess.start(scratch.resolve("broker"), BrokerConfig.defaults(), List.of("-Xmx1g"))) {
            Map<String, Object> client = Map.of("bootstrap.servers", broker.bootstrapServers());
            ProcessHandle process = ProcessHandle.of(broker.pid()).orElseThrow();
            warmUp(client, process, base);
            for (int r = 0; r < plan.repetitions(); r++) { // in turns, so that no point has the warmest JVM
                for (Map.Entry<Point, List<Cost>> each : costs.entrySet()) {
                    each.getValue().add(cost("", client, process, each.getKey()));
                }
            }
        }
        List<Measured> measured = costs.entrySet().stream()
                .map(each -> new Measured(varied.get(each.getKey()), each.getKey(), each.getValue()))
                .toList();
        return report(
                origin,
                new Config(
                        batch,
                        config.runtime().commitIntervalMs(),
                        config.runtime().compression(),
                        config.runtime().stateStores().name()),
                base,
                measured);
    }

    static Report report(ReportOrigin origin, Config config, Point base, List<Measured> measured) {
        Report unfitted = new Report(origin, config, base, measured, List.of(), List.of());
        List<Growth> growth = new ArrayList<>();
        for (Dimension dimension : Dimension.values()) {
            List<Measured> over = unfitted.over(dimension);
            if (over.size() > 1) {
                growth.add(growth(dimension, PROCESSOR_TIME, over, Cost::processorMicros));
                growth.add(growth(
                        dimension, "bytes on the log", over, cost -> cost.log().sum()));
            }
        }
        return new Report(
                origin,
                config,
                base,
                measured,
                growth,
                growth.stream().map(Growth::goal).toList());
    }

    private static Growth growth(Dimension dimension, String name, List<Measured> over, ToDoubleFunction<Cost> cost) {
        return new Growth(
                dimension,
                name,
                over.get(0).at().of(dimension),
                over.get(over.size() - 1).at().of(dimension),
                PowerLaw.fit(
                        over.stream()
                                .flatMap(each ->
                                        each.costs().stream().map(c -> each.at().of(dimension)))
                                .mapToDouble(Integer::doubleValue)
                                .toArray(),
                        over.stream()
                                .flatMap(each -> each.costs().stream())
                                .mapToDouble(cost)
                                .toArray()));
    }

    /** Repeats the base point until two rounds in a row gain less than a tenth, when the JIT is done. */
    private void warmUp(Map<String, Object> client, ProcessHandle broker, Point base) throws InterruptedException {
        double best = Double.POSITIVE_INFINITY;
        int withoutGain = 0;
        for (int r = 0; r < MOST_WARM_UPS && withoutGain < ROUNDS_WITHOUT_GAIN; r++) {
            double micros = cost("warming up: ", client, broker, base).processorMicros();
            withoutGain = micros > STEADY * best ? withoutGain + 1 : 0;
            best = Math.min(best, micros);
        }
    }

    private Cost cost(String why, Map<String, Object> client, ProcessHandle broker, Point at)
            throws InterruptedException {
        String name = "growth-" + runs++;
        int batches = at.rollouts() / config.batch().sequences();
        AtomicLong seen = new AtomicLong();
        try (SyntheticRun run = new SyntheticRun(
                client,
                name,
                topics.withPartitions(at.partitions()),
                RolloutShape.defaults().withResponseTokens(at.responseTokens()),
                SEED,
                config.runtime().compression())) {
            run.publishVersions(NEWEST_VERSION, System.currentTimeMillis() - 3_600_000);
            RunTopics names = run.connection().topics();
            Cost cost;
            try (TopicWatch watch = new TopicWatch(run.connection(), names.batches(), batch -> seen.incrementAndGet());
                    RunningTopology topology = new RunningTopology(
                            config.with(config.runtime().with(1, "")),
                            AlgorithmPlan.defaults(),
                            run.connection(),
                            scratch.resolve(name),
                            at.instances())) {
                topology.awaitAllRunning();
                try (Backlog.Hidden backlog = Backlog.hidden(run, at.rollouts(), NEWEST_VERSION)) {
                    long process = system.getProcessCpuTime();
                    long brokers = processorNanos(broker);
                    long began = System.nanoTime();
                    backlog.reveal();
                    BoundedWait.await(
                            "batch " + batches + " of " + at,
                            LIMIT.plusMillis(LIMIT_MS_PER_ROLLOUT * at.rollouts()),
                            () -> {
                                watch.requireAllToCome();
                                topology.requireRunning();
                                return seen.get() >= batches;
                            });
                    cost = new Cost(
                            (system.getProcessCpuTime() - process) / 1e3 / at.rollouts(),
                            (processorNanos(broker) - brokers) / 1e3 / at.rollouts(),
                            (System.nanoTime() - began) / 1e9,
                            logBytes(client, names, at.rollouts()));
                }
            }
            run.delete();
            progress.accept(String.format(
                    Locale.ROOT,
                    "%s%d rollouts, %d partitions, %d instances, %d tokens in %.1f s: %.0f us of processors, "
                            + "%.0f us of the broker's, %.1f kB on the log a rollout",
                    why,
                    at.rollouts(),
                    at.partitions(),
                    at.instances(),
                    at.responseTokens(),
                    cost.seconds(),
                    cost.processorMicros(),
                    cost.brokerMicros(),
                    cost.log().sum() / 1e3));
            return cost;
        }
    }

    private static long processorNanos(ProcessHandle process) {
        return process.info().totalCpuDuration().orElse(Duration.ZERO).toNanos();
    }

    private static LogBytes logBytes(Map<String, Object> client, RunTopics names, int rollouts)
            throws InterruptedException {
        Map<String, Long> bytes = Throughput.LogBytes.byTopic(client);
        bytes.keySet().removeIf(topic -> !topic.startsWith(names.prefix()));
        double[] of = Stream.of(names.rollouts(), names.scores(), names.trajectories(), names.batches())
                .mapToDouble(topic -> bytes.getOrDefault(topic, 0L) / (double) rollouts)
                .toArray();
        double all = bytes.values().stream()
                .mapToDouble(size -> size / (double) rollouts)
                .sum();
        return new LogBytes(of[0], of[1], of[2], of[3], all - of[0] - of[1] - of[2] - of[3]);
    }

    /** Text of a report; ranges are median, minimum and maximum. */
    public static dev.millrace.report.Report page(Report of) {
        List<Column<Measured>> columns = List.of(
                Column.count("rollouts", each -> each.at().rollouts()),
                Column.count("partitions", each -> each.at().partitions()),
                Column.count("instances", each -> each.at().instances()),
                Column.count("tokens", each -> each.at().responseTokens()),
                Column.<Measured>text(
                                "topology",
                                each -> each.sample(Cost::processorMicros).range(0))
                        .in("us"),
                Column.<Measured>text(
                                "broker",
                                each -> each.sample(Cost::brokerMicros).range(0))
                        .in("us"),
                Column.<Measured>number(
                                "on the log",
                                1,
                                each -> each.sample(cost -> cost.log().sum()).median() / 1e3)
                        .in("kB"));
        return dev.millrace.report.Report.of("The cost of a rollout", Goal.verdict(of.origin(), of.goals()))
                .madeBy(of.origin())
                .with(Section.of("Cost per rollout").with(Table.of("", columns, of.measured())))
                .with(Section.of("Growth").with(Goal.table(of.goals())));
    }
}
