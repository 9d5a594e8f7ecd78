package dev.millrace.workloads.topology;

import com.fasterxml.jackson.annotation.JsonUnwrapped;
import dev.millrace.corrections.algorithm.Algorithm;
import dev.millrace.corrections.algorithm.NamedAlgorithms;
import dev.millrace.infra.broker.BrokerConfig;
import dev.millrace.infra.broker.BrokerProcess;
import dev.millrace.log.run.TopicsConfig;
import dev.millrace.replay.Alternative;
import dev.millrace.replay.AsRecorded;
import dev.millrace.replay.ReplayedStep;
import dev.millrace.replay.StepRange;
import dev.millrace.replay.TaskVerdict;
import dev.millrace.replay.WhatIf;
import dev.millrace.replay.archive.LiveRun;
import dev.millrace.replay.archive.RecordCursor;
import dev.millrace.report.Column;
import dev.millrace.report.ReportOrigin;
import dev.millrace.report.Sample;
import dev.millrace.report.Section;
import dev.millrace.report.Table;
import dev.millrace.topology.MillraceTopology;
import dev.millrace.topology.TopologyConfig;
import dev.millrace.workloads.AlgorithmPlan;
import dev.millrace.workloads.BoundedWait;
import dev.millrace.workloads.Goal;
import dev.millrace.workloads.TopicWatch;
import java.lang.management.ManagementFactory;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Consumer;
import java.util.function.ToDoubleFunction;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.utils.internals.AppInfoParser;

/**
 * Replay speed next to the live topology's: a backlog becomes batches, and is replayed as recorded, under the run's own
 * corrections, and under three. Reading the batches' trajectories alone bounds the replay of corrections.
 *
 * <p>One broker process, a run per repetition, one thread per processor. Rates are rollouts per second: of the
 * topology from its partitions to the last batch, of a replay including reading the log.
 */
public final class ReplayBenchmark {
    /** Required ratio of a replay of corrections. */
    private static final double LEAST_RATIO = 5;

    private static final List<String> OTHERS = List.of("decoupled_k3_rs_token_tis", "decoupled_geo_rs");
    private static final long SEED = 23;
    private static final int NEWEST_VERSION = 8;
    private static final int WARM_UPS = 3;
    private static final Duration LIMIT = Duration.ofMinutes(5);
    private static final AlgorithmPlan ALGORITHM = AlgorithmPlan.defaults();

    /** Of rollout and score with prompt and fields. */
    private static final int BYTES_PER_TOKEN = 17;

    private final Plan plan;
    private final Path scratch;
    private final Consumer<String> progress;
    private final TopologyConfig config;
    private final TopicsConfig topics = TopicsConfig.defaults();
    private final int threads = Runtime.getRuntime().availableProcessors();
    private int runs;

    public ReplayBenchmark(Plan plan, Path scratch, Consumer<String> progress) {
        TopologyConfig defaults = TopologyConfig.defaults();
        this.plan = plan;
        this.scratch = scratch;
        this.progress = progress;
        this.config = defaults.with(defaults.runtime().with(threads, "live"));
    }

    /**
     * @param megabytes of input of each run, approximately
     * @param repetitions after the warm-up
     */
    public record Plan(List<Integer> responseTokens, List<Integer> megabytes, int repetitions) {}

    public record Report(ReportOrigin origin, int threads, int partitions, List<Result> results, List<Goal> goals) {}

    /**
     * @param ratios replay over topology of the same repetition
     * @param heapMegabytes peak live heap of further replays
     */
    public record Result(
            int responseTokens, int rollouts, @JsonUnwrapped Rates rates, Ratios ratios, Sample heapMegabytes) {}

    /** Rollouts per second. */
    public record Rates(
            Sample topology, Sample reading, Sample asRecorded, Sample corrections, Sample threeCorrections) {}

    public record Ratios(Sample reading, Sample asRecorded, Sample corrections, Sample threeCorrections) {}

    private record Round(
            double topology,
            double reading,
            double asRecorded,
            double corrections,
            double threeCorrections,
            double heapMegabytes) {}

    public Report run(String command) throws InterruptedException {
        ReportOrigin origin = ReportOrigin.here(command, AppInfoParser.getVersion());
        List<Result> results = new ArrayList<>();
        try (BrokerProcess broker =
                BrokerProcess.start(scratch.resolve("broker"), BrokerConfig.defaults(), List.of("-Xmx1g"))) {
            Map<String, Object> client = Map.of("bootstrap.servers", broker.bootstrapServers());
            for (int tokens : plan.responseTokens()) {
                for (int megabytes : plan.megabytes()) {
                    results.add(measure(client, tokens, megabytes, results.isEmpty() ? WARM_UPS : 1));
                }
            }
        }
        return new Report(
                origin,
                threads,
                topics.partitions(),
                results,
                results.stream().map(ReplayBenchmark::goal).toList());
    }

    private Result measure(Map<String, Object> client, int tokens, int megabytes, int warmUps)
            throws InterruptedException {
        int batch = config.batch().sequences();
        int rollouts =
                (int) Math.max(1, Math.round(megabytes * 1e6 / ((double) tokens * BYTES_PER_TOKEN) / batch)) * batch;
        List<Round> rounds = new ArrayList<>();
        for (int r = -warmUps; r < plan.repetitions(); r++) {
            Round round = round(client, tokens, rollouts, r >= 0);
            progress.accept(String.format(
                    Locale.ROOT,
                    "%s%d tokens, %d rollouts: topology %.2f s, reading %.2f s, as recorded %.2f s,"
                            + " corrections %.2f s, three corrections %.2f s%s",
                    r < 0 ? "warming up: " : "",
                    tokens,
                    rollouts,
                    round.topology(),
                    round.reading(),
                    round.asRecorded(),
                    round.corrections(),
                    round.threeCorrections(),
                    r < 0 ? "" : String.format(Locale.ROOT, ", heap %.0f MB", round.heapMegabytes())));
            if (r >= 0) {
                rounds.add(round);
            }
        }
        return new Result(
                tokens,
                rollouts,
                new Rates(
                        sample(rounds, r -> rollouts / r.topology()),
                        sample(rounds, r -> rollouts / r.reading()),
                        sample(rounds, r -> rollouts / r.asRecorded()),
                        sample(rounds, r -> rollouts / r.corrections()),
                        sample(rounds, r -> rollouts / r.threeCorrections())),
                new Ratios(
                        sample(rounds, r -> r.topology() / r.reading()),
                        sample(rounds, r -> r.topology() / r.asRecorded()),
                        sample(rounds, r -> r.topology() / r.corrections()),
                        sample(rounds, r -> r.topology() / r.threeCorrections())),
                sample(rounds, Round::heapMegabytes));
    }

    private static Sample sample(List<Round> rounds, ToDoubleFunction<Round> of) {
        return Sample.of(rounds.stream().map(of::applyAsDouble).toList());
    }

    private static Goal goal(Result result) {
        double ratio = result.ratios().corrections().median();
        return new Goal(
                "replay of corrections against the topology, " + result.responseTokens() + " tokens, "
                        + result.rollouts() + " rollouts",
                String.format(Locale.ROOT, "%.1f", ratio),
                String.format(Locale.ROOT, "at least %.0f", LEAST_RATIO),
                ratio >= LEAST_RATIO);
    }

    /** @param withHeap also measures the live heap, which takes longer than the rest */
    private Round round(Map<String, Object> client, int tokens, int rollouts, boolean withHeap)
            throws InterruptedException {
        String name = "replay-" + runs++;
        try (SyntheticRun run = new SyntheticRun(
                client,
                name,
                topics,
                RolloutShape.defaults().withResponseTokens(tokens),
                SEED,
                config.runtime().compression())) {
            run.publishVersions(NEWEST_VERSION, System.currentTimeMillis() - 3_600_000);
            Backlog.publish(run, 0, rollouts, NEWEST_VERSION);
            double topology = topology(run, rollouts / config.batch().sequences(), scratch.resolve(name));
            double reading = reading(run, rollouts);
            double asRecorded = asRecorded(run);
            double corrections = whatIf(run, List.of(), rollouts);
            double three = whatIf(run, OTHERS, rollouts);
            double heap = withHeap ? heapMegabytes(run, rollouts) : Double.NaN;
            run.delete();
            return new Round(topology, reading, asRecorded, corrections, three, heap);
        }
    }

    /** Replays once more, untimed. */
    private double heapMegabytes(SyntheticRun run, int rollouts) throws InterruptedException {
        try (LiveHeap heap = new LiveHeap()) {
            asRecorded(run);
            whatIf(run, OTHERS, rollouts);
            return heap.mostBytes() / 1e6;
        }
    }

    private double topology(SyntheticRun run, int batches, Path state) throws InterruptedException {
        AtomicLong seen = new AtomicLong();
        try (TopicWatch watch = new TopicWatch(
                        run.connection(), run.connection().topics().batches(), batch -> seen.incrementAndGet());
                RunningTopology topology = new RunningTopology(config, ALGORITHM, run.connection(), state, 1)) {
            topology.awaitRunning();
            long began = System.nanoTime();
            BoundedWait.await("batch " + batches, LIMIT, () -> {
                watch.requireAllToCome();
                topology.requireRunning();
                return seen.get() >= batches;
            });
            return (System.nanoTime() - began) / 1e9;
        }
    }

    /** Fetches what a replay of corrections fetches most of, and looks at none of it. */
    private static double reading(SyntheticRun run, int rollouts) {
        long began = System.nanoTime();
        long read = 0;
        LiveRun recorded = new LiveRun(run.connection(), Optional.empty());
        for (TopicPartition partition : recorded.partitions(recorded.topics().trajectories())) {
            try (RecordCursor cursor = recorded.read(partition, 0)) {
                while (cursor.next().isPresent()) {
                    read++;
                }
            }
        }
        double seconds = (System.nanoTime() - began) / 1e9;
        if (read != rollouts) {
            throw new LoadException("there are " + read + " trajectories of " + rollouts + " rollouts");
        }
        return seconds;
    }

    private double asRecorded(SyntheticRun run) throws InterruptedException {
        int maxValueBytes = MillraceTopology.maxValueBytes(run.connection());
        long began = System.nanoTime();
        try (LiveRun recorded = new LiveRun(run.connection(), Optional.empty())) {
            List<TaskVerdict> verdicts =
                    new AsRecorded(recorded, config, ALGORITHM.algorithm(), maxValueBytes).replay(threads);
            if (!verdicts.stream().allMatch(TaskVerdict::isProved)) {
                throw new LoadException("the replay is not the run: " + verdicts);
            }
        }
        return (System.nanoTime() - began) / 1e9;
    }

    private double whatIf(SyntheticRun run, List<String> presets, int rollouts) throws InterruptedException {
        Algorithm own = ALGORITHM.algorithm();
        List<Alternative> alternatives = new ArrayList<>(List.of(new Alternative("recorded", own)));
        presets.forEach(preset -> alternatives.add(
                new Alternative(preset, NamedAlgorithms.withPreset(own, preset).orElseThrow())));
        List<ReplayedStep> steps = new ArrayList<>();
        long began = System.nanoTime();
        try (LiveRun recorded = new LiveRun(run.connection(), Optional.empty())) {
            new WhatIf(recorded, StepRange.ALL, alternatives).replay(threads, steps::add);
        }
        double seconds = (System.nanoTime() - began) / 1e9;
        if (steps.size() * config.batch().sequences() != rollouts
                || !steps.stream().allMatch(ReplayedStep::isAsRecorded)) {
            throw new LoadException("the replay of corrections is not the run: " + steps.size() + " steps");
        }
        return seconds;
    }

    /** Peak live heap while open, from a full collection every {@value #PAUSE_MS} ms; slows down everything else. */
    static final class LiveHeap implements AutoCloseable {
        private static final long PAUSE_MS = 50;

        private final AtomicLong most = new AtomicLong();
        private final Thread collector = new Thread(this::collect, "live heap");
        private volatile boolean closed;

        LiveHeap() {
            collector.start();
        }

        private void collect() {
            while (!closed) {
                System.gc();
                most.accumulateAndGet(
                        ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed(), Math::max);
                LockSupport.parkNanos(PAUSE_MS * 1_000_000);
            }
        }

        long mostBytes() {
            return most.get();
        }

        @Override
        public void close() {
            closed = true;
            LockSupport.unpark(collector);
            BoundedWait.join(collector);
        }
    }

    public static final class ReplayRateReport {
        private static final List<Column<Result>> COLUMNS = List.of(
                Column.count("tokens", Result::responseTokens),
                Column.count("rollouts", Result::rollouts),
                Column.<Result>number("topology", 0, r -> r.rates().topology().median())
                        .in("rollouts/s"),
                Column.<Result>number("reading", 0, r -> r.rates().reading().median())
                        .in("rollouts/s"),
                Column.<Result>number(
                                "as recorded", 0, r -> r.rates().asRecorded().median())
                        .in("rollouts/s"),
                Column.<Result>number(
                                "corrections", 0, r -> r.rates().corrections().median())
                        .in("rollouts/s"),
                Column.<Result>number(
                                "three corrections",
                                0,
                                r -> r.rates().threeCorrections().median())
                        .in("rollouts/s"),
                Column.text("reading : topology", r -> r.ratios().reading().range(2)),
                Column.text(
                        "as recorded : topology", r -> r.ratios().asRecorded().range(2)),
                Column.text(
                        "corrections : topology", r -> r.ratios().corrections().range(2)),
                Column.text(
                        "three : topology", r -> r.ratios().threeCorrections().range(2)),
                Column.<Result>number("heap", 0, r -> r.heapMegabytes().max()).in("MB"));

        private ReplayRateReport() {}

        /** Ranges are median, minimum and maximum. */
        public static dev.millrace.report.Report of(ReplayBenchmark.Report of) {
            return dev.millrace.report.Report.of(
                            "Replays against the live topology", Goal.verdict(of.origin(), of.goals()))
                    .madeBy(of.origin())
                    .with(Section.of("Rates")
                            .noting(List.of(of.threads() + " threads"))
                            .with(Table.of("", COLUMNS, of.results())))
                    .with(Section.of("Goals").with(Goal.table(of.goals())));
        }
    }
}
