package dev.millrace.workloads.closed;

import dev.millrace.policy.session.Device;
import dev.millrace.policy.session.Engine;
import dev.millrace.policy.session.ScoringSession;
import dev.millrace.policy.weights.Weights;
import dev.millrace.workloads.Sample;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * {@link EngineWork} in rounds, in each of which every piece comes once: what else runs on the machine meets all of them alike.
 * Not thread-safe.
 */
public final class EngineTrial implements AutoCloseable {
    /** Sequences that are also scored on the CPU, which is slow. */
    private static final int ON_CPU = 4;

    private final EnginePlan plan;
    private final Weights weights;
    private final Device device;
    private final EngineWork work;

    /** Seconds of one round. */
    private record Round(
            double prefill, double decode, double score, double gradient, double update, double pack, double takeUp) {}

    /**
     * @param weights written by every round's step
     * @throws IllegalArgumentException if a sequence is longer than the model's positions
     */
    public EngineTrial(Engine engine, Weights weights, EnginePlan plan) {
        this.plan = plan;
        this.weights = weights;
        this.device = engine.device();
        this.work = new EngineWork(engine, weights, plan);
    }

    /** Measures all rounds; the weights are other ones afterwards. */
    public EngineRates measure() {
        List<Round> rounds = new ArrayList<>();
        boolean madeReady = plan.makesReady(device);
        LogProbGap decodeAndScore = LogProbGap.NONE;
        LogProbGap deviceAndCpu = null;
        Double gradientGap = null;
        for (int r = -1; r < plan.rounds(); r++) {
            double prefill = seconds(work::takePrompts);
            double decoded = seconds(work::sample);
            float[][] scored = new float[1][];
            double score = seconds(() -> scored[0] = work.score());
            decodeAndScore = decodeAndScore.worst(LogProbGap.between(work.drawnLogProbs(), scored[0]));
            if (r < 0 && device.kind() != Device.Kind.CPU) {
                try (ScoringSession cpu = new ScoringSession(Engine.cpu(), weights.shape(), plan.tokenBudget())) {
                    int first = Math.min(ON_CPU, plan.sequences());
                    float[] same = Arrays.copyOf(scored[0], first * plan.sampledTokens());
                    deviceAndCpu = LogProbGap.between(same, work.score(cpu, first));
                }
                gradientGap = work.gradientGap(Engine.cpu());
            }
            double backward = seconds(work::accumulate);
            double update = seconds(work::update);
            double pack = seconds(work::prepare);
            double takeUp = madeReady ? work.takeUp() : 0;
            if (r >= 0) {
                rounds.add(new Round(prefill, decoded, score, backward, update, pack, takeUp));
            }
        }
        return new EngineRates(
                plan,
                Sample.of(rounds.stream().map(Round::prefill).toList()),
                Sample.of(rounds.stream().map(Round::decode).toList()),
                Sample.of(rounds.stream().map(Round::score).toList()),
                Sample.of(rounds.stream().map(Round::gradient).toList()),
                Sample.of(rounds.stream().map(Round::update).toList()),
                Sample.of(rounds.stream().map(r -> r.gradient() + r.update()).toList()),
                plan.placement().packs()
                        ? Sample.of(rounds.stream().map(Round::pack).toList())
                        : null,
                madeReady ? Sample.of(rounds.stream().map(Round::takeUp).toList()) : null,
                decodeAndScore,
                deviceAndCpu,
                gradientGap);
    }

    private static double seconds(Runnable work) {
        long start = System.nanoTime();
        work.run();
        return (System.nanoTime() - start) / 1e9;
    }

    @Override
    public void close() {
        work.close();
    }
}
