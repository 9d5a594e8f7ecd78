package dev.millrace.workloads;

import dev.millrace.api.environment.Task;
import dev.millrace.api.step.MadeStep;
import dev.millrace.corrections.algorithm.RoutingReplay;
import dev.millrace.corrections.kl.ReferenceConfig;
import dev.millrace.corrections.stage.ControlState;
import dev.millrace.generator.environment.Environments;
import dev.millrace.generator.sampling.RolloutSampler;
import dev.millrace.generator.staleness.PromptRequests;
import dev.millrace.learner.InitialPolicy;
import dev.millrace.learner.batch.TrainingBatch;
import dev.millrace.learner.step.BatchOptimizer;
import dev.millrace.learner.step.StepReport;
import dev.millrace.policy.autodiff.AdamW;
import dev.millrace.policy.session.Device;
import dev.millrace.policy.session.Engine;
import dev.millrace.policy.session.ScoringSession;
import dev.millrace.policy.weights.Weights;
import dev.millrace.replay.GivenRollouts;
import dev.millrace.replay.ScoredRollouts;
import dev.millrace.runtime.config.MillraceConfig;
import dev.millrace.runtime.pipeline.Pipeline;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.PromptRequest;
import dev.millrace.schemas.Trajectory;
import dev.millrace.topology.batch.DirectBatches;
import dev.millrace.workloads.closed.ClosedPlan;
import dev.millrace.workloads.closed.ClosedRun;
import dev.millrace.workloads.closed.ClosedStep;
import dev.millrace.workloads.closed.SlowSteps;
import dev.millrace.workloads.topology.LoadException;
import java.time.Clock;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.LongStream;

/**
 * The loop that a pipeline replaces: it samples, scores, corrects and trains in turns, in one thread and without a log. It uses the
 * roles' own code and settings, so what differs is the log between them and that they overlap.
 *
 * <p>Used by one thread.
 */
final class PlainLoop implements AutoCloseable {
    private final MillraceConfig config;
    private final ClosedPlan plan;
    private final Task task;
    private final PromptRequests requests;
    private final RolloutSampler sampler;
    private final ScoringSession scoring;
    private final GivenRollouts trajectories;
    private final DirectBatches batches;
    private final BatchOptimizer optimizer;
    private final SlowSteps slowSteps;
    private final Weights weights;
    private final AdamW adamW;
    private ControlState controls = ControlState.initial();
    private long batchId;
    private long version;

    /** Whether it does what a run of this configuration does: sampled and scored by own engines alone, without another version as reference. */
    static boolean canRun(MillraceConfig config) {
        return !config.engine().isRemote()
                && config.topology().join().partners().size() == 1
                && config.algorithm().routingReplay() == RoutingReplay.NONE
                && config.algorithm()
                        .kl()
                        .against()
                        .filter(ReferenceConfig.Version.class::isInstance)
                        .isEmpty();
    }

    /** @param environments that are sampled */
    PlainLoop(MillraceConfig config, ClosedPlan plan, Environments environments) {
        this.config = config;
        this.plan = plan;
        this.task = config.task().task();
        this.requests = new PromptRequests(
                config.run().identity(), task, config.admission().sampling(), false);
        InitialPolicy initial = Pipeline.initialPolicy(config);
        Engine engine = new Engine(Device.parse(config.run().device()), 1);
        this.sampler = new RolloutSampler(engine, initial.shape(), environments, config.generator(), Clock.systemUTC());
        this.scoring = new ScoringSession(
                engine, initial.shape(), config.learner().step().tokensPerMicrobatch());
        this.trajectories = new GivenRollouts(config.run().identity());
        this.batches = new DirectBatches(config.run().identity(), config.algorithm());
        this.optimizer = new BatchOptimizer(
                engine, initial.shape(), config.adapter(), config.learner().step(), config.algorithm());
        this.slowSteps = new SlowSteps(plan.stepMs(), plan.seed());
        this.weights = optimizer.trainable(initial.weights());
        this.adamW = optimizer.newOptimizer();
    }

    /**
     * Trains until the plan's budget is used up; as in a run, the first step does not count.
     *
     * @param settings that the run has
     */
    ClosedRun run(Map<String, String> settings) {
        step(System.nanoTime());
        try (ProcessorLoad processors = new ProcessorLoad()) {
            processors.begin();
            List<ClosedStep> steps = new ArrayList<>();
            long tokens = 0;
            for (long begin = System.nanoTime(); !plan.isUsedUp(seconds(begin), tokens); ) {
                ClosedStep step = step(begin);
                tokens += step.tokens();
                if (plan.seconds() == 0 || step.atSeconds() <= plan.seconds()) {
                    steps.add(step);
                }
                if (step.atSeconds() > plan.limitSeconds()) {
                    throw ClosedExecution.notUsedUp(plan);
                }
            }
            if (steps.isEmpty()) {
                throw ClosedExecution.noStep(settings, plan);
            }
            return ClosedRun.of(settings, true, plan, steps, Map.of(), processors.load());
        }
    }

    private static double seconds(long begin) {
        return (System.nanoTime() - begin) / 1e9;
    }

    private ClosedStep step(long begin) {
        ScoredRollouts scored = ScoredRollouts.of(sampler.sample(prompts(), weights, version), scoring, weights);
        List<Trajectory> made = trajectories.make(scored, version);
        LearnerBatch batch = batches.make(batchId, made, version);
        StepReport report = optimizer.train(TrainingBatch.of(batch, made), version, controls, weights, adamW);
        if (report.failure().isPresent()) {
            throw new LoadException(
                    "the plain loop cannot train: " + report.failure().get());
        }
        controls = report.controls();
        version += report.isStarved() ? 0 : 1;
        slowSteps.stepMade(new MadeStep(batchId, version, Map.of()));
        batchId++;
        return new ClosedStep(
                seconds(begin),
                version,
                scored.meanReward(),
                report.isStarved() ? Double.NaN : 0,
                report.figures().essRatio(),
                report.tokensTrained());
    }

    private List<PromptRequest> prompts() {
        int samples = config.admission().groupSize();
        long groups = config.topology().batch().sequences() / samples;
        long first = batchId * groups;
        return LongStream.range(first, first + groups)
                .mapToObj(ordinal -> requests.of(
                        "plain-" + ordinal,
                        ordinal,
                        task.prompts().prompt(config.admission().taskSeed(), ordinal),
                        samples,
                        version,
                        0))
                .toList();
    }

    @Override
    public void close() {
        slowSteps.close();
        optimizer.close();
        scoring.close();
        sampler.close();
    }
}
