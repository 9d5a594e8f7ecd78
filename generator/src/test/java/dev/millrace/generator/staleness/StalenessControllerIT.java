package dev.millrace.generator.staleness;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.api.environment.Prompt;
import dev.millrace.api.environment.Task;
import dev.millrace.generator.environment.IncPrompts;
import dev.millrace.generator.environment.Symbols;
import dev.millrace.generator.run.Awaited;
import dev.millrace.generator.run.RunningRole;
import dev.millrace.generator.run.TestRun;
import dev.millrace.infra.broker.EmbeddedBroker;
import dev.millrace.log.Alarm;
import dev.millrace.log.deadletter.Quarantines;
import dev.millrace.log.transaction.TakenOverException;
import dev.millrace.schemas.Admission;
import dev.millrace.schemas.BatchEntry;
import dev.millrace.schemas.FinishReason;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.LogCoordinates;
import dev.millrace.schemas.LogProbDistribution;
import dev.millrace.schemas.Outcome;
import dev.millrace.schemas.PromptRequest;
import dev.millrace.schemas.Quarantine;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.SamplingParameters;
import dev.millrace.schemas.packed.PackedFloats;
import dev.millrace.schemas.packed.PackedInts;
import dev.millrace.schemas.packed.PackedMask;
import dev.millrace.weights.VersionUnavailableException;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Clock;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.LongStream;
import java.util.stream.Stream;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInfo;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;

/** Batches of 8 samples in groups of 4. */
@Execution(ExecutionMode.CONCURRENT)
@Timeout(900)
class StalenessControllerIT {
    private static final Task TASK = IncPrompts.defaults().task();

    @TempDir
    private static Path directory;

    private static EmbeddedBroker broker;

    private TestRun run;
    private String prompts;

    @BeforeAll
    static void startBroker() {
        broker = EmbeddedBroker.start(directory);
    }

    @AfterAll
    static void stopBroker() {
        broker.close();
    }

    @BeforeEach
    void openRun(TestInfo test) {
        run = new TestRun(broker, test.getTestMethod().orElseThrow().getName());
        prompts = run.connection().topics().prompts();
    }

    @AfterEach
    void closeRun() {
        run.close();
    }

    @Test
    void shouldReleaseInOrderAsMuchAsEtaAllowsAndMoreWithEveryVersion() {
        run.publish(0, 0);
        MeterRegistry meters = new SimpleMeterRegistry();
        try (StalenessController admission = admission(1, meters)) {
            RunningRole role = new RunningRole("admission", admission::run, admission::stop);
            assertReleased(4); // two batches of two groups
            trained(1, "0-0", "0-1");
            List<PromptRequest> released = assertReleased(6);
            role.stop();

            PromptRequest first = released.get(0);
            Prompt expected = TASK.prompts().prompt(5, 0);
            assertThat(first.getGroupId()).isEqualTo("0-0");
            assertThat(PackedInts.toArray(first.getPromptTokens())).isEqualTo(expected.tokens());
            assertThat(first.getEnvironmentState()).isEqualTo(expected.environmentState());
            assertThat(first.getEnvironment()).isEqualTo("fixed-answer");
            assertThat(first.getSamples()).isEqualTo(4);
            assertThat(first.getSampling().getMaxTokens()).isEqualTo(5); // what the task can use
            assertThat(first.getTokenizerHash()).isEqualTo(Symbols.tokenizer().hash());
            assertThat(first.getAdmittedVersion()).isZero();
            assertThat(released.get(5).getAdmittedVersion()).isEqualTo(1);
        }
        assertThat(meters.get("millrace.admission.released.samples").gauge().value())
                .isEqualTo(24);
        assertThat(meters.get("millrace.admission.settled.samples").gauge().value())
                .isEqualTo(8);
    }

    @Test
    void shouldReplaceWhatWasLostAndNothingElse() {
        run.publish(0, 0);
        MeterRegistry meters = new SimpleMeterRegistry();
        try (StalenessController admission = admission(0, meters)) {
            RunningRole role = new RunningRole("admission", admission::run, admission::stop);
            assertReleased(2);
            outcome("0-0/0", "duplicate"); // the original is still under way
            outcome("0-0/0", "orphan-score");
            foreignDeadLetter();
            for (int sample = 0; sample < 4; sample++) {
                outcome("0-0/" + sample, "zero-variance");
            }
            assertReleased(3);
            deadLetter(run.connection().topics().rollouts(), "0-1/0", new byte[] {1});
            outcome("0-1/1", "group-short");
            outcome("0-1/2", "group-short");
            outcome("0-1/3", "group-short");
            List<PromptRequest> released = assertReleased(4);
            deadLetter(prompts, "0-2", "", run.bytes(PromptRequest.class, prompts, released.get(2)));
            assertReleased(5);
            role.stop();
        }
        assertThat(meters.get("millrace.admission.lost.samples").gauge().value())
                .isEqualTo(12);
    }

    @Test
    void shouldReleaseAPromptOnceMoreThatWasRewardedAlikeButNotForEver() {
        run.publish(0, 0);
        MeterRegistry meters = new SimpleMeterRegistry();
        try (StalenessController admission = admission(0, meters)) {
            RunningRole role = new RunningRole("admission", admission::run, admission::stop);
            assertReleased(2);
            rewardedAlike("0-1");
            PromptRequest again = assertReleased(3).get(2);
            assertThat(again.getGroupId()).isEqualTo("0-2-again-1-1");
            assertThat(again.getOrdinal()).isEqualTo(2);
            assertThat(again.getEnvironmentState())
                    .isEqualTo(TASK.prompts().prompt(5, 1).environmentState());
            rewardedAlike("0-2-again-1-1");
            PromptRequest next = assertReleased(4).get(3);
            assertThat(next.getGroupId()).isEqualTo("0-3");
            assertThat(next.getEnvironmentState())
                    .isEqualTo(TASK.prompts().prompt(5, 3).environmentState());
            assertThat(meters.get("millrace.admission.resampled").counter().count())
                    .isEqualTo(1);
            rewardedAlike("0-3");
            assertReleased(5);
            rewardedAlike("0-0");
            assertReleased(6);
            rewardedAlike("0-5-again-0-1"); // 17 samples without a new version: more than two batches of 8
            assertThat(role.awaitEnd())
                    .hasMessageContaining("17 samples were dropped because their groups had equal rewards")
                    .hasMessageContaining("zero_variance_limit_batches");
        }
    }

    @Test
    void shouldReleaseHardPromptsOnceMoreWhenTheirBatchIsConsumedAndOnlyThen() {
        run.publish(0, 0);
        try (StalenessController admission = admission(1, new SimpleMeterRegistry())) {
            RunningRole role = new RunningRole("admission", admission::run, admission::stop);
            assertReleased(4);
            batched(1, 0.25, "0-0", "0-1");
            outcomesOf("0-2", "stale");
            List<PromptRequest> requests = assertReleased(5);
            assertThat(requests.get(4).getGroupId())
                    .as("batch 0 waits for its step")
                    .isEqualTo("0-4");
            role.stop();
        }
        MeterRegistry meters = new SimpleMeterRegistry();
        try (StalenessController admission = admission(1, meters)) {
            RunningRole role = new RunningRole("admission", admission::run, admission::stop);
            run.publish(1, 8);
            assertThat(assertReleased(7))
                    .extracting(PromptRequest::getGroupId)
                    .endsWith("0-5-again-0-1", "0-6-again-1-1");
            assertThat(meters.get("millrace.admission.resampled").counter().count())
                    .isEqualTo(2);
            batched(2, 0.25, "0-5-again-0-1", "0-3");
            run.publish(2, 16);
            assertThat(assertReleased(9))
                    .as("one retry a prompt")
                    .extracting(PromptRequest::getGroupId)
                    .endsWith("0-7-again-3-1", "0-8");
            role.stop();
        }
    }

    @Test
    void shouldReleaseNoPromptForNegativeRewardsWhereThatIsOff() {
        run.publish(0, 0);
        MeterRegistry meters = new SimpleMeterRegistry();
        try (StalenessController admission = admission(1, meters, 0, 0)) {
            RunningRole role = new RunningRole("admission", admission::run, admission::stop);
            assertReleased(4);
            batched(1, -1, "0-0", "0-1");
            run.publish(1, 8);
            assertThat(assertReleased(6)).extracting(PromptRequest::getGroupId).endsWith("0-4", "0-5");
            assertThat(meters.get("millrace.admission.resampled").counter().count())
                    .isZero();
            role.stop();
        }
    }

    private void rewardedAlike(String groupId) {
        outcome(groupId + "/0", "resample");
        for (int sample = 1; sample < 4; sample++) {
            outcome(groupId + "/" + sample, "zero-variance");
        }
    }

    @Test
    void shouldGoOnAfterARestartWithoutReleasingAnythingTwice() {
        run.publish(0, 0);
        try (StalenessController admission = admission(0, new SimpleMeterRegistry())) {
            RunningRole role = new RunningRole("admission", admission::run, admission::stop);
            assertReleased(2);
            outcome("0-0/0", "stale");
            outcome("0-0/1", "stale");
            outcome("0-0/2", "stale");
            outcome("0-0/3", "stale");
            assertReleased(3); // these losses are now part of the committed state
            role.stop();
        }
        outcome("0-1/0", "stale"); // these come while it is down
        outcome("0-1/1", "stale");
        outcome("0-1/2", "stale");
        outcome("0-1/3", "stale");
        MeterRegistry meters = new SimpleMeterRegistry();
        try (StalenessController admission = admission(0, meters)) {
            RunningRole role = new RunningRole("admission", admission::run, admission::stop);
            assertReleased(4);
            trained(1, "0-2", "0-3");
            assertReleased(6);
            role.stop();
        }
        assertThat(meters.get("millrace.admission.lost.samples").gauge().value())
                .isEqualTo(8);
        assertThat(meters.get("millrace.admission.released.samples").gauge().value())
                .isEqualTo(24);
    }

    @Test
    void shouldGiveWayToASecondAdmissionOfTheRun() {
        run.publish(0, 0);
        try (StalenessController first = admission(0, new SimpleMeterRegistry());
                StalenessController second = admission(0, new SimpleMeterRegistry())) {
            RunningRole one = new RunningRole("first", first::run, first::stop);
            assertReleased(2);
            RunningRole two = new RunningRole("second", second::run, second::stop);
            for (int version = 1; !one.hasEnded(); version++) { // it notices at its next release
                trained(version, "0-" + (2 * version - 2), "0-" + (2 * version - 1));
                assertReleased(2 + 2 * version);
            }
            assertThat(one.awaitEnd())
                    .isInstanceOf(TakenOverException.class)
                    .hasMessageContaining("admission-0: fenced by");
            two.stop();
        }
    }

    @Test
    void shouldHoldBackWhileEverythingIsRefusedAndGoOnWithTheNextVersion() {
        run.publish(0, 0);
        MeterRegistry meters = new SimpleMeterRegistry();
        try (StalenessController admission = admission(0, meters)) {
            RunningRole role = new RunningRole("admission", admission::run, admission::stop);
            for (int group = 0; group < 5; group++) { // more than two batches of two groups
                assertReleased(group + 2);
                if (group % 2 == 0) {
                    refused("0-" + group);
                } else {
                    for (int sample = 0; sample < 4; sample++) {
                        outcome("0-" + group + "/" + sample, "stage-failed");
                    }
                }
            }
            awaitGauge(meters, "lost.samples", 20);
            trained(1, "0-5");
            List<PromptRequest> released = assertReleased(8);
            role.stop();
            assertThat(released.get(5).getAdmittedVersion()).isZero();
            assertThat(released.get(6).getAdmittedVersion())
                    .as("held back since the 17th sample that was refused or failed")
                    .isEqualTo(1);
        }
    }

    @Test
    void shouldSettleOnlyWhatItReleasedAndOnlyOnce() {
        run.publish(0, 0);
        MeterRegistry meters = new SimpleMeterRegistry();
        try (StalenessController admission = admission(0, meters)) {
            RunningRole role = new RunningRole("admission", admission::run, admission::stop);
            assertReleased(2);
            forge();
            outcomesOf("0-0", "stale");
            assertReleased(3);
            outcomesOf("0-0", "stale"); // copies
            refused("0-0");
            outcomesOf("0-1", "stale");
            assertReleased(4);
            awaitUnknown(meters, 512 + 3_000 + 600 + 8);
            role.stop();
        }
        assertThat(gauge(meters, "lost.samples")).isEqualTo(8);
        assertThat(gauge(meters, "under.way.samples")).isEqualTo(8);
        assertReleased(4);

        MeterRegistry restarted = new SimpleMeterRegistry();
        try (StalenessController admission = admission(0, restarted)) {
            RunningRole role = new RunningRole("admission", admission::run, admission::stop);
            forge();
            trained(1, "0-2", "0-3");
            assertReleased(6);
            role.stop();
        }
        assertThat(gauge(restarted, "lost.samples")).isEqualTo(8);
        assertThat(gauge(restarted, "settled.samples")).isEqualTo(16);
        assertThat(gauge(restarted, "under.way.samples")).isEqualTo(8);
        assertThat(gauge(restarted, "released.samples")).isEqualTo(24);
    }

    @Test
    void shouldPutAGeneratorIntoQuarantineAndReleaseItsSamplesElsewhereUntilSomebodyLiftsIt() {
        run.publish(0, 0);
        byte[] rollout = rolloutOf("sick");
        MeterRegistry meters = new SimpleMeterRegistry();
        try (StalenessController admission = admission(0, meters)) {
            RunningRole role = new RunningRole("admission", admission::run, admission::stop);
            assertReleased(2);
            for (int i = 0; i < 64; i++) { // a burst with unreleased names
                refusedOf(rollout, "0-7000/" + i, "log-probs");
            }
            awaitGauge(meters, "quarantined.generators", 1);
            Quarantine quarantine = awaitQuarantine("sick");
            assertThat(quarantine.getWhy()).isEqualTo("refused-records");
            assertThat(quarantine.getSentence())
                    .isEqualTo("64 of its last 64 records were refused, 64 since the newest version, the last as"
                            + " log-probs: a test wants it so");
            Alarm alarm = awaitAlarm("quarantine");
            assertThat(alarm.subject()).isEqualTo("sick");
            assertThat(alarm.remedy()).startsWith("millrace quarantine lift sick --bootstrap-servers ");
            try (Quarantines soon = Quarantines.of(run.connection())) {
                soon.openSoon();
                Awaited.until("who reads of it sees it", () -> soon.of("sick").isPresent());
            }

            refusedOf(rollout, "0-1/2", "quarantined");
            refusedOf(rollout, "0-1/3", "quarantined"); // the second of the group releases nothing more
            List<ConsumerRecord<byte[], byte[]>> again = run.await(prompts, found -> found.size() >= 3);
            assertThat(again)
                    .filteredOn(record -> new String(record.key(), StandardCharsets.UTF_8).equals("0-1"))
                    .as("the same name, elsewhere")
                    .hasSize(2)
                    .extracting(ConsumerRecord::partition)
                    .doesNotHaveDuplicates();
            awaitGauge(meters, "released.again.samples", 4);
            role.stop();
        }
        assertThat(gauge(meters, "under.way.samples")).isEqualTo(8);
        assertThat(gauge(meters, "lost.samples")).isZero();
        run.connection().alarms().lower("quarantine", "sick"); // as a process that begins has none

        MeterRegistry restarted = new SimpleMeterRegistry();
        try (StalenessController admission = admission(0, restarted)) {
            RunningRole role = new RunningRole("admission", admission::run, admission::stop);
            awaitGauge(restarted, "quarantined.generators", 1);
            awaitAlarm("quarantine");
            assertThat(run.connection().alarms().active("quarantine")).isEqualTo(1);
            assertThat(Quarantines.lift(run.connection(), "sick")).isTrue();
            awaitGauge(restarted, "quarantined.generators", 0);
            awaitNoAlarm("quarantine");
            assertThat(Quarantines.lift(run.connection(), "sick")).isFalse();
            role.stop();
        }
        assertThat(gauge(restarted, "released.again.samples")).isEqualTo(4);
    }

    @Test
    void shouldReleaseAgainUnderItsNameWhatTheLogHasLostAndCountALateCopyOnce() {
        run.publish(0, 0);
        MeterRegistry meters = new SimpleMeterRegistry();
        try (StalenessController admission = admission(0, meters, 200, 0.5)) {
            RunningRole role = new RunningRole("admission", admission::run, admission::stop);
            List<ConsumerRecord<byte[], byte[]>> released = run.await(prompts, found -> found.size() >= 2);
            String rollouts = run.connection().topics().rollouts();
            try (KafkaProducer<byte[], byte[]> generator = run.transactional("some-generator")) {
                generator.beginTransaction();
                for (String rolloutId : List.of("0-0/1", "0-0/2", "0-1/0", "0-1/1", "0-1/2", "0-1/3")) {
                    String groupId = rolloutId.substring(0, 3);
                    generator.send(new ProducerRecord<>(
                            rollouts, groupId.getBytes(StandardCharsets.UTF_8), rolloutOf("g", rolloutId)));
                }
                generator.flush();
                run.write(rollouts, "0-0", null); // says nothing
                run.answered(released); // nothing is lost before it is known whether the rollouts are committed
                generator.commitTransaction();
            }
            ConsumerRecord<byte[], byte[]> elsewhere = awaitAgain(released, "0-0");
            PromptRequest again = run.decode(PromptRequest.class, elsewhere);
            assertThat(again.getSamples()).isEqualTo(4);
            assertThat(again.getOrdinal()).isZero();
            awaitGauge(meters, "released.again.samples", 4); // all that is under way of the request
            assertThat(meters.get("millrace.admission.lost.on.log").counter().count())
                    .isEqualTo(2);
            assertThat(run.connection().alarms().active("samples-lost")).isZero();

            List<ConsumerRecord<byte[], byte[]>> all = run.await(prompts, found -> found.size() >= 3);
            run.answered(all); // and is lost again
            awaitGauge(meters, "released.again.samples", 8);
            Alarm alarm = awaitAlarm("samples-lost");
            assertThat(alarm.subject()).isEqualTo(prompts + "-" + elsewhere.partition());
            assertThat(alarm.sentence())
                    .startsWith("samples of the request at offset ")
                    .contains("the log lost them again");
            assertThat(alarm.remedy()).startsWith("millrace repair --bootstrap-servers ");

            Alarm overdue = awaitAlarm("samples-overdue"); // of 0-1 all is there, and nothing comes of it
            assertThat(overdue.subject()).isEqualTo(rollouts);
            assertThat(overdue.sentence()).startsWith("1 group, such as 0-1, in flight for three times ");
            assertThat(overdue.remedy()).startsWith("millrace rollback --to-version 0 --bootstrap-servers ");

            outcome("0-0/3", "duplicate"); // of two that came after all
            trained(1, "0-0", "0-1");
            run.await(prompts, found -> found.size() >= 6);
            awaitNoAlarm("samples-lost");
            awaitNoAlarm("samples-overdue");
            role.stop();
        }
        assertThat(gauge(meters, "released.samples")).isEqualTo(16);
        assertThat(gauge(meters, "settled.samples")).isEqualTo(8);
        assertThat(gauge(meters, "under.way.samples")).isEqualTo(8);
    }

    @Test
    void shouldReleaseAgainARequestThatTheLogHasLost() {
        run.publish(0, 0);
        try (StalenessController admission = admission(0, new SimpleMeterRegistry())) {
            RunningRole role = new RunningRole("admission", admission::run, admission::stop);
            assertReleased(2);
            role.stop();
        }
        String table = run.connection().topics().admission();
        List<ConsumerRecord<byte[], byte[]>> released = run.await(prompts, found -> found.size() >= 2);
        AdmittedGroup beyond = new AdmittedGroup("0-0", 4, 0, 1);
        beyond.lies(released.get(0).partition(), 99);
        AdmittedGroup another = new AdmittedGroup("0-1", 4, 0, 1);
        ConsumerRecord<byte[], byte[]> firstOne = released.stream()
                .filter(record -> new String(record.key(), StandardCharsets.UTF_8).equals("0-0"))
                .findFirst()
                .orElseThrow();
        another.lies(firstOne.partition(), firstOne.offset()); // the offset now has another group's request
        for (AdmittedGroup group : List.of(beyond, another)) {
            Admission entry = new Admission(run.connection().run().runId(), 0, group.record(), null, null);
            run.write(table, group.groupId(), run.bytes(Admission.class, table, entry));
        }
        MeterRegistry meters = new SimpleMeterRegistry();
        try (StalenessController admission = admission(0, meters, 200, 0.5)) {
            RunningRole role = new RunningRole("admission", admission::run, admission::stop);
            awaitAgain(released, "0-0");
            awaitAgain(released, "0-1");
            awaitGauge(meters, "released.again.samples", 8);
            role.stop();
        }
        assertThat(gauge(meters, "released.samples")).isEqualTo(8);
        assertThat(gauge(meters, "under.way.samples")).isEqualTo(8);
    }

    /** The newest request of a group, which is not among those that were there before. */
    private ConsumerRecord<byte[], byte[]> awaitAgain(List<ConsumerRecord<byte[], byte[]>> before, String groupId) {
        return run
                .await(
                        prompts,
                        found -> again(found, before, groupId).findFirst().isPresent())
                .stream()
                .filter(record ->
                        again(List.of(record), before, groupId).findFirst().isPresent())
                .findFirst()
                .orElseThrow();
    }

    private static Stream<ConsumerRecord<byte[], byte[]>> again(
            List<ConsumerRecord<byte[], byte[]>> found, List<ConsumerRecord<byte[], byte[]>> before, String groupId) {
        return found.stream()
                .filter(record -> new String(record.key(), StandardCharsets.UTF_8).equals(groupId))
                .filter(record -> before.stream()
                        .noneMatch(
                                known -> known.partition() == record.partition() && known.offset() == record.offset()));
    }

    private Alarm awaitAlarm(String name) {
        Awaited.until("the alarm " + name, () -> active(name).isPresent());
        return active(name).orElseThrow();
    }

    private Optional<Alarm> active(String name) {
        return run.connection().alarms().active().stream()
                .filter(alarm -> alarm.name().equals(name))
                .findFirst();
    }

    private void awaitNoAlarm(String name) {
        Awaited.until("no alarm " + name, () -> run.connection().alarms().active(name) == 0);
    }

    private Quarantine awaitQuarantine(String generatorId) {
        return run
                .await(
                        run.connection().topics().admission(),
                        found -> found.stream()
                                .anyMatch(record -> new String(record.key(), StandardCharsets.UTF_8)
                                        .equals(Quarantines.key(generatorId))))
                .stream()
                .filter(record -> new String(record.key(), StandardCharsets.UTF_8).equals(Quarantines.key(generatorId)))
                .map(record -> run.decode(Admission.class, record).getQuarantine())
                .findFirst()
                .orElseThrow();
    }

    private byte[] rolloutOf(String generatorId) {
        return rolloutOf(generatorId, "0-7000/0");
    }

    private byte[] rolloutOf(String generatorId, String rolloutId) {
        String topic = run.connection().topics().rollouts();
        return run.bytes(
                Rollout.class,
                topic,
                Rollout.newBuilder()
                        .setRunId(run.connection().run().runId())
                        .setEpoch(0)
                        .setRolloutId(rolloutId)
                        .setGroupId(rolloutId.substring(0, rolloutId.indexOf('/')))
                        .setOrdinal(7000)
                        .setSampleIndex(0)
                        .setGroupSize(4)
                        .setGeneratorId(generatorId)
                        .setEnvironment("fixed-answer")
                        .setTokenizerHash("x")
                        .setPromptTokens(PackedInts.of(1))
                        .setResponseTokens(PackedInts.of(2))
                        .setMask(PackedMask.of((byte) 1))
                        .setBehaviorLogProbs(PackedFloats.of(Float.NaN))
                        .setLogProbDistribution(LogProbDistribution.RAW)
                        .setSampling(SamplingParameters.newBuilder()
                                .setTemperature(1)
                                .setTopK(0)
                                .setTopP(1)
                                .setMaxTokens(1)
                                .setSeed(1)
                                .build())
                        .setTurns(List.of())
                        .setVersionSpans(List.of())
                        .setReward(0)
                        .setFinishReason(FinishReason.STOP)
                        .setAdmittedVersion(0)
                        .setStartedAtMs(1)
                        .setFinishedAtMs(1)
                        .build());
    }

    /** Refuses a rollout like the topology, with the record count of its generator. */
    private void refusedOf(byte[] rollout, String rolloutId, String reason) {
        deadLetter(
                run.connection().topics().rollouts(),
                rolloutId.substring(0, rolloutId.indexOf('/')),
                rolloutId,
                rollout,
                reason,
                0,
                "millrace.error.sender.records",
                "1");
    }

    private static void awaitGauge(MeterRegistry meters, String name, double value) {
        Awaited.until(name + " is " + value, () -> gauge(meters, name) == value);
    }

    /** Records of a broken or hostile program; none is about a sample in flight. */
    private void forge() {
        String rollouts = run.connection().topics().rollouts();
        for (int i = 0; i < 512; i++) { // the samples are under way, the records lie where nothing of them belongs
            deadLetter(rollouts, "wrong-key", "0-" + i % 6 + "/" + i % 4, new byte[] {1}, "wrong-key", 0);
        }
        for (int i = 0; i < 3_000; i++) {
            outcome("0-" + (1_000 + i) + "/0", "stale");
        }
        for (int i = 0; i < 600; i++) {
            deadLetter(rollouts, "0-7000", "0-7000/" + i, new byte[] {1}, "log-probs", 0);
            deadLetter(rollouts, "0-1", "0-1/0", new byte[] {1}, "log-probs", 1); // of another epoch
        }
    }

    @Test
    void shouldReadBackWhatIsUnderWayFromTheTopicsWhereItsTableIsGone() {
        releaseSevenAndSettleThree();
        for (String key : List.of("0-0", "0-1", "0-2", "0-3", "0-4", "0-5", "0-6", "counts/0")) {
            run.write(run.connection().topics().admission(), key, null);
        }
        assertGoesOnWithFourUnderWay();
    }

    @Test
    void shouldReadBackWhatTheEndOfItsTableSaidWhereThatIsLost() {
        releaseSevenAndSettleThree();
        String table = run.connection().topics().admission();
        List<ConsumerRecord<byte[], byte[]>> written = run.await(table, found -> found.size() >= 10);
        for (String key : List.of("0-4", "0-5", "0-6")) {
            run.write(table, key, null);
        }
        for (ConsumerRecord<byte[], byte[]> record : written.subList(0, 5)) { // when four had been released
            run.write(table, new String(record.key(), StandardCharsets.UTF_8), record.value());
        }
        assertGoesOnWithFourUnderWay();
    }

    private void releaseSevenAndSettleThree() {
        run.publish(0, 0);
        try (StalenessController admission = admission(1, new SimpleMeterRegistry())) {
            RunningRole role = new RunningRole("admission", admission::run, admission::stop);
            assertReleased(4);
            trained(1, "0-0", "0-1");
            assertReleased(6);
            outcomesOf("0-2", "stale");
            assertReleased(7);
            role.stop();
        }
    }

    private void assertGoesOnWithFourUnderWay() {
        MeterRegistry meters = new SimpleMeterRegistry();
        try (StalenessController admission = admission(1, meters)) {
            RunningRole role = new RunningRole("admission", admission::run, admission::stop);
            outcomesOf("0-3", "stale");
            assertReleased(8);
            role.stop();
        }
        assertThat(gauge(meters, "released.samples")).isEqualTo(32);
        assertThat(gauge(meters, "settled.samples")).isEqualTo(16);
        assertThat(gauge(meters, "under.way.samples")).isEqualTo(16);
    }

    @Test
    void shouldKeepNothingOfGroupsThatAreSettled() {
        run.publish(0, 0);
        try (StalenessController admission = admission(0, new SimpleMeterRegistry())) {
            RunningRole role = new RunningRole("admission", admission::run, admission::stop);
            assertReleased(2);
            trained(1, "0-0", "0-1");
            assertReleased(4);
            role.stop();
        }
        Map<String, ConsumerRecord<byte[], byte[]>> kept = new HashMap<>();
        run.committed(run.connection().topics().admission())
                .forEach(record -> kept.put(new String(record.key(), StandardCharsets.UTF_8), record));
        assertThat(kept.keySet()).containsExactlyInAnyOrder("0-0", "0-1", "0-2", "0-3", "counts/0");
        assertThat(kept.get("0-0").value()).isNull();
        assertThat(kept.get("0-1").value()).isNull();
        Admission counts = run.decode(Admission.class, kept.get("counts/0"));
        assertThat(counts.getCounts().getNextOrdinal()).isEqualTo(4);
        assertThat(counts.getCounts().getConsumed()).isEqualTo(8);
        Admission group = run.decode(Admission.class, kept.get("0-3"));
        assertThat(PackedMask.toArray(group.getGroup().getUnderWay())).containsExactly(1, 1, 1, 1);
    }

    private static void awaitUnknown(MeterRegistry meters, int records) {
        Awaited.until(records + " unknown records", () -> gauge(meters, "unknown.records") >= records);
        assertThat(gauge(meters, "unknown.records")).isEqualTo(records);
    }

    private static double gauge(MeterRegistry meters, String name) {
        return meters.get("millrace.admission." + name).gauge().value();
    }

    @Test
    void shouldSayThatThereIsNoPolicyWhenNoneAppears() {
        StalenessControllerConfig config = new StalenessControllerConfig(
                0, 8, 4, 5, SamplingConfig.defaults(), 300, 2, 1, 0, 8, QuarantineConfig.defaults(), 0);
        try (StalenessController admission = new StalenessController(
                run.connection(), run.feed(), TASK, config, new SimpleMeterRegistry(), Clock.systemUTC())) {
            RunningRole role = new RunningRole("admission", admission::run, admission::stop);
            assertThat(role.awaitEnd())
                    .isInstanceOf(VersionUnavailableException.class)
                    .hasMessageContaining("300 ms");
        }
    }

    private StalenessController admission(int eta, MeterRegistry meters) {
        return admission(eta, meters, 0, 0.5);
    }

    private StalenessController admission(
            int eta, MeterRegistry meters, long releaseAgainAfterMs, double resampleBelow) {
        return new StalenessController(
                run.connection(),
                run.feed(),
                TASK,
                new StalenessControllerConfig(
                        eta,
                        8,
                        4,
                        5,
                        SamplingConfig.defaults(),
                        20_000,
                        2,
                        1,
                        resampleBelow,
                        2,
                        QuarantineConfig.defaults(),
                        releaseAgainAfterMs),
                meters,
                Clock.systemUTC());
    }

    /** Exactly the first {@code count} requests are on the topic, in order within their partitions. */
    private List<PromptRequest> assertReleased(int count) {
        List<ConsumerRecord<byte[], byte[]>> records = run.await(prompts, found -> found.size() >= count);
        List<PromptRequest> requests =
                records.stream().map(r -> run.decode(PromptRequest.class, r)).toList();
        assertThat(requests.stream().map(PromptRequest::getOrdinal))
                .containsExactlyInAnyOrderElementsOf(
                        LongStream.range(0, count).boxed().toList());
        records.stream()
                .map(ConsumerRecord::partition)
                .distinct()
                .forEach(partition -> assertThat(records.stream()
                                .filter(r -> r.partition() == partition)
                                .map(r -> run.decode(PromptRequest.class, r).getOrdinal()))
                        .isSorted());
        return requests.stream()
                .sorted((a, b) -> Long.compare(a.getOrdinal(), b.getOrdinal()))
                .toList();
    }

    /** A batch of these groups, and the version made of it. */
    private void trained(long version, String... groups) {
        batched(version, 1.0, groups);
        run.publish(version, 8L * version);
    }

    private void batched(long version, double reward, String... groups) {
        String topic = run.connection().topics().batches();
        List<BatchEntry> entries = new ArrayList<>();
        for (String group : groups) {
            for (int sample = 0; sample < 4; sample++) {
                entries.add(new BatchEntry(
                        group + "/" + sample, group, 0, 0L, 0, 0L, reward, 0.5, 0L, 3, null, null, null, null, null));
            }
        }
        LearnerBatch batch = LearnerBatch.newBuilder()
                .setRunId(run.connection().run().runId())
                .setEpoch(0)
                .setPolicyId("policy")
                .setBatchId(version - 1)
                .setAssembledVersion(version - 1)
                .setEntries(entries)
                .setStages(List.of())
                .setTrainedTokens(3L * entries.size())
                .setStepScale(1)
                .setStalenessMean(0)
                .setStalenessMax(0)
                .setAssembledAtMs(1)
                .build();
        run.write(topic, "policy", run.bytes(LearnerBatch.class, topic, batch));
    }

    private void outcomesOf(String group, String reason) {
        for (int sample = 0; sample < 4; sample++) {
            outcome(group + "/" + sample, reason);
        }
    }

    private void refused(String group) {
        for (int sample = 0; sample < 4; sample++) {
            deadLetter(run.connection().topics().rollouts(), group + "/" + sample, new byte[] {1});
        }
    }

    private void outcome(String rolloutId, String reason) {
        String topic = run.connection().topics().outcomes();
        String group = rolloutId.substring(0, rolloutId.indexOf('/'));
        Outcome outcome = new Outcome(
                run.connection().run().runId(),
                0,
                rolloutId,
                group,
                "groups",
                reason,
                "",
                0L,
                new LogCoordinates("rollouts", 0, 0L),
                1L);
        run.send(topic, group, run.bytes(Outcome.class, topic, outcome));
    }

    private void deadLetter(String source, String rolloutId, byte[] value) {
        deadLetter(source, "key", rolloutId, value);
    }

    private void deadLetter(String source, String key, String rolloutId, byte[] value) {
        deadLetter(source, key, rolloutId, value, "test", 0);
    }

    private void deadLetter(
            String source, String key, String rolloutId, byte[] value, String reason, int epoch, String... more) {
        List<String> headers = new ArrayList<>(List.of(
                "millrace.error.reason",
                reason,
                "millrace.error.message",
                "a test wants it so",
                "millrace.error.source.topic",
                source,
                "millrace.error.run-id",
                run.connection().run().runId(),
                "millrace.error.epoch",
                Integer.toString(epoch),
                "millrace.error.rollout-id",
                rolloutId));
        headers.addAll(List.of(more));
        run.send(run.connection().topics().deadLetters(), key, value, headers.toArray(String[]::new));
    }

    private void foreignDeadLetter() {
        run.write(
                run.connection().topics().deadLetters(),
                "key",
                "noise".getBytes(StandardCharsets.UTF_8),
                "millrace.error.source.topic",
                run.connection().topics().rollouts());
        run.write(run.connection().topics().outcomes(), "key", "noise".getBytes(StandardCharsets.UTF_8));
    }
}
