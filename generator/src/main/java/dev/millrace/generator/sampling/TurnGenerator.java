package dev.millrace.generator.sampling;

import dev.millrace.generator.environment.Environments;
import dev.millrace.log.LogConnection;
import dev.millrace.log.deadletter.Quarantines;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.weights.NewestWeights;
import dev.millrace.weights.PolicyFeed;
import io.micrometer.core.instrument.MeterRegistry;
import java.time.Clock;
import java.util.List;

/**
 * The role that samples with another program's engine: a {@link Generator} that plays environments turn by turn.
 *
 * <p>The engine is asked for what follows the tokens so far, up to the sample's limit or a stop. What it says is shown to the
 * environment token by token; where that reacts, what the engine sampled behind is left out, and it is asked again. So an environment
 * that reacts in the middle costs calls, and one that ends with a stop costs one.
 *
 * <p>Commits, quarantine and meters are as a generator's; those of the engine are beside.
 */
public final class TurnGenerator implements AutoCloseable {
    private final LogConnection connection;
    private final Environments environments;
    private final List<Integer> stopTokens;
    private final TurnEngine.Door door;
    private final GeneratorConfig config;
    private final GeneratorMeters meters;
    private final Clock clock;
    private final SamplingRole role;

    /**
     * Of another program's engine.
     *
     * @param feed stays the caller's; it must outlive {@link #run()}
     * @param environments that requests may name
     * @param stopTokens that end a response where the environment names no token that does
     * @param door of the engine that sampling runs on
     */
    public TurnGenerator(
            LogConnection connection,
            PolicyFeed feed,
            Environments environments,
            List<Integer> stopTokens,
            TurnEngine.Door door,
            GeneratorConfig config,
            MeterRegistry meters,
            Clock clock) {
        this.connection = connection;
        this.environments = environments;
        this.stopTokens = List.copyOf(stopTokens);
        this.door = door;
        this.config = config;
        this.meters = new GeneratorMeters(meters);
        this.clock = clock;
        this.role = new SamplingRole(connection, feed, config, this.meters);
    }

    /**
     * Samples until {@link #stop()}; then finishes what is under way, at most {@code drain_ms}, and commits it.
     *
     * @throws dev.millrace.weights.VersionUnavailableException if no policy version appears in time
     * @throws IllegalStateException if another generator has taken this one's id, commits do not end, or the engine cannot be used
     */
    public void run() {
        role.run(this::sample);
    }

    private void sample(PolicyVersion first, Quarantines quarantines) {
        try (NewestWeights weights = role.weights(door::prepare);
                TurnEngine engine = door.open(weights, PolicyFeed.shapeOf(first))) {
            int vocabSize = PolicyFeed.shapeOf(first).vocabSize();
            PromptCheck check = new PromptCheck(
                    connection,
                    environments,
                    first.getTokenizerHash(),
                    vocabSize,
                    config.capacityTokens(),
                    engine::refusal);
            TurnLoop loop = new TurnLoop(
                    connection,
                    config,
                    meters,
                    clock,
                    role.writer(),
                    engine,
                    stopTokens,
                    vocabSize,
                    check,
                    quarantines);
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
