package dev.millrace.generator.sampling;

import dev.millrace.generator.environment.Environments;
import dev.millrace.generator.sampling.RolloutWriter.Finished;
import dev.millrace.generator.sampling.RolloutWriter.Work;
import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.session.Engine;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.ServerRole;
import dev.millrace.schemas.Serving;
import dev.millrace.schemas.run.LogConnection;
import dev.millrace.weights.NewestWeights;
import dev.millrace.weights.PolicyFeed;
import io.micrometer.core.instrument.Counter;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.MeterRegistry;
import java.time.Clock;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import org.apache.kafka.common.TopicPartition;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The role that samples: takes prompts, answers them with the newest weights there are, writes rollouts.
 *
 * <p>Sampling never waits for a step of the learner: new weights are loaded on another thread and taken up between two
 * calls of the engine, while sequences are in flight; version spans say which tokens are whose. It does not wait for
 * commits either, up to a bound on what is finished and not committed.
 *
 * <p>Rollouts and the offsets of their prompts are committed together, and a prompt's offset only when all before it are
 * finished, so that no rollout is lost when a generator dies. Those that were committed ahead of the offset are sampled
 * again by whoever takes over, under the same rollout ids.
 *
 * <p>Meters: {@code millrace.generator.tokens} (sampled), {@code .tokens.forced}, {@code .rollouts} (committed),
 * {@code .swaps}, {@code .refused.prompts} by reason, {@code .idle.seconds} (nothing to sample), and the gauge
 * {@code millrace.policy.version} with role generator.
 */
public final class Generator implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(Generator.class);
    private static final Duration IDLE_WAIT = Duration.ofMillis(100);
    private static final Duration VERSION_POLL = Duration.ofMillis(2);
    private static final long POLL_INTERVAL_MS = 2;
    private static final int MAX_UNCOMMITTED_FILLINGS = 4;

    private final LogConnection connection;
    private final PolicyFeed feed;
    private final Environments environments;
    private final Engine engine;
    private final GeneratorConfig config;
    private final MeterRegistry meters;
    private final Clock clock;
    private final RolloutWriter writer;
    private final Counter tokens;
    private final Counter forced;
    private final Counter swaps;
    private final Counter idle;
    private volatile boolean stopped;
    private volatile long servedVersion = -1;
    private volatile PromptSource source;

    /**
     * @param feed stays the caller's; it must outlive {@link #run()}
     * @param environments that requests may name
     * @param engine that sampling runs on
     */
    public Generator(LogConnection connection, PolicyFeed feed, Environments environments, Engine engine,
            GeneratorConfig config, MeterRegistry meters, Clock clock) {
        this.connection = connection;
        this.feed = feed;
        this.environments = environments;
        this.engine = engine;
        this.config = config;
        this.meters = meters;
        this.clock = clock;
        this.writer = new RolloutWriter(connection, config, meters);
        this.tokens = Counter.builder("millrace.generator.tokens").description("tokens sampled").register(meters);
        this.forced = Counter.builder("millrace.generator.tokens.forced")
                .description("tokens forced through the engine: prompts, environments, sequences computed again")
                .register(meters);
        this.swaps = Counter.builder("millrace.generator.swaps").description("versions taken up").register(meters);
        this.idle = Counter.builder("millrace.generator.idle.seconds")
                .description("time without anything to sample").register(meters);
        Gauge.builder("millrace.policy.version", this, g -> g.servedVersion).tag("role", "generator").register(meters);
    }

    /**
     * Samples until {@link #stop()}; then finishes what is in flight, at most {@code drain_ms}, and commits it.
     *
     * @throws dev.millrace.weights.VersionUnavailableException if no policy version appears in time
     * @throws IllegalStateException if another generator has taken this one's id, or commits do not end
     * @throws dev.millrace.policy.session.NonFiniteScoreException if the policy has diverged
     */
    public void run() {
        Optional<PolicyVersion> first =
                feed.awaitFirst(Duration.ofMillis(config.firstVersionTimeoutMs()), () -> stopped);
        if (first.isEmpty()) {
            return;
        }
        writer.takeOver();
        DecoderShape shape = PolicyFeed.shapeOf(first.get());
        PromptCheck check = new PromptCheck(connection, environments, first.get().getTokenizerHash(), shape.vocabSize(),
                config.capacityTokens());
        try (NewestWeights weights = new NewestWeights(feed, Duration.ofMillis(config.firstVersionTimeoutMs()));
                SlotPool slots = new SlotPool(engine, shape, config)) {
            Loop loop = new Loop(weights, slots, shape.vocabSize(), check);
            try (PromptSource prompts = loop.prompts) {
                source = prompts;
                loop.run();
            }
        }
    }

    /** Makes {@link #run()} finish. Thread-safe; returns at once. */
    public void stop() {
        stopped = true;
        PromptSource waiting = source;
        if (waiting != null) {
            waiting.wakeup();
        }
    }

    /** Call after {@link #run()} has returned. */
    @Override
    public void close() {
        writer.close();
    }

    /** The sampling thread's loop and all that only it touches. */
    private final class Loop implements PromptSource.Moves {
        private final NewestWeights weights;
        private final SlotPool slots;
        private final int vocabSize;
        private final PromptSource prompts;
        private List<Finished> finished = new ArrayList<>();
        private NewestWeights.Loaded serving;
        private long servingSinceMs;
        private long totalTokens;
        private long totalForced;
        private boolean heldBack; // prompts wait for the version that admission knew
        private long awaited = -1;
        private long awaitedSinceMs;
        private long gaveUpWaitingFor = -1;
        private long lastPollMs;
        private long lastCommitMs;
        private long lastHeartbeatMs;

        Loop(NewestWeights weights, SlotPool slots, int vocabSize, PromptCheck check) {
            this.weights = weights;
            this.slots = slots;
            this.vocabSize = vocabSize;
            this.prompts = new PromptSource(connection, config, check, this);
        }

        void run() {
            while (!stopped) {
                readPrompts();
                takeUpNewestWeights();
                fillSlots();
                advance();
                commitIfDue();
            }
            drain();
        }

        private void readPrompts() {
            long now = clock.millis();
            if (slots.active() == 0 && (heldBack || prompts.isEmpty())) {
                long from = System.nanoTime();
                prompts.poll(heldBack ? VERSION_POLL
                        : finished.isEmpty() ? IDLE_WAIT : Duration.ofMillis(config.commitIntervalMs()));
                idle.increment((System.nanoTime() - from) / 1e9);
            } else if (now - lastPollMs >= POLL_INTERVAL_MS) {
                lastPollMs = now;
                prompts.poll(Duration.ZERO);
            }
        }

        private boolean nothingToSample() {
            return slots.active() == 0 && prompts.isEmpty();
        }

        private void takeUpNewestWeights() {
            NewestWeights.Loaded newest = weights.current();
            if (serving == null || newest.version() != serving.version()) {
                if (serving != null) {
                    swaps.increment();
                }
                serving = newest;
                servedVersion = newest.version();
                servingSinceMs = clock.millis();
                lastHeartbeatMs = 0; // what is served has changed: say so with the next commit
            }
        }

        private void fillSlots() {
            while (slots.hasRoom() && !prompts.isEmpty() && mayBegin(prompts.nextAdmittedVersion())) {
                slots.add(prompts.next(vocabSize, clock.millis()));
            }
            heldBack = slots.hasRoom() && !prompts.isEmpty();
        }

        /**
         * A prompt is begun with weights that are no older than what admission counted on, which bounds staleness; they
         * are on their way when admission knows them.
         */
        private boolean mayBegin(long admittedVersion) {
            if (admittedVersion <= Math.max(serving.version(), gaveUpWaitingFor)) {
                return true;
            }
            long now = clock.millis();
            if (awaited != admittedVersion) {
                awaited = admittedVersion;
                awaitedSinceMs = now;
            }
            if (now - awaitedSinceMs < config.versionWaitMs()) {
                return false;
            }
            LOG.warn("generator {} goes on with version {}: version {}, which admission knew, did not come within {} ms"
                    + " (version_wait_ms)", config.id(), serving.version(), admittedVersion, config.versionWaitMs());
            gaveUpWaitingFor = admittedVersion;
            return true;
        }

        private void advance() {
            if (slots.active() == 0) {
                return;
            }
            slots.advance(serving.weights(), serving.version(), this::finish);
            tokens.increment(slots.sampledTokens() - totalTokens);
            forced.increment(slots.forcedTokens() - totalForced);
            totalTokens = slots.sampledTokens();
            totalForced = slots.forcedTokens();
        }

        private void finish(InFlight sequence) {
            finished.add(new Finished(sequence, clock.millis()));
            prompts.finished(sequence);
        }

        private void commitIfDue() {
            long now = clock.millis();
            boolean heartbeat = now - lastHeartbeatMs >= config.heartbeatMs();
            boolean something = !finished.isEmpty() || prompts.hasRefused();
            if (finished.size() > MAX_UNCOMMITTED_FILLINGS * config.slots()) {
                settle(); // commits are slower than sampling: wait for one, so that memory stays bounded
            }
            boolean worthIt = nothingToSample() || now - lastCommitMs >= config.commitIntervalMs();
            if (!writer.isBusy() && (heartbeat || something && worthIt)) {
                settle();
                commit(heartbeat);
            }
        }

        private void commit(boolean heartbeat) {
            lastCommitMs = clock.millis();
            Serving record = null;
            if (heartbeat && serving != null) {
                lastHeartbeatMs = lastCommitMs;
                record = new Serving(connection.run().runId(), connection.run().epoch(), config.id(), ServerRole.GENERATOR,
                        connection.run().policyId(), serving.version(), servingSinceMs, lastCommitMs, totalTokens);
            }
            List<Finished> rollouts = finished;
            finished = new ArrayList<>();
            writer.submit(new Work(rollouts, prompts.takeRefused(), record, prompts.takeOffsets(), prompts.groupMetadata()));
        }

        /** Ends the transaction under way; what the group did not take is to be committed again. */
        private void settle() {
            writer.await().ifPresent(notWritten -> {
                List<Finished> again = new ArrayList<>(notWritten.rollouts());
                again.addAll(finished);
                finished = again;
                prompts.putBack(notWritten.refused(), notWritten.offsets().keySet());
            });
        }

        private void drain() {
            prompts.dropNotBegun();
            long deadline = clock.millis() + config.drainMs();
            while ((slots.active() > 0 || !prompts.isEmpty()) && clock.millis() < deadline) {
                fillSlots();
                advance();
                commitIfDue();
            }
            if (slots.active() > 0 || !prompts.isEmpty()) {
                LOG.info("generator {} gives up {} rollouts in flight after {} ms (drain_ms); they will be sampled again",
                        config.id(), slots.active(), config.drainMs());
            }
            settle();
            commit(true);
            settle();
        }

        @Override
        public void beforeMove() {
            settle();
            commit(false);
            settle();
        }

        @Override
        public void moved(Set<TopicPartition> partitions) {
            settle(); // or what it puts back could belong to somebody else by then
            slots.drop(partitions);
            finished.removeIf(f -> partitions.contains(f.sequence().prompt().partition()));
        }
    }
}
