package dev.millrace.experiments;

import dev.millrace.api.environment.Task;
import dev.millrace.corrections.NonFiniteLogProbException;
import dev.millrace.corrections.stage.ControlState;
import dev.millrace.experiments.Grid.RunKey;
import dev.millrace.experiments.StepPoint.Drift;
import dev.millrace.experiments.StepPoint.Evaluation;
import dev.millrace.generator.environment.Environments;
import dev.millrace.generator.environment.IncPrompts;
import dev.millrace.generator.sampling.GeneratorConfig;
import dev.millrace.generator.sampling.RolloutSampler;
import dev.millrace.generator.staleness.PromptRequests;
import dev.millrace.generator.staleness.SamplingConfig;
import dev.millrace.learner.batch.TrainingBatch;
import dev.millrace.learner.step.BatchOptimizer;
import dev.millrace.learner.step.NonFiniteStepException;
import dev.millrace.learner.step.OptimizerConfig;
import dev.millrace.learner.step.StepConfig;
import dev.millrace.learner.step.StepReport;
import dev.millrace.policy.autodiff.AdamW;
import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.session.Engine;
import dev.millrace.policy.session.NonFiniteScoreException;
import dev.millrace.policy.session.ScoringSession;
import dev.millrace.policy.weights.WeightRing;
import dev.millrace.policy.weights.Weights;
import dev.millrace.replay.GivenRollouts;
import dev.millrace.replay.ScoredRollouts;
import dev.millrace.schemas.BatchEntry;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.PromptRequest;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.packed.PackedFloats;
import dev.millrace.schemas.packed.PackedMask;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.topology.batch.DirectBatches;
import java.nio.ByteBuffer;
import java.time.Clock;
import java.time.Instant;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.DoubleConsumer;
import java.util.stream.LongStream;

/**
 * At step t the batch is sampled by version {@code max(0, t - lag)}; version 0 is the policy at the end of the seed's
 * warm start.
 *
 * <p>A run is a function of key and settings, bit for bit on the same kind of machine. Thread-safe.
 */
public final class StalenessRuns {
    private static final RunIdentity RUN = new RunIdentity("experiment", 0, "policy");

    private final StalenessSettings settings;
    private final Map<Long, TrainedPolicy> warmStarts = new ConcurrentHashMap<>();

    public StalenessRuns(StalenessSettings settings) {
        this.settings = settings;
    }

    GridRunResult run(RunKey key) {
        TrainedPolicy start = warmStarts.computeIfAbsent(key.seed(), this::warmStart);
        PromptSeries series = new PromptSeries(new IncPrompts(settings.digits()).task(), settings, key.seed());
        List<StepPoint> points = new ArrayList<>();
        List<Evaluation> evaluations = new ArrayList<>();
        String refused = null;
        try (LaggedStep step = new LaggedStep(series, settings, key.correction())) {
            AdamW optimizer = step.newOptimizer();
            optimizer.restore(start.optimizer());
            Weights current = start.weights().copy();
            WeightRing versions = new WeightRing(key.lag(), 0);
            versions.add(current);
            evaluations.add(step.evaluate(current, 0));
            for (int t = 0; t < settings.steps(); t++) {
                long behavior = Math.max(0, t - key.lag());
                points.add(step.take(start.batches() + t, t, versions.at(behavior), behavior, current, optimizer));
                versions.add(current);
                if ((t + 1) % settings.evaluateEvery() == 0) {
                    evaluations.add(step.evaluate(current, t + 1L));
                }
            }
        } catch (NonFiniteStepException | NonFiniteScoreException | NonFiniteLogProbException e) {
            refused = e.getMessage();
        }
        return new GridRunResult(key, settings, points, evaluations, refused);
    }

    private TrainedPolicy warmStart(long seed) {
        PromptSeries series = new PromptSeries(new IncPrompts(settings.digits()).task(), settings, seed);
        Weights current = Weights.random(settings.model(), seed);
        try (LaggedStep step = new LaggedStep(series, settings, Correction.of("none"))) {
            AdamW optimizer = step.newOptimizer();
            for (int t = 0; t < settings.warmUpSteps(); t++) {
                step.take(t, t, current, t, current, optimizer);
            }
            return TrainedPolicy.copyOf(current, optimizer, settings.warmUpSteps());
        }
    }

    /**
     * One step of the product's own parts without the log: generator's engine with behavior weights, scorer's with
     * current ones, the topology's batch and the learner's step.
     *
     * <p>The proximal policy is current at step start. One engine samples and scores, so old log-probs are taken as
     * behavior's. Owned by one thread.
     */
    static final class LaggedStep implements AutoCloseable {
        private static final Clock NO_TIME = Clock.fixed(Instant.EPOCH, ZoneOffset.UTC);
        private static final int TOKEN_BUDGET = 4096;

        private final PromptSeries series;
        private final RolloutSampler sampler;
        private final ScoringSession scoring;
        private final GivenRollouts trajectories;
        private final DirectBatches batches;
        private final BatchOptimizer optimizer;

        LaggedStep(PromptSeries series, StalenessSettings settings, Correction correction) {
            DecoderShape shape = settings.model();
            this.series = series;
            Engine engine = Engine.cpu();
            int capacity = series.task().capacityTokens();
            this.sampler = new RolloutSampler(
                    engine,
                    shape,
                    Environments.builtIn(),
                    GeneratorConfig.defaults().withSlots(settings.batchSequences(), capacity, capacity - 1),
                    NO_TIME);
            this.scoring = new ScoringSession(engine, shape, TOKEN_BUDGET);
            this.trajectories = new GivenRollouts(RUN);
            this.batches = new DirectBatches(RUN, correction.algorithm());
            this.optimizer = new BatchOptimizer(engine, shape, stepConfig(settings), correction.algorithm());
        }

        private static StepConfig stepConfig(StalenessSettings settings) {
            OptimizerConfig adamW = OptimizerConfig.defaults();
            return StepConfig.defaults()
                    .withOptimizer(new OptimizerConfig(
                            settings.learningRate(),
                            adamW.warmUpSteps(),
                            adamW.decay(),
                            adamW.beta1(),
                            adamW.beta2(),
                            adamW.epsilon(),
                            adamW.weightDecay(),
                            adamW.maxGradNorm()))
                    .withCut(TOKEN_BUDGET, 1);
        }

        AdamW newOptimizer() {
            return optimizer.newOptimizer();
        }

        /**
         * Changes {@code current} and {@code adamW} by one step.
         *
         * @param step version of {@code current}
         */
        StepPoint take(long batchId, long step, Weights behavior, long behaviorVersion, Weights current, AdamW adamW) {
            Sampled sampled = sample(batchId, step, behavior, behaviorVersion, current);
            ScoredRollouts scored = sampled.scored();
            TrainingBatch training = batch(batchId, sampled, step);
            LearnerBatch batch = training.batch();
            Drift drift = Drift.of(scored);
            StepReport report = optimizer.train(training, step, ControlState.initial(), current, adamW);
            return new StepPoint(
                    step,
                    oldestVersion(batch),
                    batch.getStalenessMean(),
                    scored.meanReward(),
                    drift,
                    new StepPoint.Update(
                            1 - (double) weighed(batch) / scored.tokens().trainedTokens(),
                            metric(report, "clip_fraction"),
                            batch.getStepScale(),
                            metric(report, "grad_norm"),
                            metric(report, "entropy"),
                            report.tokensTrained() == 0));
        }

        /** Rollouts of behavior, scored by current, and as trajectories. */
        record Sampled(ScoredRollouts scored, List<Trajectory> trajectories) {}

        /** As {@link #take}, but changes nothing. */
        Sampled sample(long batchId, long step, Weights behavior, long behaviorVersion, Weights current) {
            ScoredRollouts scored = ScoredRollouts.of(
                    sampler.sample(series.batch(batchId), behavior, behaviorVersion), scoring, current);
            return new Sampled(scored, trajectories.make(scored, step));
        }

        TrainingBatch batch(long batchId, Sampled sampled, long step) {
            return TrainingBatch.of(batches.make(batchId, sampled.trajectories(), step), sampled.trajectories());
        }

        BatchOptimizer optimizer() {
            return optimizer;
        }

        private static long weighed(LearnerBatch batch) {
            long[] weighed = new long[1];
            forEachWeight(batch, weight -> weighed[0] += weight > 0 ? 1 : 0);
            return weighed[0];
        }

        /** Of every token that is left. */
        static void forEachWeight(LearnerBatch batch, DoubleConsumer taker) {
            for (BatchEntry entry : batch.getEntries()) {
                ByteBuffer weights = Objects.requireNonNull(entry.getWeights(), "direct batches have weights");
                ByteBuffer mask = entry.getMask();
                for (int t = 0; entry.getTrainedTokens() > 0 && t < PackedFloats.length(weights); t++) {
                    if (mask == null || PackedMask.get(mask, t) == 1) {
                        taker.accept(PackedFloats.get(weights, t));
                    }
                }
            }
        }

        private static long oldestVersion(LearnerBatch batch) {
            return batch.getEntries().stream()
                    .mapToLong(BatchEntry::getOldestVersion)
                    .min()
                    .orElseThrow();
        }

        /** An absent metric is 0. */
        private static double metric(StepReport report, String name) {
            return report.metrics().byName().getOrDefault(name, 0.0);
        }

        Evaluation evaluate(Weights current, long steps) {
            List<Rollout> rollouts = sampler.sample(series.evaluation(), current, steps);
            return new Evaluation(
                    steps,
                    rollouts.stream().mapToDouble(Rollout::getReward).average().orElseThrow(),
                    rollouts.stream()
                            .mapToDouble(rollout -> rollout.getReward() == 1 ? 1 : 0)
                            .average()
                            .orElseThrow());
        }

        @Override
        public void close() {
            optimizer.close();
            scoring.close();
            sampler.close();
        }
    }

    /**
     * A policy with its optimizer state; not to be written to.
     *
     * @param batches trained on so far: the ordinal of the next batch of prompts
     */
    record TrainedPolicy(Weights weights, AdamW.State optimizer, long batches) {

        static TrainedPolicy copyOf(Weights weights, AdamW optimizer, long batches) {
            AdamW.State state = optimizer.state();
            return new TrainedPolicy(
                    weights.copy(),
                    new AdamW.State(
                            state.steps(), state.first().copy(), state.second().copy()),
                    batches);
        }
    }

    /** Prompt requests of a task: a function of seed and ordinal. Immutable. */
    static final class PromptSeries {
        /** Not a training seed. */
        private static final long EVALUATION_SEED = Long.MIN_VALUE;

        private final Task task;
        private final StalenessSettings settings;
        private final long seed;

        PromptSeries(Task task, StalenessSettings settings, long seed) {
            this.task = task;
            this.settings = settings;
            this.seed = seed;
        }

        Task task() {
            return task;
        }

        List<PromptRequest> batch(long batchId) {
            return requests(
                    SamplingConfig.defaults().withSeed(seed),
                    "train",
                    batchId * settings.groups(),
                    settings.groups(),
                    settings.groupSize());
        }

        /** The prompts of a batch, each to be answered once, greedily. */
        List<PromptRequest> greedy(long batchId) {
            return requests(
                    new SamplingConfig(1.0, 1, 1.0, 0.0, 0, seed, false, 0),
                    "greedy",
                    batchId * settings.groups(),
                    settings.groups(),
                    1);
        }

        List<PromptRequest> evaluation() {
            return requests(
                    SamplingConfig.defaults().withSeed(EVALUATION_SEED),
                    "evaluate",
                    0,
                    settings.evaluationPrompts(),
                    1);
        }

        private List<PromptRequest> requests(SamplingConfig sampling, String name, long first, int count, int samples) {
            PromptRequests asked = new PromptRequests(RUN, task, sampling, false);
            return LongStream.range(first, first + count)
                    .mapToObj(ordinal -> asked.of(
                            name + "-" + ordinal,
                            ordinal,
                            task.prompts().prompt(sampling.seed(), ordinal),
                            samples,
                            0,
                            0))
                    .toList();
        }
    }
}
