package dev.millrace.generator.sampling;

import dev.millrace.generator.environment.Environments;
import dev.millrace.log.deadletter.Quarantines;
import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.session.Engine;
import dev.millrace.policy.session.PreparedWeights;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.weights.NewestWeights;
import dev.millrace.weights.PolicyFeed;
import java.time.Clock;
import java.util.Optional;

/**
 * Sampling role: reads prompts, samples with the newest weights, writes rollouts.
 *
 * <p>Another thread loads new weights, and {@link WeightUpdate} says when sequences change to them; version spans
 * name the version of each token. Sampling waits neither for the learner nor for commits, up to a bound on
 * uncommitted rollouts.
 *
 * <p>Rollouts and prompt offsets are committed together, and a prompt's offset only after all earlier prompts are
 * finished, so no rollout is lost. Rollouts committed ahead of the offset are sampled again by the next owner, under
 * the same ids.
 *
 * <p>A failing environment or reward commits its rollout as {@code FAILED} with the reason. Responses that wait for a
 * slow reward hold no slot; at most four times the slots may wait. In quarantine it samples nothing and leaves its
 * prompts to others.
 *
 * <p>Meters: see {@link GeneratorMeters}.
 */
public final class Generator implements AutoCloseable {
    private final Environments environments;
    private final Engine engine;
    private final GeneratorConfig config;
    private final Clock clock;
    private final SamplingRole role;

    /** @param environments that requests may name */
    public Generator(RoleContext context, Environments environments, Engine engine, GeneratorConfig config) {
        this.environments = environments;
        this.engine = engine;
        this.config = config;
        this.clock = context.clock();
        this.role = new SamplingRole(context, config);
    }

    /**
     * Samples until {@link #stop()}, then finishes sequences in flight within {@code drain_ms} and commits them.
     *
     * @throws dev.millrace.weights.VersionUnavailableException if no policy version appears in time
     * @throws IllegalStateException if another generator has taken this one's id, or commits do not end
     * @throws dev.millrace.policy.session.NonFiniteScoreException if the policy has diverged
     */
    public void run() {
        role.run(this::sample);
    }

    private void sample(PolicyVersion first, Quarantines quarantines) {
        DecoderShape shape = PolicyFeed.shapeOf(first);
        PromptCheck check = new PromptCheck(
                role.connection(),
                environments,
                first.getTokenizerHash(),
                shape.vocabSize(),
                config.capacityTokens(),
                sampling -> Optional.empty(),
                shape.traits().experts().present() ? config.twoRoutings().orElse("") : "the policy has no experts");
        PreparedWeights prepared = config.prepared(engine);
        try (NewestWeights weights = role.weights(prepared::prepare);
                SlotPool slots = new SlotPool(engine, shape, config, prepared)) {
            SamplingLoop loop = new SamplingLoop(role, clock, weights, slots, shape.vocabSize(), check, quarantines);
            role.sample(loop.prompts(), loop::run);
        }
    }

    /** Makes {@link #run()} finish. Thread-safe; returns at once. */
    public void stop() {
        role.stop();
    }

    /** Call after {@link #run()} has returned. */
    @Override
    public void close() {
        role.close();
    }
}
