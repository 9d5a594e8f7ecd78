package dev.millrace.generator.sampling;

import dev.millrace.generator.environment.Environments;
import dev.millrace.generator.sampling.RolloutWriter.Finished;
import dev.millrace.log.Pulse;
import dev.millrace.log.deadletter.Quarantines;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.PromptRequest;
import dev.millrace.schemas.Sampler;
import dev.millrace.schemas.SamplingParameters;
import dev.millrace.schemas.ServerRole;
import dev.millrace.schemas.Serving;
import dev.millrace.schemas.VersionSpan;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.weights.NewestWeights;
import dev.millrace.weights.PolicyFeed;
import java.time.Clock;
import java.time.Duration;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Set;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.function.BooleanSupplier;
import org.apache.kafka.common.TopicPartition;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A {@link Generator} that samples with an external engine and plays environments turn by turn.
 *
 * <p>Each engine call continues the tokens so far up to the sample's limit or a stop. The environment sees the answer
 * token by token. If it reacts, the tokens after that point are dropped and the engine is called again, so an
 * environment that reacts in the middle of an answer costs calls.
 *
 * <p>Commits, quarantine and meters are those of {@link Generator}; the engine has its own meters.
 */
public final class TurnGenerator implements AutoCloseable {
    private final Environments environments;
    private final List<Integer> stopTokens;
    private final TurnEngine.Factory factory;
    private final GeneratorConfig config;
    private final Clock clock;
    private final SamplingRole role;

    /**
     * @param environments that requests may name
     * @param stopTokens that end a response where the environment names no token that does
     */
    public TurnGenerator(
            RoleContext context,
            Environments environments,
            List<Integer> stopTokens,
            TurnEngine.Factory factory,
            GeneratorConfig config) {
        this.environments = environments;
        this.stopTokens = List.copyOf(stopTokens);
        this.factory = factory;
        this.config = config;
        this.clock = context.clock();
        this.role = new SamplingRole(context, config);
    }

    /**
     * Samples until {@link #stop()}, then finishes sequences in flight within {@code drain_ms} and commits them.
     *
     * @throws dev.millrace.weights.VersionUnavailableException if no policy version appears in time
     * @throws IllegalStateException if another generator has taken this one's id, commits do not end, or the engine cannot be used
     */
    public void run() {
        role.run(this::sample);
    }

    private void sample(PolicyVersion first, Quarantines quarantines) {
        try (NewestWeights weights = role.weights(factory::prepare);
                TurnEngine engine = factory.open(weights, PolicyFeed.shapeOf(first))) {
            int vocabSize = PolicyFeed.shapeOf(first).vocabSize();
            PromptCheck check = new PromptCheck(
                    role.connection(),
                    environments,
                    first.getTokenizerHash(),
                    vocabSize,
                    config.capacityTokens(),
                    engine::refusal,
                    "another engine records no routing");
            TurnLoop loop = new TurnLoop(engine, vocabSize, check, quarantines);
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

    /**
     * Loop of the role's thread: read prompts, call the engine, play environments, commit. Confined to that thread.
     */
    private final class TurnLoop implements PromptSource.Moves {
        private static final Logger LOG = LoggerFactory.getLogger(TurnLoop.class);
        private static final Duration POLL = Duration.ofMillis(5);
        private static final long TURN_STREAM = 2;

        private final RunIdentity run;
        private final TurnEngine engine;
        private final int vocabSize;
        private final PromptSource prompts;
        private final QuarantineWatch quarantine;
        private final FinishedRollouts finished;
        /** With the turn that each waits for; none where its environment is to be asked again. */
        private final Map<RunningSequence, Optional<CompletableFuture<SampledTurn>>> playing = new LinkedHashMap<>();

        private boolean leaving;
        private long servedVersion = -1;
        private long servedSinceMs;
        private long lastHeartbeat;

        TurnLoop(TurnEngine engine, int vocabSize, PromptCheck check, Quarantines quarantines) {
            this.run = role.connection().run();
            this.engine = engine;
            this.vocabSize = vocabSize;
            this.prompts = new PromptSource(role.connection(), config, check, this);
            this.quarantine = new QuarantineWatch(config.id(), "generator", quarantines, prompts);
            this.finished = new FinishedRollouts(config, role.meters(), role.writer(), prompts);
        }

        /** Its prompts; the creator of the loop closes them. */
        PromptSource prompts() {
            return prompts;
        }

        /** Continues until it is stopped, then finishes what is under way. */
        void run(BooleanSupplier stopped) {
            while (!stopped.getAsBoolean()) {
                engine.requireAlive();
                quarantine.look();
                read();
                begin();
                play();
                finished.takeJudged();
                commitIfDue();
            }
            drain();
        }

        private void read() {
            long from = System.nanoTime();
            prompts.poll(POLL);
            if (playing.isEmpty() && finished.unjudged() == 0) {
                role.meters().idle(System.nanoTime() - from);
            }
        }

        private void begin() {
            while (playing.size() < config.slots()
                    && !prompts.isEmpty()
                    && finished.haveRoom()
                    && engine.version() >= 0) {
                advance(prompts.next(vocabSize, clock.millis()));
            }
        }

        private void ask(RunningSequence sequence) {
            playing.put(sequence, Optional.of(engine.sample(order(sequence), TurnEngine.TokenListener.NONE)));
        }

        private TurnOrder order(RunningSequence sequence) {
            PromptRequest request = sequence.prompt().request();
            SamplingParameters sampling = request.getSampling();
            int[] known = new int[sequence.known()];
            for (int i = 0; i < known.length; i++) {
                known[i] = sequence.sequenceToken(i);
            }
            int end = sequence.prompt().environment().endToken();
            return new TurnOrder(
                    known,
                    SamplingParameters.newBuilder(sampling)
                            .setMaxTokens(sequence.limit() - known.length)
                            .setSeed(CounterBasedRandom.stream(
                                    CounterBasedRandom.stream(
                                            sampling.getSeed(), request.getOrdinal(), sequence.sampleIndex()),
                                    TURN_STREAM,
                                    sequence.length())) // or a turn that follows would draw as the one before it did
                            .build(),
                    end >= 0 ? List.of(end) : stopTokens,
                    sequence.prompt().environment().stopTexts(),
                    request.getAdmittedVersion());
        }

        private void play() {
            for (Map.Entry<RunningSequence, Optional<CompletableFuture<SampledTurn>>> each :
                    List.copyOf(playing.entrySet())) {
                RunningSequence sequence = each.getKey();
                if (each.getValue().isEmpty()) {
                    sequence.stepEnvironment();
                    advance(sequence);
                } else if (each.getValue().get().isDone()) {
                    take(sequence, each.getValue().get());
                }
            }
        }

        private void take(RunningSequence sequence, CompletableFuture<SampledTurn> answer) {
            SampledTurn turn;
            try {
                turn = answer.join();
            } catch (CompletionException | CancellationException e) { // the engine has said why; nothing of it is kept
                engine.requireAlive();
                LOG.debug("retries a turn of {}: {}", sequence.rolloutId(), e.getMessage());
                ask(sequence);
                return;
            }
            int span = 0;
            for (int i = 0; i < turn.tokens().length; i++) {
                while (turn.spans().get(span).getEnd() <= i) {
                    span++;
                }
                VersionSpan of = turn.spans().get(span);
                if (!sequence.sampled(
                        turn.tokens()[i],
                        turn.logProbs().sampled()[i],
                        turn.logProbs().sampled()[i],
                        of.getVersion())) {
                    break; // what the engine sampled behind does not belong to it any more
                }
            }
            advance(sequence);
        }

        private void advance(RunningSequence sequence) {
            if (sequence.finishReason() != null) {
                playing.remove(sequence);
                finished.add(new Finished(
                        sequence, clock.millis(), new Sampler(run.policyId(), null, null, engine.identity())));
            } else if (sequence.waits()) {
                playing.put(sequence, Optional.empty());
            } else {
                ask(sequence);
            }
        }

        private boolean nothingToSample() {
            return playing.isEmpty() && prompts.isEmpty();
        }

        private void commitIfDue() {
            boolean isNew = engine.version() != servedVersion;
            boolean isHeartbeatDue =
                    Pulse.needsServing(SamplingLoop.monotonicMs() - lastHeartbeat, config.heartbeatMs(), isNew);
            if (finished.areDue(isHeartbeatDue, nothingToSample())) {
                finished.commit(isHeartbeatDue || isNew ? serving() : null);
            }
        }

        private @Nullable Serving serving() {
            lastHeartbeat = SamplingLoop.monotonicMs();
            long version = engine.version();
            if (version < 0) {
                return null;
            }
            if (version != servedVersion) {
                role.meters().serving(version, servedVersion >= 0);
                servedVersion = version;
                servedSinceMs = clock.millis();
            }
            return new Serving(
                    run.runId(),
                    run.epoch(),
                    config.id(),
                    ServerRole.GENERATOR,
                    run.policyId(),
                    version,
                    servedSinceMs,
                    clock.millis(),
                    engine.sampledTokens(),
                    oldestInFlight(),
                    leaving,
                    engine.identity(),
                    List.of(),
                    null);
        }

        /** A rollout that moves from here to the log does so in the transaction that no longer names it here. */
        private @Nullable Long oldestInFlight() {
            long oldest = Long.MAX_VALUE;
            for (RunningSequence sequence : playing.keySet()) {
                OptionalLong its = sequence.spans().oldest();
                oldest = Math.min(oldest, its.orElse(Long.MAX_VALUE));
            }
            oldest = Math.min(oldest, finished.oldestUnjudged().orElse(Long.MAX_VALUE));
            oldest = Math.min(oldest, engine.oldestVersion().orElse(Long.MAX_VALUE));
            return oldest == Long.MAX_VALUE ? null : oldest;
        }

        private void drain() {
            prompts.dropNotBegun();
            long deadline = SamplingLoop.monotonicMs() + config.drainMs();
            while (isUnfinished() && SamplingLoop.monotonicMs() < deadline) {
                engine.requireAlive();
                begin();
                play();
                finished.takeJudged();
                commitIfDue();
                SamplingLoop.awaitEnvironments();
            }
            if (isUnfinished()) {
                LOG.info(
                        "generator {} cancels {} rollouts in flight after {} ms (drain_ms); they will be resampled",
                        config.id(),
                        playing.size() + finished.unjudged(),
                        config.drainMs());
            }
            finished.settle();
            drop(Set.copyOf(playing.keySet())); // the next owner of its prompts samples the rest again
            finished.cancelUnscored();
            leaving = true;
            finished.write(serving());
        }

        private boolean isUnfinished() {
            return !nothingToSample() || finished.unjudged() > 0;
        }

        private void drop(Set<RunningSequence> sequences) {
            for (RunningSequence sequence : sequences) {
                sequence.abandon();
                Optional<CompletableFuture<SampledTurn>> asked = playing.remove(sequence);
                if (asked != null) {
                    asked.ifPresent(answer -> answer.cancel(true));
                }
            }
        }

        @Override
        public void beforeMove() {
            finished.write(null);
        }

        @Override
        public void moved(Set<TopicPartition> partitions) {
            finished.settle(); // or what it puts back could belong to somebody else by then
            Set<RunningSequence> gone = new HashSet<>();
            playing.keySet().stream()
                    .filter(sequence -> partitions.contains(sequence.prompt().partition()))
                    .forEach(gone::add);
            drop(gone);
            finished.revoke(partitions);
        }
    }
}
