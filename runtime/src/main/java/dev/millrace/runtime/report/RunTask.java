package dev.millrace.runtime.report;

import dev.millrace.corrections.algorithm.Algorithm;
import dev.millrace.corrections.algorithm.Mode;
import dev.millrace.corrections.algorithm.RoutingReplay;
import dev.millrace.corrections.objective.Reinforce;
import dev.millrace.generator.sampling.RolloutSampler;
import dev.millrace.learner.batch.TrainingBatch;
import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.session.Engine;
import dev.millrace.policy.session.NonFiniteScoreException;
import dev.millrace.policy.session.ScoringSession;
import dev.millrace.policy.weights.Weights;
import dev.millrace.replay.GivenRollouts;
import dev.millrace.replay.ScoredRollouts;
import dev.millrace.replay.retrain.PolicyEvaluation;
import dev.millrace.runtime.config.MillraceConfig;
import dev.millrace.runtime.evaluation.HeldOutPrompts;
import dev.millrace.schemas.PromptRequest;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.topology.batch.DirectBatches;
import java.time.Clock;
import java.time.Instant;
import java.time.ZoneOffset;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * Samples the task of a recorded run in this process with the run's sampling. Prompts and draws have their own seeds,
 * are never trained on, and are the same for all weights. Owned by one thread.
 */
public final class RunTask implements PolicyEvaluation, AutoCloseable {
    private static final Clock NO_TIME = Clock.fixed(Instant.EPOCH, ZoneOffset.UTC);
    private static final long EVALUATION_SEED = Long.MIN_VALUE;
    private static final long REFERENCE_SEED = Long.MIN_VALUE + 1;

    private final MillraceConfig config;
    private final HeldOutPrompts heldOut;
    private final DecoderShape shape;
    private final Engine engine;
    private final int prompts;
    private final int groups;
    private final ScoringSession scoring;
    private final GivenRollouts trajectories;
    private final DirectBatches batches;
    private @Nullable RolloutSampler sampler;

    /**
     * @param prompts of an evaluation, one sample each
     * @param groups of an on-policy batch, of the run's own size
     */
    public RunTask(RunIdentity run, MillraceConfig config, DecoderShape shape, Engine engine, int prompts, int groups) {
        this.config = config;
        this.heldOut = new HeldOutPrompts(run, config);
        this.shape = shape;
        this.engine = engine;
        this.prompts = prompts;
        this.groups = groups;
        this.scoring = new ScoringSession(engine, shape, config.learner().step().tokensPerMicrobatch());
        this.trajectories = new GivenRollouts(run);
        this.batches = new DirectBatches(run, onPolicy(config.algorithm()));
    }

    /**
     * The algorithm of an on-policy batch: the run's rewards and advantages without corrections. The objective is
     * replaced by the plain policy gradient, except one that regresses on its own advantages or includes its
     * correction.
     */
    private static Algorithm onPolicy(Algorithm ofRun) {
        return ofRun.mode() == Mode.BYPASS || ofRun.objective().regressesOnOptimalAdvantage()
                ? NamedCorrections.none(ofRun)
                : ofRun.with(a -> NamedCorrections.uncorrected(a)
                        .objective(new Reinforce())
                        .routingReplay(RoutingReplay.NONE)
                        .minibatches(1)
                        .epochs(1));
    }

    /** Why the configured task does not apply to the run, as a clause; empty if it is the run's. */
    public static Optional<String> refusal(MillraceConfig config, String tokenizerHash) {
        if (!tokenizerHash.equals(config.task().task().tokenizer().hash())) {
            return Optional.of("the task " + config.task().task().name() + " has another vocabulary than the run ("
                    + tokenizerHash + ")");
        }
        return config.topology().join().reward()
                ? Optional.of("the run's rollouts have reward records (topology.join.reward), which differ from the"
                        + " task environment's reward")
                : Optional.empty();
    }

    @Override
    public double meanReward(Weights weights, long version) {
        return sample(heldOut.requests(EVALUATION_SEED, "evaluate", prompts, 1), weights, version).stream()
                .mapToDouble(Rollout::getReward)
                .average()
                .orElseThrow();
    }

    @Override
    public TrainingBatch onPolicy(Weights weights, long version) {
        List<Rollout> rollouts = sample(
                heldOut.requests(
                        REFERENCE_SEED, "reference", groups, config.admission().groupSize()),
                weights,
                version);
        List<Trajectory> made = trajectories.make(ScoredRollouts.of(rollouts, scoring, weights), version);
        return TrainingBatch.of(batches.make(version, made, version), made);
    }

    private List<Rollout> sample(List<PromptRequest> requests, Weights weights, long version) {
        if (sampler == null) {
            sampler = new RolloutSampler(engine, shape, config.served(), config.generator(), NO_TIME);
        }
        try {
            return JudgedRollouts.require(sampler.sample(requests, weights, version));
        } catch (NonFiniteScoreException e) {
            dropSampler(); // the contents of its slots cannot be reused
            throw e;
        }
    }

    private void dropSampler() {
        if (sampler != null) {
            sampler.close();
            sampler = null;
        }
    }

    @Override
    public void close() {
        dropSampler();
        scoring.close();
    }
}
