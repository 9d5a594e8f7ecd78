package dev.millrace.generator.sampling;

import dev.millrace.generator.environment.Environments;
import dev.millrace.log.LogConnection;
import dev.millrace.log.deadletter.Quarantines;
import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.session.Engine;
import dev.millrace.policy.session.PreparedWeights;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.weights.NewestWeights;
import dev.millrace.weights.PolicyFeed;
import java.time.Clock;

/**
 * The role that samples: takes prompts, answers them with the newest weights there are, writes rollouts.
 *
 * <p>Sampling never waits for a step of the learner: new weights are loaded on another thread and taken up between two
 * calls of the engine, while sequences are in flight; version spans say which tokens are whose. Where computing their keys and values again would stop
 * sampling for long, that is done by another thread, and each continues with the older weights until it is done. With
 * {@link WeightUpdate#DRAIN} they are taken up when all sequences in flight are finished, with {@link WeightUpdate#GROUP_END}
 * when all groups that were begun are; with {@link WeightUpdate#MULTI_VERSION} new sequences begin with them while the others
 * finish with theirs. A sequence whose environment
 * needs time waits in its slot while the others go on. It does not wait for
 * commits either, up to a bound on what is finished and not committed.
 *
 * <p>Rollouts and the offsets of their prompts are committed together, and a prompt's offset only when all before it are
 * finished, so that no rollout is lost when a generator dies. Those that were committed ahead of the offset are sampled
 * again by the next owner, under the same rollout ids.
 *
 * <p>An environment or a reward that fails costs its rollout: it is committed as {@code FAILED} with the reason, and the topology counts it as
 * {@code unfinished}. Responses that wait for a reward which takes time hold no slot; four times as many as there are slots may wait, and
 * beyond that none is begun.
 *
 * <p>While it is in quarantine it samples nothing and leaves its prompts to others.
 *
 * <p>Meters: {@code millrace.generator.tokens} (sampled), {@code .tokens.forced}, {@code .tokens.copied}, {@code .rollouts} (committed),
 * {@code .swaps}, {@code .refused.prompts} by reason, {@code .idle.seconds} (nothing to sample, or every sequence waits for its
 * environment), {@code .failed.rollouts}, and the gauges {@code .unjudged} and
 * {@code millrace.policy.version} with role generator.
 */
public final class Generator implements AutoCloseable {
    private final LogConnection connection;
    private final Environments environments;
    private final Engine engine;
    private final GeneratorConfig config;
    private final GeneratorMeters meters;
    private final Clock clock;
    private final SamplingRole role;

    /**
     * @param environments that requests may name
     * @param engine that sampling runs on
     */
    public Generator(RoleContext context, Environments environments, Engine engine, GeneratorConfig config) {
        this.connection = context.connection();
        this.environments = environments;
        this.engine = engine;
        this.config = config;
        this.meters = new GeneratorMeters(context.meters());
        this.clock = context.clock();
        this.role = new SamplingRole(connection, context.feed(), config, this.meters);
    }

    /**
     * Samples until {@link #stop()}; then finishes what is in flight, at most {@code drain_ms}, and commits it.
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
                connection,
                environments,
                first.getTokenizerHash(),
                shape.vocabSize(),
                config.capacityTokens(),
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
