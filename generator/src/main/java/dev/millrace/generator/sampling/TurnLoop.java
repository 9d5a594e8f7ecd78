package dev.millrace.generator.sampling;

import dev.millrace.generator.random.CounterBasedRandom;
import dev.millrace.generator.sampling.RolloutWriter.Finished;
import dev.millrace.generator.sampling.RolloutWriter.Work;
import dev.millrace.log.LogConnection;
import dev.millrace.log.quarantine.Quarantines;
import dev.millrace.schemas.PromptRequest;
import dev.millrace.schemas.Quarantine;
import dev.millrace.schemas.Sampler;
import dev.millrace.schemas.SamplingParameters;
import dev.millrace.schemas.ServerRole;
import dev.millrace.schemas.Serving;
import dev.millrace.schemas.VersionSpan;
import dev.millrace.schemas.run.RunIdentity;
import java.time.Clock;
import java.time.Duration;
import java.util.ArrayList;
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
 * What the thread of a {@link TurnGenerator} does, over and over: read prompts, ask the engine, show the environments what it said,
 * commit.
 *
 * <p>Owned by that thread, with everything in it.
 */
final class TurnLoop implements PromptSource.Moves {
    private static final Logger LOG = LoggerFactory.getLogger(TurnLoop.class);
    private static final Duration POLL = Duration.ofMillis(5);
    private static final int MAX_UNCOMMITTED_FILLINGS = 4;
    private static final int MAX_UNJUDGED_FILLINGS = 4;
    private static final long TURN_STREAM = 2;

    private final RunIdentity run;
    private final GeneratorConfig config;
    private final GeneratorMeters meters;
    private final Clock clock;
    private final RolloutWriter writer;
    private final TurnEngine engine;
    private final List<Integer> stopTokens;
    private final int vocabSize;
    private final PromptSource prompts;
    private final Quarantines quarantines;
    /** With the turn that each waits for; none where its environment is to be asked again. */
    private final Map<RunningSequence, Optional<CompletableFuture<SampledTurn>>> playing = new LinkedHashMap<>();

    /** Over, and not rewarded yet. */
    private final List<Finished> judging = new ArrayList<>();

    private List<Finished> finished = new ArrayList<>();
    private boolean inQuarantine;
    private boolean leaving;
    private long servedVersion = -1;
    private long servedSinceMs;
    private long lastCommit;
    private long lastHeartbeat;

    TurnLoop(
            LogConnection connection,
            GeneratorConfig config,
            GeneratorMeters meters,
            Clock clock,
            RolloutWriter writer,
            TurnEngine engine,
            List<Integer> stopTokens,
            int vocabSize,
            PromptCheck check,
            Quarantines quarantines) {
        this.run = connection.run();
        this.config = config;
        this.meters = meters;
        this.clock = clock;
        this.writer = writer;
        this.engine = engine;
        this.stopTokens = stopTokens;
        this.vocabSize = vocabSize;
        this.quarantines = quarantines;
        this.prompts = new PromptSource(connection, config, check, this);
    }

    /** Its prompts; whoever made the loop closes them. */
    PromptSource prompts() {
        return prompts;
    }

    /** Goes on until it is stopped, then finishes what is under way. */
    void run(BooleanSupplier stopped) {
        while (!stopped.getAsBoolean()) {
            engine.requireAlive();
            standAsideInQuarantine();
            read();
            begin();
            play();
            takeJudged();
            commitIfDue();
        }
        drain();
    }

    private void read() {
        long from = System.nanoTime();
        prompts.poll(POLL);
        if (playing.isEmpty() && judging.isEmpty()) {
            meters.idle(System.nanoTime() - from);
        }
    }

    /** What it would sample would be refused: its prompts go to others, until somebody lifts the quarantine. */
    private void standAsideInQuarantine() {
        Optional<Quarantine> quarantine = quarantines.of(config.id());
        if (quarantine.isPresent() == inQuarantine) {
            return;
        }
        inQuarantine = quarantine.isPresent();
        if (inQuarantine) {
            LOG.warn(
                    "generator {} is in quarantine and leaves its prompts to others: {}",
                    config.id(),
                    quarantine.get().getSentence());
        } else {
            LOG.info("generator {} is in quarantine no longer and samples again", config.id());
        }
        prompts.stayAway(inQuarantine);
    }

    private void begin() {
        while (playing.size() < config.slots()
                && !prompts.isEmpty()
                && judging.size() < MAX_UNJUDGED_FILLINGS * config.slots()
                && engine.version() >= 0) {
            goOn(prompts.next(vocabSize, clock.millis()));
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
                goOn(sequence);
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
            LOG.debug("a turn of {} is asked for again: {}", sequence.rolloutId(), e.getMessage());
            ask(sequence);
            return;
        }
        int span = 0;
        for (int i = 0; i < turn.tokens().length; i++) {
            while (turn.spans().get(span).getEnd() <= i) {
                span++;
            }
            VersionSpan of = turn.spans().get(span);
            if (!sequence.sampled(turn.tokens()[i], turn.logProbs()[i], turn.logProbs()[i], of.getVersion())) {
                break; // what the engine sampled behind does not belong to it any more
            }
        }
        goOn(sequence);
    }

    private void goOn(RunningSequence sequence) {
        if (sequence.finishReason() != null) {
            playing.remove(sequence);
            sequence.judge();
            judging.add(
                    new Finished(sequence, clock.millis(), new Sampler(run.policyId(), null, null, engine.identity())));
        } else if (sequence.waits()) {
            playing.put(sequence, Optional.empty());
        } else {
            ask(sequence);
        }
    }

    /** Those that are rewarded, or never will be, can be committed. */
    private void takeJudged() {
        if (judging.isEmpty()) {
            return;
        }
        judging.removeIf(over -> {
            boolean isJudged = over.sequence().isJudged();
            if (isJudged) {
                finished.add(over);
                prompts.finished(over.sequence().prompt());
            }
            return isJudged;
        });
        meters.unjudged(judging.size());
    }

    private boolean nothingToSample() {
        return playing.isEmpty() && prompts.isEmpty();
    }

    private void commitIfDue() {
        long now = SamplingLoop.monotonicMs();
        boolean isNew = engine.version() != servedVersion;
        boolean heartbeat = isNew || now - lastHeartbeat >= config.heartbeatMs();
        boolean something = !finished.isEmpty() || prompts.hasRefused();
        if (finished.size() > MAX_UNCOMMITTED_FILLINGS * config.slots()) {
            settle(); // commits are slower than sampling: wait for one, so that memory stays bounded
        }
        boolean worthIt = nothingToSample() || now - lastCommit >= config.commitIntervalMs();
        if (!writer.isBusy() && (heartbeat || something && worthIt)) {
            settle();
            commit(heartbeat);
        }
    }

    private void commit(boolean heartbeat) {
        lastCommit = SamplingLoop.monotonicMs();
        List<Finished> rollouts = finished;
        finished = new ArrayList<>();
        List<RefusedPrompt> refused = prompts.takeRefused();
        Set<TopicPartition> partitions = new HashSet<>();
        rollouts.forEach(rollout -> partitions.add(rollout.sequence().prompt().partition()));
        refused.forEach(prompt -> partitions.add(
                new TopicPartition(prompt.record().topic(), prompt.record().partition())));
        writer.submit(new Work(
                rollouts,
                refused,
                heartbeat ? serving() : null,
                prompts.takeOffsets(partitions, writer.nextMark()),
                prompts.groupMetadata()));
    }

    private @Nullable Serving serving() {
        lastHeartbeat = lastCommit;
        long version = engine.version();
        if (version < 0) {
            return null;
        }
        if (version != servedVersion) {
            meters.serving(version, servedVersion >= 0);
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
        for (Finished over : judging) {
            oldest = Math.min(oldest, over.sequence().spans().oldest().orElse(Long.MAX_VALUE));
        }
        oldest = Math.min(oldest, engine.oldestVersion().orElse(Long.MAX_VALUE));
        return oldest == Long.MAX_VALUE ? null : oldest;
    }

    /** Ends the transaction under way; what the group did not take is to be committed again. */
    private void settle() {
        writer.await(prompts::isCommitted).ifPresent(notWritten -> {
            List<Finished> again = new ArrayList<>(notWritten.rollouts());
            again.addAll(finished);
            finished = again;
            prompts.requeue(notWritten.refused(), notWritten.offsets().keySet());
        });
    }

    private void drain() {
        prompts.dropNotBegun();
        long deadline = SamplingLoop.monotonicMs() + config.drainMs();
        while (isUnfinished() && SamplingLoop.monotonicMs() < deadline) {
            engine.requireAlive();
            begin();
            play();
            takeJudged();
            commitIfDue();
            SamplingLoop.awaitEnvironments();
        }
        if (isUnfinished()) {
            LOG.info(
                    "generator {} gives up {} rollouts under way after {} ms (drain_ms); they will be sampled again",
                    config.id(),
                    playing.size() + judging.size(),
                    config.drainMs());
        }
        settle();
        drop(Set.copyOf(playing.keySet())); // what is left is sampled again by whoever takes its prompts
        judging.forEach(over -> over.sequence().abandon());
        judging.clear();
        leaving = true;
        commit(true);
        settle();
    }

    private boolean isUnfinished() {
        return !nothingToSample() || !judging.isEmpty();
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
        settle();
        commit(false);
        settle();
    }

    @Override
    public void moved(Set<TopicPartition> partitions) {
        settle(); // or what it puts back could belong to somebody else by then
        Set<RunningSequence> gone = new HashSet<>();
        playing.keySet().stream()
                .filter(sequence -> partitions.contains(sequence.prompt().partition()))
                .forEach(gone::add);
        drop(gone);
        finished.removeIf(f -> partitions.contains(f.sequence().prompt().partition()));
        judging.removeIf(over -> {
            boolean isGone = partitions.contains(over.sequence().prompt().partition());
            if (isGone) {
                over.sequence().abandon();
            }
            return isGone;
        });
    }
}
