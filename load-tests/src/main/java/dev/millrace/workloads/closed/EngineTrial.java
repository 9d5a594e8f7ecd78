package dev.millrace.workloads.closed;

import dev.millrace.policy.autodiff.AdamW;
import dev.millrace.policy.session.Device;
import dev.millrace.policy.session.Engine;
import dev.millrace.policy.session.GradientSession;
import dev.millrace.policy.session.PreparedWeights;
import dev.millrace.policy.session.ScoringSession;
import dev.millrace.policy.session.SequenceBatch;
import dev.millrace.policy.weights.Gradients;
import dev.millrace.policy.weights.Weights;
import dev.millrace.report.Sample;
import dev.millrace.workloads.closed.EngineRates.LogProbGap;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * {@link EngineWork} in rounds. Each round runs every piece once, so other load on the machine affects all of them alike.
 * Not thread-safe.
 */
public final class EngineTrial implements AutoCloseable {
    /** Sequences that are also scored on the CPU, which is slow. */
    private static final int ON_CPU = 4;

    private final EnginePlan plan;
    private final Weights weights;
    private final Device device;
    private final EngineWork work;

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
                new EngineRates.Work(
                        Sample.of(rounds.stream().map(Round::prefill).toList()),
                        Sample.of(rounds.stream().map(Round::decode).toList()),
                        Sample.of(rounds.stream().map(Round::score).toList()),
                        Sample.of(rounds.stream().map(Round::gradient).toList()),
                        Sample.of(rounds.stream().map(Round::update).toList()),
                        Sample.of(rounds.stream()
                                .map(r -> r.gradient() + r.update())
                                .toList())),
                plan.placement().packs()
                        ? Sample.of(rounds.stream().map(Round::pack).toList())
                        : null,
                madeReady ? Sample.of(rounds.stream().map(Round::takeUp).toList()) : null,
                new EngineRates.Gaps(decodeAndScore, deviceAndCpu, gradientGap));
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

    /**
     * What generator, scorer and learner ask of an engine, piece by piece: prompts in, tokens behind them, their scores, the gradient
     * by every weight, a step.
     *
     * <p>Prompts are random tokens, the coefficients of the gradient are one for each sampled token. Not thread-safe.
     */
    public static final class EngineWork implements AutoCloseable {
        private static final double LEARNING_RATE = 1e-6;
        private static final AdamW.Config OPTIMIZER = new AdamW.Config(0.9, 0.999, 1e-8, 0);

        private final Weights weights;
        private final PreparedWeights prepared;
        private final SampledSequences sampled;
        private final float[] ones;
        private final float[] temperatures;
        private final ScoringSession scoring;
        private final GradientSession gradient;
        private final Gradients gradients;
        private @Nullable AdamW optimizer; // made with the first step: it takes twice the weights

        /**
         * @param weights written by every {@link #update()}
         * @throws IllegalArgumentException if a sequence is longer than the model's positions
         */
        public EngineWork(Engine engine, Weights weights, EnginePlan plan) {
            this.weights = weights;
            this.prepared =
                    new PreparedWeights(plan.precision(), plan.placement().packs());
            this.ones = filled(plan.sequences() * plan.sampledTokens());
            this.temperatures = filled(plan.sequences());
            this.sampled = new SampledSequences(engine, weights, plan, prepared);
            this.scoring = new ScoringSession(engine, weights.shape(), plan.tokenBudget());
            this.gradient = new GradientSession(engine, weights.shape(), plan.tokenBudget());
            this.gradients = new Gradients(weights.shape());
        }

        private static float[] filled(int length) {
            float[] ones = new float[length];
            Arrays.fill(ones, 1f);
            return ones;
        }

        /** Makes what prompts and tokens need of weights that were written since. */
        public void prepare() {
            prepared.forget();
            prepared.prepare(weights);
        }

        /**
         * Seconds that sampling waits for a version that another thread prepares: how much longer than usual the longest call
         * is, while it does and with the new weights.
         */
        public double takeUp() {
            return sampled.takeUp(prepared);
        }

        /** Begins every sequence again with its prompt. */
        public void takePrompts() {
            sampled.takePrompts();
        }

        /** Draws every sequence to its end, behind the prompts that were taken in. */
        public void sample() {
            sampled.sample();
        }

        /** Log-probs of what was sampled, packed. */
        public float[] score() {
            return score(scoring);
        }

        /** The same of another engine. */
        float[] score(ScoringSession session) {
            return session.score(weights, batch(), temperatures).logProbs();
        }

        /** The same of the first sequences alone. */
        float[] score(ScoringSession session, int first) {
            return session.score(weights, sampled.batch(first), filled(first)).logProbs();
        }

        /** How far the first sequence's gradient is from another engine's: the norm of the difference, by the other's norm. */
        double gradientGap(Engine other) {
            Gradients here = ofFirst(gradient);
            Gradients there;
            try (GradientSession session = new GradientSession(other, weights.shape(), Integer.MAX_VALUE)) {
                there = ofFirst(session);
            }
            double norm = there.l2Norm();
            there.scale(-1);
            here.add(there);
            return here.l2Norm() / norm;
        }

        private Gradients ofFirst(GradientSession session) {
            Gradients found = new Gradients(weights.shape());
            SequenceBatch first = sampled.batch(1);
            session.accumulate(
                    weights, first, filled(1), filled(first.scoredCount()), new float[first.scoredCount()], found);
            return found;
        }

        /** The gradient of the sum of the sampled tokens' log-probs, in place of the one before. */
        public void accumulate() {
            gradients.zero();
            gradient.accumulate(weights, batch(), temperatures, ones, new float[ones.length], gradients);
        }

        /** One step of AdamW by the gradient; {@link #prepare()} before there are prompts again. */
        public void update() {
            if (optimizer == null) {
                optimizer = new AdamW(OPTIMIZER, weights.shape());
            }
            optimizer.step(weights, gradients, LEARNING_RATE);
        }

        /** What the engine said of the tokens when it drew them, packed as their scores. */
        float[] drawnLogProbs() {
            return sampled.logProbs();
        }

        private SequenceBatch batch() {
            return sampled.batch();
        }

        @Override
        public void close() {
            sampled.close();
            scoring.close();
            gradient.close();
        }
    }
}
