package dev.millrace.generator.sampling;

import dev.millrace.generator.sampling.RolloutWriter.Finished;
import dev.millrace.generator.sampling.RolloutWriter.Work;
import dev.millrace.log.LogConnection;
import dev.millrace.log.quarantine.Quarantines;
import dev.millrace.policy.decoder.Precision;
import dev.millrace.policy.session.Engine;
import dev.millrace.schemas.EngineIdentity;
import dev.millrace.schemas.Quarantine;
import dev.millrace.schemas.ServerRole;
import dev.millrace.schemas.Serving;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.weights.NewestWeights;
import java.time.Clock;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Set;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import java.util.stream.LongStream;
import org.apache.kafka.common.TopicPartition;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * What the sampling thread does, over and over: read prompts, take up weights, fill batcher, advance, commit.
 *
 * <p>Owned by that thread, with everything in it.
 */
final class SamplingLoop implements PromptSource.Moves {
    private static final Logger LOG = LoggerFactory.getLogger(SamplingLoop.class);
    private static final Duration IDLE_WAIT = Duration.ofMillis(100);
    private static final Duration VERSION_POLL = Duration.ofMillis(2);
    private static final long ENVIRONMENT_POLL_NANOS = 500_000;
    private static final long POLL_INTERVAL_MS = 2;
    private static final int MAX_UNCOMMITTED_FILLINGS = 4;
    private static final int MAX_UNJUDGED_FILLINGS = 4;

    private final RunIdentity run;
    private final GeneratorConfig config;
    private final GeneratorMeters meters;
    private final Clock clock;
    private final RolloutWriter writer;
    private final EngineIdentity engine;
    private final SlotPool batcher;
    private final int vocabSize;
    private final PromptSource prompts;
    private final Quarantines quarantines;
    private boolean inQuarantine;
    private final List<Finished> judging = new ArrayList<>(); // over, and whoever rewards them has not answered yet
    private List<Finished> finished = new ArrayList<>();
    private final ResidentVersions versions;
    private long servingSinceMs;
    private boolean leaving;
    private long totalTokens;
    private long totalForced;
    private long totalCopied;
    private boolean heldBack; // prompts wait for weights: those that admission knew, or those that are to be taken up
    private final VersionWait versionWait;
    private long lastPoll;
    private long lastCommit;
    private long lastHeartbeat;
    private boolean heartbeatIsDue = true;

    SamplingLoop(
            LogConnection connection,
            GeneratorConfig config,
            GeneratorMeters meters,
            Clock clock,
            RolloutWriter writer,
            NewestWeights weights,
            SlotPool batcher,
            int vocabSize,
            PromptCheck check,
            Quarantines quarantines) {
        this.quarantines = quarantines;
        this.run = connection.run();
        this.config = config;
        this.meters = meters;
        this.clock = clock;
        this.writer = writer;
        this.versions = new ResidentVersions(weights, config.weightUpdate(), batcher, meters);
        this.engine = identity(config.precision());
        this.batcher = batcher;
        this.vocabSize = vocabSize;
        this.versionWait = new VersionWait(config);
        this.prompts = new PromptSource(connection, config, check, this);
    }

    static EngineIdentity identity(Precision precision) {
        return new EngineIdentity(
                "onnxruntime",
                Engine.runtimeVersion(),
                precision == Precision.BF16 ? "bfloat16" : "float32",
                precision == Precision.INT8 ? "int8" : null);
    }

    /** Its prompts; whoever made the loop closes them. */
    PromptSource prompts() {
        return prompts;
    }

    /** Goes on until it is stopped, then finishes what is in flight. */
    void run(BooleanSupplier stopped) {
        while (!stopped.getAsBoolean()) {
            standAsideInQuarantine();
            readPrompts();
            takeUpNewestWeights();
            fillSlots();
            advance();
            takeJudged();
            commitIfDue();
        }
        drain();
    }

    /** For durations and deadlines, which must not depend on what somebody does to the clock; what is written down is dated by the clock. */
    static long monotonicMs() {
        return System.nanoTime() / 1_000_000;
    }

    private void readPrompts() {
        long now = monotonicMs();
        if (batcher.active() == 0 && (heldBack || prompts.isEmpty())) {
            long from = System.nanoTime();
            prompts.poll(
                    heldBack
                            ? VERSION_POLL
                            : finished.isEmpty() && judging.isEmpty()
                                    ? IDLE_WAIT
                                    : Duration.ofMillis(config.commitIntervalMs()));
            meters.idle(System.nanoTime() - from);
        } else if (now - lastPoll >= POLL_INTERVAL_MS) {
            lastPoll = now;
            prompts.poll(Duration.ZERO);
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

    private boolean nothingToSample() {
        return batcher.active() == 0 && prompts.isEmpty();
    }

    private void takeUpNewestWeights() {
        if (versions.takeUp(prompts.hasBegunGroup())) {
            servingSinceMs = clock.millis();
            heartbeatIsDue = true; // what is served has changed: say so with the next commit
        }
    }

    private void fillSlots() {
        while (batcher.hasRoom()
                && !prompts.isEmpty()
                && versions.mayBegin(prompts.hasBegunGroup())
                && judging.size() < MAX_UNJUDGED_FILLINGS * config.slots()
                && (prompts.hasBegunGroup()
                        || versionWait.mayBegin(prompts.nextAdmittedVersion(), versions.version()))) {
            versions.begin(prompts.next(vocabSize, clock.millis()));
        }
        heldBack = batcher.hasRoom() && !prompts.isEmpty();
    }

    private void advance() {
        if (batcher.active() == 0) {
            return;
        }
        boolean hadOlder = versions.olderVersion().isPresent();
        if (!versions.advance(this::finish)) {
            long from = System.nanoTime();
            awaitEnvironments();
            meters.idle(System.nanoTime() - from);
        }
        heartbeatIsDue |= hadOlder && versions.olderVersion().isEmpty();
        meters.tokens(
                batcher.sampledTokens() - totalTokens,
                batcher.forcedTokens() - totalForced,
                batcher.copiedTokens() - totalCopied);
        totalCopied = batcher.copiedTokens();
        totalTokens = batcher.sampledTokens();
        totalForced = batcher.forcedTokens();
    }

    /** A moment in which every sequence waits for its environment. */
    static void awaitEnvironments() {
        LockSupport.parkNanos(ENVIRONMENT_POLL_NANOS);
    }

    private void finish(RunningSequence sequence) {
        sequence.judge();
        judging.add(new Finished(sequence, clock.millis()));
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

    private void commitIfDue() {
        long now = monotonicMs();
        boolean heartbeat = heartbeatIsDue || now - lastHeartbeat >= config.heartbeatMs();
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
        lastCommit = monotonicMs();
        Serving record = null;
        if (heartbeat && versions.version() >= 0) {
            lastHeartbeat = lastCommit;
            heartbeatIsDue = false;
            record = new Serving(
                    run.runId(),
                    run.epoch(),
                    config.id(),
                    ServerRole.GENERATOR,
                    run.policyId(),
                    versions.version(),
                    servingSinceMs,
                    clock.millis(),
                    totalTokens,
                    // a rollout that moves to the log does so in the transaction that no longer names its version here
                    orNull(oldestInFlight()),
                    leaving,
                    engine,
                    List.of(),
                    orNull(versions.olderVersion()));
        }
        List<Finished> rollouts = finished;
        finished = new ArrayList<>();
        List<RefusedPrompt> refused = prompts.takeRefused();
        writer.submit(new Work(
                rollouts,
                refused,
                record,
                prompts.takeOffsets(partitionsOf(rollouts, refused), writer.nextMark()),
                prompts.groupMetadata()));
    }

    /** Their offsets go along even where they stay as they are: by them it is found out whether the rest is committed. */
    private static Set<TopicPartition> partitionsOf(List<Finished> rollouts, List<RefusedPrompt> refused) {
        Set<TopicPartition> partitions = new HashSet<>();
        rollouts.forEach(rollout -> partitions.add(rollout.sequence().prompt().partition()));
        refused.forEach(prompt -> partitions.add(
                new TopicPartition(prompt.record().topic(), prompt.record().partition())));
        return partitions;
    }

    private OptionalLong oldestInFlight() {
        return LongStream.concat(
                        versions.oldestInFlight().stream(),
                        judging.stream().flatMapToLong(over -> over.sequence().spans().oldest().stream()))
                .min();
    }

    static @Nullable Long orNull(OptionalLong version) {
        return version.isPresent() ? version.getAsLong() : null;
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
        versions.stay();
        long deadline = monotonicMs() + config.drainMs();
        while (isUnfinished() && monotonicMs() < deadline) {
            fillSlots();
            advance();
            takeJudged();
            if (batcher.active() == 0 && !judging.isEmpty()) {
                awaitEnvironments();
            }
            commitIfDue();
        }
        if (isUnfinished()) {
            LOG.info(
                    "generator {} gives up {} rollouts in flight after {} ms (drain_ms); they will be sampled again",
                    config.id(),
                    batcher.active() + judging.size(),
                    config.drainMs());
        }
        settle();
        batcher.dropAll(); // what is left is sampled again by whoever takes its prompts
        judging.forEach(over -> over.sequence().abandon());
        judging.clear();
        leaving = true;
        commit(true);
        settle();
    }

    private boolean isUnfinished() {
        return batcher.active() > 0 || !prompts.isEmpty() || !judging.isEmpty();
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
        batcher.revoke(partitions);
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
