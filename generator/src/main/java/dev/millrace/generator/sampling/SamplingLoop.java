package dev.millrace.generator.sampling;

import dev.millrace.generator.sampling.RolloutWriter.Finished;
import dev.millrace.log.Pulse;
import dev.millrace.log.deadletter.Quarantines;
import dev.millrace.policy.decoder.Precision;
import dev.millrace.policy.session.Engine;
import dev.millrace.schemas.EngineIdentity;
import dev.millrace.schemas.ServerRole;
import dev.millrace.schemas.Serving;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.weights.NewestWeights;
import java.time.Clock;
import java.time.Duration;
import java.util.List;
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
 * Loop of the sampling thread: read prompts, take up weights, fill slots, advance, commit. Confined to that thread.
 */
final class SamplingLoop implements PromptSource.Moves {
    private static final Logger LOG = LoggerFactory.getLogger(SamplingLoop.class);
    private static final Duration IDLE_WAIT = Duration.ofMillis(100);
    private static final Duration VERSION_POLL = Duration.ofMillis(2);
    private static final long ENVIRONMENT_POLL_NANOS = 500_000;
    private static final long POLL_INTERVAL_MS = 2;

    private final RunIdentity run;
    private final GeneratorConfig config;
    private final GeneratorMeters meters;
    private final Clock clock;
    private final EngineIdentity engine;
    private final SlotPool batcher;
    private final int vocabSize;
    private final PromptSource prompts;
    private final QuarantineWatch quarantine;
    private final FinishedRollouts finished;
    private final ResidentVersions versions;
    private long servingSinceMs;
    private boolean leaving;
    private long totalTokens;
    private long totalForced;
    private long totalCopied;
    private boolean heldBack; // prompts wait for weights: those that admission knew, or those that are to be taken up
    private final VersionWait versionWait;
    private long lastPoll;
    private long lastHeartbeat;
    private boolean hasNews = true;

    SamplingLoop(
            SamplingRole role,
            Clock clock,
            NewestWeights weights,
            SlotPool batcher,
            int vocabSize,
            PromptCheck check,
            Quarantines quarantines) {
        this.run = role.connection().run();
        this.config = role.config();
        this.meters = role.meters();
        this.clock = clock;
        this.versions = new ResidentVersions(weights, config.weightUpdate(), batcher, meters);
        this.engine = identity(config.precision());
        this.batcher = batcher;
        this.vocabSize = vocabSize;
        this.versionWait = new VersionWait(config);
        this.prompts = new PromptSource(role.connection(), config, check, this);
        this.quarantine = new QuarantineWatch(config.id(), "generator", quarantines, prompts);
        this.finished = new FinishedRollouts(config, meters, role.writer(), prompts);
    }

    static EngineIdentity identity(Precision precision) {
        return new EngineIdentity(
                "onnxruntime",
                Engine.runtimeVersion(),
                precision == Precision.BF16 ? "bfloat16" : "float32",
                precision == Precision.INT8 ? "int8" : null);
    }

    /** Its prompts; the creator of the loop closes them. */
    PromptSource prompts() {
        return prompts;
    }

    /** Continues until it is stopped, then finishes what is in flight. */
    void run(BooleanSupplier stopped) {
        while (!stopped.getAsBoolean()) {
            quarantine.look();
            readPrompts();
            takeUpNewestWeights();
            fillSlots();
            advance();
            finished.takeJudged();
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
                            : finished.isEmpty() ? IDLE_WAIT : Duration.ofMillis(config.commitIntervalMs()));
            meters.idle(System.nanoTime() - from);
        } else if (now - lastPoll >= POLL_INTERVAL_MS) {
            lastPoll = now;
            prompts.poll(Duration.ZERO);
        }
    }

    private boolean nothingToSample() {
        return batcher.active() == 0 && prompts.isEmpty();
    }

    private void takeUpNewestWeights() {
        if (versions.takeUp(prompts.hasBegunGroup())) {
            servingSinceMs = clock.millis();
            hasNews = true;
        }
    }

    private void fillSlots() {
        while (batcher.hasRoom()
                && !prompts.isEmpty()
                && versions.mayBegin(prompts.hasBegunGroup())
                && finished.haveRoom()
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
        hasNews |= hadOlder && versions.olderVersion().isEmpty();
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
        finished.add(new Finished(sequence, clock.millis()));
    }

    private void commitIfDue() {
        boolean isHeartbeatDue = Pulse.needsServing(monotonicMs() - lastHeartbeat, config.heartbeatMs(), hasNews);
        if (finished.areDue(isHeartbeatDue, nothingToSample())) {
            finished.commit(isHeartbeatDue || hasNews ? serving() : null);
        }
    }

    private @Nullable Serving serving() {
        if (versions.version() < 0) {
            return null;
        }
        lastHeartbeat = monotonicMs();
        hasNews = false;
        return new Serving(
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

    private OptionalLong oldestInFlight() {
        return LongStream.concat(versions.oldestInFlight().stream(), finished.oldestUnjudged().stream())
                .min();
    }

    static @Nullable Long orNull(OptionalLong version) {
        return version.isPresent() ? version.getAsLong() : null;
    }

    private void drain() {
        prompts.dropNotBegun();
        versions.stay();
        long deadline = monotonicMs() + config.drainMs();
        while (isUnfinished() && monotonicMs() < deadline) {
            fillSlots();
            advance();
            finished.takeJudged();
            if (batcher.active() == 0 && finished.unjudged() > 0) {
                awaitEnvironments();
            }
            commitIfDue();
        }
        if (isUnfinished()) {
            LOG.info(
                    "generator {} cancels {} rollouts in flight after {} ms (drain_ms); they will be resampled",
                    config.id(),
                    batcher.active() + finished.unjudged(),
                    config.drainMs());
        }
        finished.settle();
        batcher.dropAll(); // the next owner of its prompts samples the rest again
        finished.cancelUnscored();
        leaving = true;
        finished.write(serving());
    }

    private boolean isUnfinished() {
        return batcher.active() > 0 || !prompts.isEmpty() || finished.unjudged() > 0;
    }

    @Override
    public void beforeMove() {
        finished.write(null);
    }

    @Override
    public void moved(Set<TopicPartition> partitions) {
        finished.settle(); // or what it puts back could belong to somebody else by then
        batcher.revoke(partitions);
        finished.revoke(partitions);
    }
}
