package dev.millrace.learner;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.fail;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.corrections.algorithm.Algorithm;
import dev.millrace.corrections.algorithm.Mode;
import dev.millrace.learner.repair.FirstVersion;
import dev.millrace.learner.step.DecayConfig;
import dev.millrace.learner.step.LoraConfig;
import dev.millrace.learner.step.OptimizerConfig;
import dev.millrace.learner.step.StepConfig;
import dev.millrace.log.Alarm;
import dev.millrace.log.LogConnection;
import dev.millrace.log.deadletter.DeadLetterHeaders;
import dev.millrace.log.transaction.TakenOverException;
import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.decoder.LoraShape;
import dev.millrace.policy.decoder.TensorSpec;
import dev.millrace.policy.session.Engine;
import dev.millrace.policy.weights.Dtype;
import dev.millrace.policy.weights.Weights;
import dev.millrace.schemas.AdapterBase;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.TrainingStep;
import dev.millrace.weights.BrokenVersionPolicy;
import dev.millrace.weights.PolicyFeed;
import dev.millrace.weights.VersionHash;
import dev.millrace.weights.WeightsConfig;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.nio.charset.StandardCharsets;
import java.time.Clock;
import java.time.Duration;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import java.util.stream.LongStream;
import org.apache.kafka.clients.admin.AbortTransactionSpec;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ProducerState;
import org.apache.kafka.common.TopicPartition;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.RegisterExtension;

@Timeout(900)
class LearnerIT {
    private static final long LIMIT_SECONDS = 300;

    @RegisterExtension
    private static final LearnerRuns RUNS = LearnerRuns.undisturbedOver(5);

    private final MeterRegistry registry = new SimpleMeterRegistry();
    private SyntheticLog log;

    @BeforeEach
    void takeLog() {
        log = RUNS.log();
    }

    @Test
    void shouldMakeOneVersionOfEveryBatchAndCommitItsOffset() {
        log.produce(4, 6);

        Learner learner = learner(log, 4, registry, VersionCommitter.Producers.kafka());
        learner.run();

        List<PolicyVersion> versions = log.versions();
        assertThat(versions).extracting(PolicyVersion::getVersion).containsExactly(0L, 1L, 2L, 3L, 4L);
        assertThat(versions).extracting(PolicyVersion::getParentVersion).containsExactly(-1L, 0L, 1L, 2L, 3L);
        assertThat(versions).extracting(PolicyVersion::getBatchId).containsExactly(-1L, 0L, 1L, 2L, 3L);
        assertThat(versions).extracting(PolicyVersion::getRolloutsConsumed).containsExactly(0L, 6L, 12L, 18L, 24L);
        assertThat(versions).extracting(PolicyVersion::getOptimizerSteps).containsExactly(0L, 1L, 2L, 3L, 4L);
        assertThat(new HashSet<>(log.hashes()))
                .as("every version has weights of its own")
                .hasSize(5);
        assertThat(log.committedOffset()).isEqualTo(4);

        List<TrainingStep> steps = log.steps();
        assertThat(steps).extracting(TrainingStep::getVersion).containsExactly(1L, 2L, 3L, 4L);
        assertThat(steps)
                .extracting(TrainingStep::getWeightsSha256)
                .isEqualTo(log.hashes().subList(1, 5));
        assertThat(steps).allSatisfy(step -> {
            assertThat(step.getRolloutsTrained()).isEqualTo(4);
            assertThat(step.getRolloutsMasked()).isEqualTo(2);
            assertThat(step.getRewardMean()).isBetween(0.0, 1.0);
            assertThat(step.getMetrics())
                    .containsKeys(
                            "loss",
                            "grad_norm",
                            "grad_clipped",
                            "entropy",
                            "approx_kl_behavior",
                            "approx_kl_proximal",
                            "seconds_idle",
                            "seconds_fetch",
                            "seconds_gradient",
                            "seconds_optimizer",
                            "seconds_previous_commit",
                            "stage.m2po.tokens_changed",
                            "stage.m2po.threshold");
            assertThat(step.getStarved()).isFalse();
        });
        assertThat(steps.get(1).getLearningRate())
                .as("step scale 0.9 of batch 1")
                .isCloseTo(1e-2 * 0.9, within(1e-15));
        long tokens = steps.stream().mapToLong(TrainingStep::getTokensTrained).sum();
        assertThat(versions.get(4).getTokensTrained()).isEqualTo(tokens);
        assertThat(registry.get("millrace.learner.tokens").counter().count()).isEqualTo(tokens);
        assertThat(registry.get("millrace.learner.steps").counter().count()).isEqualTo(4);
        assertThat(registry.get("millrace.policy.version")
                        .tag("role", "learner")
                        .gauge()
                        .value())
                .isEqualTo(4);
        learner.close();
        assertThat(registry.find("millrace.policy.version").gauge()).isNull();
    }

    @Test
    void shouldMakeTheSameWeightsOfTheSameBatches() {
        log.produce(5, 6);

        run(5);

        assertThat(log.hashes()).isEqualTo(RUNS.undisturbed());
    }

    @Test
    void shouldMakeTheSameWeightsWhenStoppedAndStartedAfterEveryStep() {
        log.produce(5, 6);

        for (int steps = 1; steps <= 5; steps++) {
            run(steps);
            assertThat(log.hashes()).hasSize(steps + 1);
            assertThat(log.committedOffset()).isEqualTo(steps);
        }

        assertThat(log.hashes()).isEqualTo(RUNS.undisturbed());
    }

    /** The checkpoints are versions 0 and 3; the masters, which no version shows, go on with the moments. */
    @Test
    void shouldLearnAgainSinceTheLastCheckpointAndGoOnBitForBit() {
        produceWithOneStarved(log);
        for (int batches = 1; batches <= 6; batches++) {
            RunningLearner.killedWhenConsumed(log, batches, weights(Dtype.BF16, 3));
            assertThat(log.committedOffset()).isEqualTo(batches);
        }

        assertThat(log.versions())
                .extracting(version -> version.getOptimizer() != null)
                .containsExactly(false, false, false, true, false, false);
        assertThat(log.steps()).extracting(TrainingStep::getBatchId).containsExactly(0L, 1L, 2L, 3L, 4L, 5L);
        assertThat(log.deadLetters()).isEmpty();
        try (SyntheticLog quiet = new SyntheticLog(RUNS.bootstrapServers(), "undisturbedBfloat16.")) {
            produceWithOneStarved(quiet);
            RunningLearner.whenConsumed(quiet, 6, weights(Dtype.BF16, 1));
            assertThat(log.hashes()).isEqualTo(quiet.hashes()).doesNotHaveDuplicates();
        }
        assertThat(log.hashes()).doesNotContainAnyElementsOf(RUNS.undisturbed());
        assertThat(log.versions())
                .allSatisfy(version -> assertThat(PolicyFeed.dtypeOf(version)).isEqualTo(Dtype.BF16));
        assertThatThrownBy(() -> run(5))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage("the run's version 5 is of BF16, and weights.dtype is F32 here; give it the run's, or start"
                        + " another run");
    }

    /** The checkpoint is version 3; relearning before it begins with the seed's random adapter. */
    @Test
    void shouldMakeVersionsOfAdaptersAloneAndGoOnWithThemBitForBit() {
        produceWithOneStarved(log);
        LearnerConfig adapters = adapters(2);
        for (int batches : new int[] {2, 5, 6}) {
            RunningLearner.killedWhenConsumed(log, batches, adapters, weights(Dtype.BF16, 3));
        }

        List<PolicyVersion> versions = log.versions();
        assertThat(versions)
                .extracting(version -> version.getOptimizer() != null)
                .containsExactly(false, false, false, true, false, false);
        assertThat(versions)
                .extracting(version -> version.getWeights().getBaseVersion())
                .as("version 1 is the first adapter, and every third is whole")
                .containsExactly(null, null, 1L, 2L, null, 4L);
        assertThat(versions.get(0).getAdapter()).isNull();
        assertThat(versions.subList(1, 6)).allSatisfy(version -> {
            assertThat(version.getAdapter())
                    .isEqualTo(new AdapterBase(
                            2,
                            16.0,
                            LoraShape.MODULES,
                            0L,
                            versions.get(0).getWeights().getSha256()));
            assertThat(version.getWeights().getTensors()).hasSize(2 * 7 * SyntheticRollouts.SHAPE.layers());
        });
        try (SyntheticLog quiet = new SyntheticLog(RUNS.bootstrapServers(), "undisturbedAdapters.")) {
            produceWithOneStarved(quiet);
            RunningLearner.whenConsumed(quiet, 6, adapters, weights(Dtype.BF16, 1));
            assertThat(log.hashes()).isEqualTo(quiet.hashes()).doesNotHaveDuplicates();
        }
        requireSameMergedWeightsByEveryWay(versions);
        assertThatThrownBy(() -> RunningLearner.whenConsumed(log, 6, weights(Dtype.BF16, 3)))
                .hasMessage("the run's version 5 is an adapter of rank 2, alpha 16.0 to " + LoraShape.MODULES
                        + ", and learner.lora asks for the policy's own weights; give it the run's rank, alpha and"
                        + " target_modules, or start another run");
        assertThatThrownBy(() -> RunningLearner.whenConsumed(log, 6, adapters(1), weights(Dtype.BF16, 3)))
                .hasMessageContaining("learner.lora asks for an adapter of rank 1");
    }

    /** From the anchor, from the previous version, and from the start of a rolled-back epoch. */
    private void requireSameMergedWeightsByEveryWay(List<PolicyVersion> versions) {
        try (PolicyFeed feed = new PolicyFeed(log.connection(), weights(Dtype.BF16, 3))) {
            feed.awaitAtLeast(5, Duration.ofSeconds(LIMIT_SECONDS));
            Weights base = feed.load(0);
            assertThat(VersionHash.of(base))
                    .isEqualTo(versions.get(0).getWeights().getSha256());
            Weights before = base;
            for (int version = 1; version <= 5; version++) {
                Weights held = before;
                int last = version - 1;
                Weights next = feed.load(version, wanted -> wanted == last ? held : null);
                Weights alone = feed.load(version);
                assertThat(VersionHash.of(alone))
                        .isEqualTo(versions.get(version).getWeights().getSha256());
                assertThat(alone.adapter().orElseThrow().base())
                        .as("held once")
                        .isSameAs(next.adapter().orElseThrow().base());
                for (TensorSpec spec : SyntheticRollouts.SHAPE.tensors()) {
                    assertThat(next.tensor(spec.name())).isEqualTo(alone.tensor(spec.name()));
                }
                before = next;
            }
            FirstVersion first = FirstVersion.read(log.connection(), weights(Dtype.BF16, 3), 0, 3);
            assertThat(first.optimizer().steps()).isEqualTo(3);
            assertThat(VersionHash.of(first.weights()))
                    .isEqualTo(versions.get(3).getWeights().getSha256());
        }
    }

    private static LearnerConfig adapters(int rank) {
        LearnerConfig plain = config(0, 1e-4); // so small that deltas are worth while
        return new LearnerConfig(
                plain.step(),
                new LoraConfig(rank, 16, LoraShape.MODULES),
                0,
                plain.trajectoryTimeoutMs(),
                plain.keptTrajectoryBytes(),
                plain.idleReportMs());
    }

    private static void produceWithOneStarved(SyntheticLog log) {
        log.produce(2, 6);
        log.produce(List.of());
        log.produce(3, 6);
    }

    @Test
    void shouldNameTheVersionThatComesOutOtherwiseAndTheCheckpointToGoBackTo() {
        log.produce(3, 6);
        RunningLearner.killedWhenConsumed(log, 2, weights(Dtype.F32, 3));
        LearnerConfig other = config(0, 2e-2);

        try (RunningLearner learner = RunningLearner.start(log, other, weights(Dtype.F32, 3))) {
            Alarm alarm = learner.awaitAlarm("version-differs");

            assertThat(alarm.sentence())
                    .startsWith("batch 0, retrained from version 0, makes the weights ")
                    .contains(" and version 1 was made from batch 0 with the weights "
                            + RUNS.undisturbed().get(1) + ": another processor type")
                    .endsWith("or begin a new epoch at the newest checkpoint, version 0");
            assertThat(alarm.remedy()).isEqualTo(log.connection().command("rollback --to-version 0"));
        }
        assertThat(log.hashes()).isEqualTo(RUNS.undisturbed().subList(0, 3));
    }

    @Test
    void shouldGoOnUnderOtherSettingsFromWhereItWasStoppedInGoodOrder() {
        log.produce(5, 6);
        RunningLearner.whenConsumed(log, 2, weights(Dtype.F32, 50));

        List<PolicyVersion> published = log.versions();
        assertThat(published).extracting(PolicyVersion::getVersion).containsExactly(0L, 1L, 2L, 2L);
        PolicyVersion stopped = published.get(3);
        assertThat(stopped.getOptimizer()).as("once more, with the state").isNotNull();
        assertThat(PolicyVersion.newBuilder(stopped).setOptimizer(null).build()).isEqualTo(published.get(2));
        List<Long> times = log.times(log.connection().topics().policyVersions());
        assertThat(times.get(3)).as("the version's own time").isEqualTo(times.get(2));

        try (RunningLearner learner = RunningLearner.start(log, config(0, 2e-2), weights(Dtype.F32, 50))) {
            learner.awaitOffset(5);
            learner.awaitNoAlarm("version-differs");
        }
        assertThat(log.hashes().subList(0, 3)).isEqualTo(RUNS.undisturbed().subList(0, 3));
        assertThat(log.versions())
                .extracting(PolicyVersion::getVersion)
                .as("and again where that one was stopped")
                .containsExactly(0L, 1L, 2L, 2L, 3L, 4L, 5L, 5L);
        assertThat(log.steps()).extracting(TrainingStep::getBatchId).containsExactly(0L, 1L, 2L, 3L, 4L);
    }

    @Test
    void shouldWriteTheOptimizersStateWithTheVersionThatEndsTheRun() {
        log.produce(3, 6);
        run(log, 2, new SimpleMeterRegistry(), VersionCommitter.Producers.kafka(), weights(Dtype.F32, 50));
        run(log, 3, new SimpleMeterRegistry(), VersionCommitter.Producers.kafka(), weights(Dtype.F32, 50));

        assertThat(log.versions())
                .extracting(version -> version.getOptimizer() != null)
                .containsExactly(false, false, true, true);
        assertThat(log.hashes()).isEqualTo(RUNS.undisturbed().subList(0, 4));
    }

    /**
     * Kills after every producer call of a step, once before and once after the broker receives it; the optimizer's
     * state goes with every third version.
     */
    @Test
    void shouldMakeTheSameWeightsWhenKilledBetweenAnyTwoCalls() {
        log.produce(5, 6);
        Set<String> lastCalls = new HashSet<>();
        int call = 0;
        boolean done = false;
        while (!done) {
            for (boolean heard : new boolean[] {false, true}) {
                KilledProducer producer = new KilledProducer(call, heard);
                try {
                    run(log, 5, new SimpleMeterRegistry(), producer, weights(Dtype.F32, 3));
                    done = true; // the run was complete before this call
                } catch (KilledProducer.Killed e) {
                    lastCalls.add(producer.calls().get(call) + (heard ? " heard" : ""));
                }
            }
            call++;
        }

        assertThat(log.hashes()).isEqualTo(RUNS.undisturbed());
        assertThat(log.steps()).extracting(TrainingStep::getBatchId).containsExactly(0L, 1L, 2L, 3L, 4L);
        assertThat(log.committedOffset()).isEqualTo(5);
        assertThat(lastCalls)
                .contains(
                        "initTransactions",
                        "initTransactions heard",
                        "beginTransaction",
                        "send",
                        "send heard",
                        "sendOffsetsToTransaction",
                        "sendOffsetsToTransaction heard",
                        "commitTransaction",
                        "commitTransaction heard");
    }

    @Test
    void shouldMakeTheSameWeightsWhereTheBrokerGivesTransactionsUpOrDoesNotAnswerACommit() {
        log.produce(5, 6);
        try (Admin admin = Admin.create(log.connection().admin())) {
            // commit 1 takes the id over, 2 is version 0
            DisturbedCommits commits = new DisturbedCommits(
                    Set.of(3, 5),
                    Set.of(6, 7),
                    () -> fence(admin, log.connection().scoped("learner")));
            run(log, 5, registry, commits);
            assertThat(commits.count()).isEqualTo(1 + 6 + 2);
        }
        assertThat(log.hashes()).isEqualTo(RUNS.undisturbed());
        assertThat(log.steps()).extracting(TrainingStep::getBatchId).containsExactly(0L, 1L, 2L, 3L, 4L);
        assertThat(log.committedOffset()).isEqualTo(5);
        assertThat(log.connection().alarms().active()).isEmpty();
    }

    @Test
    void shouldComputeAStepWhileTheTransactionOfTheOneBeforeIsBeingEnded() {
        log.produce(2, 6);
        Thread learner = Thread.currentThread();
        DisturbedCommits commits = new DisturbedCommits(
                Set.of(3), // version 1
                Set.of(),
                () -> await(() -> Arrays.stream(learner.getStackTrace())
                        .map(StackTraceElement::getMethodName)
                        .toList()
                        .containsAll(List.of("settle", "step"))));
        run(log, 2, registry, commits);
        assertThat(log.hashes()).isEqualTo(RUNS.undisturbed().subList(0, 3));
    }

    @Test
    void shouldMakeTheSameWeightsWhereAnAdministratorAbortsAnOpenTransactionBehindWhichOthersCome() {
        assertTheSameWhereAborted(4);
    }

    @Test
    void shouldMakeTheSameWeightsWhereAnAdministratorAbortsTheLastOpenTransaction() {
        assertTheSameWhereAborted(7);
    }

    /** @param commit 1 takes the id over, 2 is version 0, 7 is version 5 */
    private void assertTheSameWhereAborted(int commit) {
        log.produce(5, 6);
        try (Admin admin = Admin.create(log.connection().admin())) {
            run(
                    log,
                    5,
                    registry,
                    new DisturbedCommits(Set.of(commit), Set.of(), () -> abortOpen(admin, log.connection())));
        }
        assertThat(log.chain()).isEqualTo(RUNS.undisturbed());
        assertThat(log.steps()).extracting(TrainingStep::getBatchId).containsExactlyInAnyOrder(0L, 1L, 2L, 3L, 4L);
        assertThat(log.committedOffset()).isEqualTo(5);
        assertThat(log.connection().alarms().active()).isEmpty();
    }

    /**
     * Aborts like an administrator who believes that the transaction hangs: writes a marker to each partition without
     * notifying the writer.
     */
    private static void abortOpen(Admin admin, LogConnection connection) {
        try {
            List<TopicPartition> partitions =
                    admin.describeTopics(connection.topics().required()).allTopicNames().get().values().stream()
                            .flatMap(topic -> topic.partitions().stream()
                                    .map(partition -> new TopicPartition(topic.name(), partition.partition())))
                            .toList();
            for (var open : admin.describeProducers(partitions).all().get().entrySet()) {
                for (ProducerState state : open.getValue().activeProducers()) {
                    if (state.currentTransactionStartOffset().isPresent()) {
                        admin.abortTransaction(new AbortTransactionSpec(
                                        open.getKey(),
                                        state.producerId(),
                                        (short) state.producerEpoch(),
                                        state.coordinatorEpoch().orElse(-1)))
                                .all()
                                .get();
                    }
                }
            }
        } catch (ExecutionException | InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    /** As the broker does it with a transaction that is open for too long. */
    private static void fence(Admin admin, String transactionalId) {
        try {
            admin.fenceProducers(List.of(transactionalId)).all().get();
        } catch (ExecutionException | InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    @Test
    void shouldStopTheOlderOfTwoLearnersAndLetTheNewerGoOn() throws Exception {
        log.produce(1, 6);
        Learner older = learner(log, 0, new SimpleMeterRegistry(), VersionCommitter.Producers.kafka());
        CompletableFuture<Void> olderEnd = CompletableFuture.runAsync(older::run);
        await(() -> log.versions().size() == 2);

        Learner newer = learner(log, 0, registry, VersionCommitter.Producers.kafka());
        CompletableFuture<Void> newerEnd = CompletableFuture.runAsync(newer::run);
        await(() -> registry.get("millrace.policy.version").gauge().value() == 1);
        log.produce(1, 6);

        assertThatThrownBy(() -> olderEnd.get(LIMIT_SECONDS, TimeUnit.SECONDS))
                .cause()
                .isInstanceOf(TakenOverException.class)
                .hasMessageStartingWith(log.connection().scoped("learner") + ": fenced by ");
        await(() -> log.versions().size() == 3);
        newer.stop();
        newerEnd.get(LIMIT_SECONDS, TimeUnit.SECONDS);
        older.close();
        newer.close();
        assertThat(log.versions()).extracting(PolicyVersion::getVersion).containsExactly(0L, 1L, 2L);
        assertThat(log.committedOffset()).isEqualTo(2);
    }

    @Test
    void shouldStopWhileItWaitsAndGoOnLater() throws Exception {
        Learner waiting = learner(log, 0, registry, VersionCommitter.Producers.kafka());
        CompletableFuture<Void> end = CompletableFuture.runAsync(waiting::run);
        await(() -> registry.find("millrace.learner.idle.seconds").counter().count() > 0);
        waiting.stop();
        end.get(LIMIT_SECONDS, TimeUnit.SECONDS);
        waiting.close();
        assertThat(log.hashes()).isEqualTo(RUNS.undisturbed().subList(0, 1));
        assertThat(log.committedOffset()).isEqualTo(-1);

        log.produce(5, 6);
        run(5);
        assertThat(log.hashes()).isEqualTo(RUNS.undisturbed());
    }

    @Test
    void shouldConsumeABatchWithNothingToTrainOnAndMakeNoVersionOfIt() {
        log.produce(1, 6);
        log.produce(List.of());
        log.produce(1, 6);

        run(2);

        assertThat(log.hashes()).hasSize(3).doesNotHaveDuplicates();
        assertThat(log.versions()).extracting(PolicyVersion::getOptimizerSteps).containsExactly(0L, 1L, 2L);
        assertThat(log.versions()).extracting(PolicyVersion::getBatchId).containsExactly(-1L, 0L, 2L);
        assertThat(log.versions())
                .extracting(PolicyVersion::getRolloutsConsumed)
                .containsExactly(0L, 6L, 12L);
        assertThat(log.steps()).extracting(TrainingStep::getVersion).containsExactly(1L, 1L, 2L);
        assertThat(log.steps()).extracting(TrainingStep::getRolloutsConsumed).containsExactly(6L, 6L, 12L);
        TrainingStep starved = log.steps().get(1);
        assertThat(starved.getStarved()).isTrue();
        assertThat(starved.getTokensTrained()).isZero();
        assertThat(starved.getEssRatio()).isNull();
        assertThat(starved.getSecondMoment()).isNull();
        assertThat(starved.getStalenessMean()).isNull();
        assertThat(starved.getStalenessMax()).isNull();
        assertThat(starved.getWeightsSha256()).isEqualTo(log.hashes().get(1));
        assertThat(log.committedOffset()).isEqualTo(3);
    }

    @Test
    void shouldGoOnAmongStarvedBatchesAfterARestart() {
        int starved = 100;
        log.produce(1, 6);
        for (int i = 0; i < starved; i++) {
            log.produce(List.of());
        }
        log.produce(1, 6);
        try (Learner stopped = learner(log, 2, new SimpleMeterRegistry(), VersionCommitter.Producers.kafka())) {
            stopped.observe(step -> {
                if (step.batchId() == starved / 2) {
                    stopped.stop();
                }
            });
            stopped.run();
        }
        assertThat(log.committedOffset()).isEqualTo(starved / 2 + 1);
        assertThat(log.hashes()).hasSize(2);

        run(2);

        assertThat(log.hashes()).hasSize(3);
        assertThat(log.steps())
                .extracting(TrainingStep::getBatchId)
                .containsExactlyElementsOf(
                        LongStream.rangeClosed(0, starved + 1).boxed().toList());
        assertThat(log.steps().get(starved + 1).getRolloutsConsumed()).isEqualTo(12);
    }

    @Test
    void shouldSendRefusedBatchesToTheDeadLettersOnce() {
        byte[] garbage = "no batch".getBytes(StandardCharsets.UTF_8);
        log.produceBatchGarbage(garbage);
        log.produce(1, 6);
        try {
            run(log, 1, new SimpleMeterRegistry(), new KilledProducer(12, false)); // after version 0, within version 1
            fail("was to be killed");
        } catch (KilledProducer.Killed e) {
            assertThat(log.versions()).hasSize(1);
            assertThat(log.deadLetters()).isEmpty();
        }

        run(1);

        assertThat(log.deadLetters()).singleElement().satisfies(letter -> {
            assertThat(letter.value()).isEqualTo(garbage);
            assertThat(header(letter.headers()
                            .lastHeader(DeadLetterHeaders.REASON)
                            .value()))
                    .isEqualTo("unreadable");
            assertThat(header(letter.headers()
                            .lastHeader(DeadLetterHeaders.SOURCE_OFFSET)
                            .value()))
                    .isEqualTo("0");
        });
        assertThat(log.committedOffset()).isEqualTo(2);
    }

    @Test
    void shouldRefuseToGoOnWithAnotherShapeOrVocabulary() {
        log.produce(1, 6);
        run(1);
        DecoderShape s = SyntheticRollouts.SHAPE;
        DecoderShape wider = new DecoderShape(9, 8, 1, 2, 1, 4, 16, 24, 100, 1e-6, false, false);

        assertThatThrownBy(() -> run(InitialPolicy.random(wider, SyntheticRollouts.TOKENIZER_HASH, 5)))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageStartingWith("the run's version 1 is of the shape {")
                .hasMessageEndingWith("give it the run's shape, or start another run");
        assertThatThrownBy(() -> run(InitialPolicy.random(s, "other", 5)))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageStartingWith(
                        "the run's version 1 has the vocabulary vocabulary, this learner is configured for other");
    }

    private static void run(
            SyntheticLog log,
            int maxSteps,
            MeterRegistry registry,
            VersionCommitter.Producers producers,
            WeightsConfig weights) {
        try (Learner learner = learner(log, maxSteps, registry, producers, weights)) {
            learner.run();
        }
    }

    private void run(int maxSteps) {
        run(log, maxSteps, registry, VersionCommitter.Producers.kafka());
    }

    private static void run(
            SyntheticLog log, int maxSteps, MeterRegistry registry, VersionCommitter.Producers producers) {
        try (Learner learner = learner(log, maxSteps, registry, producers)) {
            learner.run();
        }
    }

    private void run(InitialPolicy initial) {
        try (Learner learner = new Learner(
                new LearnerContext(
                        log.connection(), config(5), weights(), initial, new SimpleMeterRegistry(), Clock.systemUTC()),
                Algorithm.defaults().with(a -> a.mode(Mode.RECORDED)),
                Engine.cpu())) {
            learner.run();
        }
    }

    private static Learner learner(
            SyntheticLog log, int maxSteps, MeterRegistry registry, VersionCommitter.Producers producers) {
        return learner(log, maxSteps, registry, producers, weights());
    }

    private static Learner learner(
            SyntheticLog log,
            int maxSteps,
            MeterRegistry registry,
            VersionCommitter.Producers producers,
            WeightsConfig weights) {
        return new Learner(
                new LearnerContext(
                        log.connection(),
                        config(maxSteps),
                        weights,
                        InitialPolicy.random(
                                SyntheticRollouts.SHAPE, SyntheticRollouts.TOKENIZER_HASH, SyntheticRollouts.SEED),
                        registry,
                        Clock.systemUTC(),
                        producers),
                Algorithm.defaults().with(a -> a.mode(Mode.RECORDED)),
                Engine.cpu());
    }

    static LearnerConfig config(int maxSteps) {
        return config(maxSteps, 1e-2);
    }

    private static LearnerConfig config(int maxSteps, double learningRate) {
        OptimizerConfig optimizer =
                new OptimizerConfig(learningRate, 0, new DecayConfig.Constant(), 0.9, 0.999, 1e-8, 0, 1);
        StepConfig step = StepConfig.defaults().withOptimizer(optimizer).withCut(256, 2);
        return new LearnerConfig(step, LoraConfig.off(), maxSteps, 1_500, 4_000, 30_000);
    }

    /** Chunks larger than every tensor: one send per tensor. */
    static WeightsConfig weights() {
        return weights(Dtype.F32, 1);
    }

    static WeightsConfig weights(Dtype dtype, int checkpointEvery) {
        return new WeightsConfig(
                "kafka",
                "",
                dtype,
                3,
                checkpointEvery,
                0,
                30_000,
                BrokenVersionPolicy.STOP,
                1 << 12,
                100,
                10_000,
                10_000);
    }

    private static String header(byte[] value) {
        return new String(value, StandardCharsets.UTF_8);
    }

    private static void await(BooleanSupplier condition) {
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(LIMIT_SECONDS);
        while (!condition.getAsBoolean()) {
            assertThat(System.nanoTime()).as("waited for %s s", LIMIT_SECONDS).isLessThan(deadline);
            LockSupport.parkNanos(5_000_000);
        }
    }
}
