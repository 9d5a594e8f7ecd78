package dev.millrace.workloads.closed;

import dev.millrace.infra.broker.BrokerConfig;
import dev.millrace.infra.broker.BrokerProcess;
import dev.millrace.log.LogConnection;
import dev.millrace.log.run.RunLog;
import dev.millrace.log.run.TopicsConfig;
import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.decoder.Precision;
import dev.millrace.policy.decoder.TensorSpec;
import dev.millrace.policy.session.Engine;
import dev.millrace.policy.weights.Bfloat16;
import dev.millrace.policy.weights.Dtype;
import dev.millrace.policy.weights.Weights;
import dev.millrace.report.Column;
import dev.millrace.report.ReportOrigin;
import dev.millrace.report.Sample;
import dev.millrace.report.Section;
import dev.millrace.report.Table;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.TensorEntry;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.schemas.run.RunTopics;
import dev.millrace.weights.PolicyFeed;
import dev.millrace.weights.VersionFacts;
import dev.millrace.weights.VersionWriter;
import dev.millrace.weights.WeightsConfig;
import dev.millrace.workloads.Goal;
import dev.millrace.workloads.closed.EngineRates.LogProbGap;
import java.io.IOException;
import java.nio.FloatBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Clock;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.Supplier;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.utils.internals.AppInfoParser;
import org.jspecify.annotations.Nullable;

/**
 * What the engine does on a device with models of several sizes: prompts, tokens, scores, gradients and updates in a second
 * without a log between them, versions in a second through a broker of its own, and how far its passes are apart.
 */
public final class EngineBenchmark {
    /** Most that decoding and scoring, or device and CPU, may be apart at one token, in nats. */
    private static final double MOST_GAP = 1e-3;

    /** The same where products round their factors to TF32. */
    private static final double MOST_TF32_GAP = 2e-2;

    /** The same where what is sampled from is rounded, and what is scored is not. */
    private static final double MOST_ROUNDED_GAP = 0.2;

    /** Most that a gradient on a device may be from the CPU's, relative to its norm. */
    private static final double MOST_GRADIENT_GAP = 1e-4;

    private static final double MOST_TF32_GRADIENT_GAP = 1e-2;

    private static final double LEARNING_RATE = 1e-5;

    private final Engine engine;
    private final EnginePlan plan;
    private final int versions;
    private final Path scratch;
    private final Consumer<String> progress;

    /**
     * @param versions to publish and load, through a broker; 0 for none
     * @param scratch for the broker's data; the caller removes it
     */
    public EngineBenchmark(Engine engine, EnginePlan plan, int versions, Path scratch, Consumer<String> progress) {
        this.versions = versions;
        this.engine = engine;
        this.plan = plan;
        this.scratch = scratch;
        this.progress = progress;
    }

    /**
     * A model to measure.
     *
     * @param weights drawn or loaded when it is its turn, twice; what it gives is written
     */
    public record Subject(String name, DecoderShape shape, Supplier<Weights> weights) {}

    /** What was measured. */
    public record Report(
            ReportOrigin origin,
            String device,
            int threads,
            EnginePlan plan,
            double learningRate,
            List<Result> results,
            List<Goal> goals) {}

    /**
     * One model.
     *
     * @param versions null where none were published
     * @param residentBytes largest resident size of this process so far; 0 where the system does not say
     */
    public record Result(
            String model,
            long parameters,
            EngineRates rates,
            @Nullable VersionRates versions,
            long residentBytes) {}

    /** Measures all, one after the other; from the smallest to the largest, and the resident size is each one's own. */
    public Report run(String command, int threads, List<Subject> subjects) {
        ReportOrigin origin = ReportOrigin.here(command, AppInfoParser.getVersion());
        List<Result> results = new ArrayList<>();
        if (versions == 0) {
            subjects.forEach(subject -> results.add(measure(Map.of(), results.size(), subject)));
        } else {
            try (BrokerProcess broker =
                    BrokerProcess.start(scratch.resolve("broker"), BrokerConfig.defaults(), List.of("-Xmx512m"))) {
                Map<String, Object> client = Map.of("bootstrap.servers", broker.bootstrapServers());
                subjects.forEach(subject -> results.add(measure(client, results.size(), subject)));
            }
        }
        return new Report(
                origin,
                engine.device().toString(),
                threads,
                plan,
                LEARNING_RATE,
                results,
                results.stream().flatMap(result -> goals(result).stream()).toList());
    }

    private Result measure(Map<String, Object> client, int ordinal, Subject subject) {
        EngineRates rates = rates(subject);
        VersionRates published = null;
        if (versions > 0) {
            progress.accept(subject.name() + ": versions");
            published = new VersionTrial(client, LEARNING_RATE)
                    .measure("bench-" + ordinal, subject.weights().get().as(Dtype.BF16), versions);
        }
        return new Result(
                subject.name(), subject.shape().parameterCount(), rates, published, ResidentMemory.mostBytes());
    }

    /** By itself: the weights are free again before versions are measured. */
    private EngineRates rates(Subject subject) {
        progress.accept(subject.name() + ": weights");
        Weights weights = subject.weights().get();
        try (EngineTrial trial = new EngineTrial(engine, weights, plan)) {
            progress.accept(String.format(
                    Locale.ROOT,
                    "%s: %.1f M parameters, %d rounds",
                    subject.name(),
                    subject.shape().parameterCount() / 1e6,
                    plan.rounds()));
            return trial.measure();
        }
    }

    private List<Goal> goals(Result result) {
        double most = engine.device().tf32() ? MOST_TF32_GAP : MOST_GAP;
        List<Goal> goals = new ArrayList<>();
        goals.add(goal(
                result.model() + ": decoding and scoring agree",
                result.rates().gaps().decodeAndScore(),
                plan.precision() == Precision.F32 ? most : MOST_ROUNDED_GAP));
        LogProbGap deviceAndCpu = result.rates().gaps().deviceAndCpu();
        if (deviceAndCpu != null) {
            goals.add(goal(result.model() + ": " + engine.device() + " and cpu agree", deviceAndCpu, most));
        }
        Double gradients = result.rates().gaps().gradientGap();
        if (gradients != null) {
            double bound = engine.device().tf32() ? MOST_TF32_GRADIENT_GAP : MOST_GRADIENT_GAP;
            goals.add(new Goal(
                    result.model() + ": gradients on " + engine.device() + " and on the cpu agree",
                    String.format(Locale.ROOT, "%.1e of the norm", gradients),
                    String.format(Locale.ROOT, "at most %.0e", bound),
                    gradients <= bound));
        }
        return goals;
    }

    private static Goal goal(String name, LogProbGap gap, double bound) {
        return new Goal(
                name,
                String.format(Locale.ROOT, "%.1e nats at most, %.1e in the mean", gap.most(), gap.mean()),
                String.format(Locale.ROOT, "at most %.0e", bound),
                gap.most() <= bound);
    }

    /** This process's largest resident size, as Linux says it. */
    static final class ResidentMemory {
        private static final Path STATUS = Path.of("/proc/self/status");
        private static final String MOST = "VmHWM:";

        private ResidentMemory() {}

        /** 0 where the system does not say. */
        static long mostBytes() {
            List<String> lines;
            try {
                lines = Files.readAllLines(STATUS);
            } catch (IOException e) {
                return 0;
            }
            return lines.stream()
                    .filter(line -> line.startsWith(MOST))
                    .mapToLong(line -> Long.parseLong(line.replaceAll("\\D", "")) << 10)
                    .findFirst()
                    .orElse(0);
        }
    }

    /**
     * Versions of a model in bfloat16 through a broker: the first whole, each later one as what changed, published and then loaded.
     *
     * <p>What changes is what an optimiser's step of a learning rate changes: it moves a master by the rate, and the weight, which
     * is the nearest bfloat16, by one place with the probability of the rate over the distance to the next bfloat16.
     */
    static final class VersionTrial {
        private static final Duration LIMIT = Duration.ofMinutes(10);

        private final Map<String, Object> client;
        private final double learningRate;
        private final SplittableRandom random = new SplittableRandom(11);

        /** @param client how the broker is reached */
        VersionTrial(Map<String, Object> client, double learningRate) {
            this.client = client;
            this.learningRate = learningRate;
        }

        /**
         * Publishes and loads.
         *
         * @param name of the run, and with a dot the prefix of its topics
         * @param weights of bfloat16; written
         * @param versions after the first
         */
        VersionRates measure(String name, Weights weights, int versions) {
            if (weights.dtype() != Dtype.BF16) {
                throw new IllegalArgumentException("versions are measured in bfloat16: " + weights.dtype());
            }
            // none of them an anchor but the first
            WeightsConfig config = anchoredOnce(WeightsConfig.defaults().with(Dtype.BF16), versions);
            RunTopics topics = new RunTopics(name + ".");
            RunIdentity run = new RunIdentity(name, 0, "policy");
            try (RunLog log = RunLog.open(client, topics, run, TopicsConfig.defaults(), "", Clock.systemUTC());
                    Producer<byte[], byte[]> producer = producer(log.connection(), name);
                    PolicyFeed feed = new PolicyFeed(log.connection(), config)) {
                VersionWriter writer = new VersionWriter(log.connection(), producer, config);
                long whole = 0;
                Weights taken = null;
                List<Double> bytes = new ArrayList<>();
                List<Double> publish = new ArrayList<>();
                List<Double> load = new ArrayList<>();
                for (int version = 0; version <= versions; version++) {
                    if (version > 0) {
                        step(weights);
                    }
                    long began = System.nanoTime();
                    producer.beginTransaction();
                    PolicyVersion manifest = writer.writeWithoutState(
                            new VersionFacts(version, version - 1, "bench", 0, 0, System.currentTimeMillis()),
                            weights,
                            version);
                    producer.commitTransaction();
                    double published = seconds(began);
                    writer.continueFrom(manifest, weights);
                    feed.awaitAtLeast(version, LIMIT);
                    Weights before = taken;
                    long parent = version - 1L;
                    began = System.nanoTime();
                    taken = feed.load(version, known -> known == parent ? before : null);
                    double loaded = seconds(began);
                    if (version == 0) {
                        whole = bytes(manifest);
                    } else {
                        bytes.add((double) bytes(manifest));
                        publish.add(published);
                        load.add(loaded);
                    }
                }
                return new VersionRates(whole, Sample.of(bytes), Sample.of(publish), Sample.of(load));
            }
        }

        private static Producer<byte[], byte[]> producer(LogConnection connection, String name) {
            Producer<byte[], byte[]> producer = new KafkaProducer<>(
                    connection.producer(Map.of(ProducerConfig.TRANSACTIONAL_ID_CONFIG, name + "-learner")),
                    new ByteArraySerializer(),
                    new ByteArraySerializer());
            producer.initTransactions();
            return producer;
        }

        private static WeightsConfig anchoredOnce(WeightsConfig config, int versions) {
            return new WeightsConfig(
                    config.store(),
                    config.optimizerStore(),
                    config.dtype(),
                    versions + 1,
                    config.checkpointEvery(),
                    config.keepVersions(),
                    config.unservedAlarmMs(),
                    config.onBrokenVersion(),
                    config.chunkBytes(),
                    config.keptManifests(),
                    config.readTimeoutMs(),
                    config.sendTimeoutMs());
        }

        private static double seconds(long began) {
            return (System.nanoTime() - began) / 1e9;
        }

        private static long bytes(PolicyVersion manifest) {
            long bytes = 0;
            for (TensorEntry tensor : manifest.getWeights().getTensors()) {
                Long encoded = tensor.getEncodedBytes();
                bytes += encoded == null ? tensor.getBytes() : encoded;
            }
            return bytes;
        }

        private void step(Weights weights) {
            for (TensorSpec spec : weights.tensors().specs()) {
                FloatBuffer values = weights.tensor(spec.name());
                for (int i = 0; i < values.limit(); i++) {
                    short bits = Bfloat16.of(values.get(i));
                    double place = Math.abs(Bfloat16.value((short) (bits + 1)) - (double) Bfloat16.value(bits));
                    if (random.nextDouble() * place < learningRate) {
                        // up or down by one in magnitude; zero has no smaller magnitude
                        boolean grows = (bits & 0x7fff) == 0 || random.nextBoolean();
                        values.put(i, Bfloat16.value((short) (grows ? bits + 1 : bits - 1)));
                    }
                }
            }
        }
    }

    /**
     * What versions of a model cost.
     *
     * @param deltaBytes of the versions after it
     * @param publishSeconds from weights at hand to a commit that is answered
     * @param loadSeconds from a manifest that is known to weights that are verified, made from those of the version before
     */
    public record VersionRates(long wholeBytes, Sample deltaBytes, Sample publishSeconds, Sample loadSeconds) {

        /** Versions in a second that are published and taken up, one after the other, at the medians. */
        public double rate() {
            return 1 / (publishSeconds.median() + loadSeconds.median());
        }
    }

    public static final class EngineReport {
        private static final List<Column<Result>> RATES = List.of(
                Column.text("model", Result::model),
                Column.<Result>number("parameters", 1, r -> r.parameters() / 1e6)
                        .in("M"),
                Column.<Result>number("prompts", 0, r -> r.rates().prefillRate())
                        .in("tokens/s"),
                Column.<Result>number("sampled", 0, r -> r.rates().decodeRate()).in("tokens/s"),
                Column.<Result>number("scored", 0, r -> r.rates().scoreRate()).in("tokens/s"),
                Column.<Result>number("differentiated", 0, r -> r.rates().gradientRate())
                        .in("tokens/s"),
                EngineReport.<Result>seconds("step", r -> r.rates().work().step()),
                EngineReport.<Result>seconds(
                        "of it update", r -> r.rates().work().update()),
                Column.<Result>text("packed", r -> packed(r.rates().pack())).in("s"),
                Column.<Result>text("waits for a version", r -> packed(r.rates().takeUp()))
                        .in("s"),
                Column.<Result>number("resident", 2, r -> r.residentBytes() / 1e9)
                        .in("GB"));

        private record Published(String model, VersionRates versions) {}

        private static final List<Column<Published>> VERSIONS = List.of(
                Column.text("model", Published::model),
                Column.<Published>number("whole", 1, r -> r.versions().wholeBytes() / 1e6)
                        .in("MB"),
                Column.<Published>number(
                                "delta", 1, r -> r.versions().deltaBytes().median() / 1e6)
                        .in("MB"),
                EngineReport.<Published>seconds("published", r -> r.versions().publishSeconds()),
                EngineReport.<Published>seconds("loaded", r -> r.versions().loadSeconds()),
                Column.<Published>number("versions", 2, r -> r.versions().rate())
                        .in("1/s"));

        private EngineReport() {}

        private static <T> Column<T> seconds(String name, Function<T, Sample> of) {
            return Column.<T>text(name, r -> of.apply(r).range(3)).in("s");
        }

        private static String packed(@Nullable Sample pack) {
            return pack == null ? "-" : pack.range(3);
        }

        /** Ranges are median, minimum and maximum. */
        public static dev.millrace.report.Report of(EngineBenchmark.Report of) {
            EnginePlan plan = of.plan();
            List<Published> published = new ArrayList<>();
            for (Result result : of.results()) {
                VersionRates versions = result.versions();
                if (versions != null) {
                    published.add(new Published(result.model(), versions));
                }
            }
            dev.millrace.report.Report report = dev.millrace.report.Report.of(
                            "The engine on " + of.device(), Goal.verdict(of.origin(), of.goals()))
                    .madeBy(of.origin())
                    .with(Section.of("Work")
                            .noting(List.of(String.format(
                                    Locale.ROOT,
                                    "%d sequences with prompts of %d random tokens and %d sampled ones, %d a call; micro-batches of %,d"
                                            + " padded tokens; %d threads inside an operator; weights %s; medians of %d rounds in which each comes once.",
                                    plan.sequences(),
                                    plan.promptTokens(),
                                    plan.sampledTokens(),
                                    plan.tokensPerCall(),
                                    plan.tokenBudget(),
                                    of.threads(),
                                    of.results().stream()
                                                    .anyMatch(r -> r.rates().pack() != null)
                                            ? "packed into the graphs that generate"
                                            : "fed with every call",
                                    plan.rounds())))
                            .with(Table.of("", RATES, of.results())));
            if (!published.isEmpty()) {
                report = report.with(Section.of("Versions")
                        .noting(List.of(String.format(
                                Locale.ROOT,
                                "bfloat16, through one broker on this machine; between versions what a step at a learning rate of"
                                        + " %.0e changes.",
                                of.learningRate())))
                        .with(Table.of("", VERSIONS, published)));
            }
            return report.with(Section.of("Agreement").with(Goal.table(of.goals())));
        }
    }
}
