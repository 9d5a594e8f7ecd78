package dev.millrace.generator.sampling;

import dev.millrace.log.LogConnection;
import dev.millrace.log.Pulse;
import dev.millrace.log.deadletter.Quarantines;
import dev.millrace.policy.weights.Weights;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.weights.NewestWeights;
import dev.millrace.weights.PolicyFeed;
import java.util.Optional;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * Lifecycle of a sampling role: waits for the first version, takes over its id, samples until stopped, closes its
 * writer.
 */
final class SamplingRole implements AutoCloseable {
    private final LogConnection connection;
    private final PolicyFeed feed;
    private final GeneratorConfig config;
    private final GeneratorMeters meters;
    private final Pulse pulse;
    private final RolloutWriter writer;
    private volatile boolean stopped;
    private volatile @Nullable PromptSource source;

    /** What is done between taking over and the end. */
    interface Sampling {
        /** Ends in {@link SamplingRole#sample}. */
        void from(PolicyVersion first, Quarantines quarantines);
    }

    SamplingRole(RoleContext context, GeneratorConfig config) {
        this.connection = context.connection();
        this.feed = context.feed();
        this.config = config;
        this.meters = new GeneratorMeters(context.meters());
        this.pulse = connection.alarms().begin("generator");
        this.writer = new RolloutWriter(connection, config, meters);
    }

    LogConnection connection() {
        return connection;
    }

    GeneratorConfig config() {
        return config;
    }

    GeneratorMeters meters() {
        return meters;
    }

    RolloutWriter writer() {
        return writer;
    }

    /** Returns when the sampling does, or where it is stopped before it could begin. */
    void run(Sampling sampling) {
        Optional<PolicyVersion> first =
                feed.awaitFirst(connection.limit(config.firstVersionTimeoutMs()), () -> stopped);
        pulse.turn();
        if (first.isEmpty() || !writer.takeOver(() -> stopped)) {
            return;
        }
        pulse.turn();
        try (Quarantines quarantines = Quarantines.of(connection)) {
            quarantines.open();
            sampling.from(first.get(), quarantines);
        }
    }

    /**
     * Follows the newest weights; the caller closes it.
     *
     * @param prepare applied to weights before sampling
     */
    NewestWeights weights(Consumer<Weights> prepare) {
        return new NewestWeights(feed, connection.limit(config.firstVersionTimeoutMs()), prepare, connection.sync());
    }

    /**
     * Samples until {@link #stop()}.
     *
     * @param prompts is closed in the end; a wait of it ends at the stop
     * @param loop is given whether to stop, which it asks in every turn
     */
    void sample(PromptSource prompts, Consumer<BooleanSupplier> loop) {
        try (prompts) {
            source = prompts;
            loop.accept(this::turn);
        }
    }

    private boolean turn() {
        feed.turned(pulse, meters.servedVersion());
        return stopped;
    }

    /** Makes {@link #run} finish. Thread-safe; returns at once. */
    void stop() {
        stopped = true;
        PromptSource waiting = source;
        if (waiting != null) {
            waiting.wakeup();
        }
    }

    /** Call after {@link #run} has returned. */
    @Override
    public void close() {
        writer.close();
    }
}
