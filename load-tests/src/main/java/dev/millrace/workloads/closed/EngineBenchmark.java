package dev.millrace.workloads.closed;

import dev.millrace.infra.broker.BrokerConfig;
import dev.millrace.infra.broker.BrokerProcess;
import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.session.Engine;
import dev.millrace.policy.weights.Dtype;
import dev.millrace.policy.weights.Weights;
import dev.millrace.report.ReportOrigin;
import dev.millrace.workloads.Goal;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.apache.kafka.common.utils.AppInfoParser;

/**
 * What the engine does on a device with models of several sizes: prompts, tokens, scores, gradients and updates in a second
 * without a log between them, versions in a second through a broker of its own, and how far its passes are apart.
 */
public final class EngineBenchmark {
    /** Most that decoding and scoring, or device and CPU, may be apart at one token, in nats. */
    private static final double MOST_GAP = 1e-3;

    private static final double LEARNING_RATE = 1e-5;
    private static final int VERSIONS = 4;

    private final Engine engine;
    private final EnginePlan plan;
    private final Path scratch;
    private final Consumer<String> progress;

    /** @param scratch for the broker's data; the caller removes it */
    public EngineBenchmark(Engine engine, EnginePlan plan, Path scratch, Consumer<String> progress) {
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
     * @param residentBytes largest resident size of this process so far; 0 where the system does not say
     */
    public record Result(String model, long parameters, EngineRates rates, VersionRates versions, long residentBytes) {}

    /**
     * Measures all, one after the other; from the smallest to the largest, and the resident size is each one's own.
     *
     * @param threads inside an operator of the engine, for the report
     */
    public Report run(String command, int threads, List<Subject> subjects) {
        ReportOrigin origin = ReportOrigin.here(command, AppInfoParser.getVersion());
        List<Result> results = new ArrayList<>();
        try (BrokerProcess broker =
                BrokerProcess.start(scratch.resolve("broker"), BrokerConfig.defaults(), List.of("-Xmx512m"))) {
            Map<String, Object> client = Map.of("bootstrap.servers", broker.bootstrapServers());
            for (Subject subject : subjects) {
                results.add(measure(client, results.size(), subject));
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
        progress.accept(subject.name() + ": versions");
        VersionRates versions = new VersionTrial(client, LEARNING_RATE)
                .measure("bench-" + ordinal, subject.weights().get().as(Dtype.BF16), VERSIONS);
        return new Result(
                subject.name(), subject.shape().parameterCount(), rates, versions, ResidentMemory.mostBytes());
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
        List<Goal> goals = new ArrayList<>();
        goals.add(goal(
                result.model() + ": decoding and scoring agree", result.rates().decodeAndScore()));
        LogProbGap deviceAndCpu = result.rates().deviceAndCpu();
        if (deviceAndCpu != null) {
            goals.add(goal(result.model() + ": " + engine.device() + " and cpu agree", deviceAndCpu));
        }
        return goals;
    }

    private static Goal goal(String name, LogProbGap gap) {
        return new Goal(
                name,
                String.format(Locale.ROOT, "%.1e nats at most, %.1e in the mean", gap.most(), gap.mean()),
                String.format(Locale.ROOT, "at most %.0e", MOST_GAP),
                gap.most() <= MOST_GAP);
    }
}
