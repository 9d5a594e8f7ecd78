package dev.millrace.generator.staleness;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.api.environment.Prompt;
import dev.millrace.api.environment.Task;
import dev.millrace.generator.environment.Symbols;
import dev.millrace.generator.environment.answer.IncPrompts;
import dev.millrace.generator.run.RunningRole;
import dev.millrace.generator.run.TestRun;
import dev.millrace.infra.broker.EmbeddedBroker;
import dev.millrace.schemas.LogCoordinates;
import dev.millrace.schemas.Outcome;
import dev.millrace.schemas.PromptRequest;
import dev.millrace.schemas.packed.PackedInts;
import dev.millrace.weights.VersionUnavailableException;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Clock;
import java.util.List;
import java.util.stream.LongStream;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInfo;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Batches of 8 samples in groups of 4. */
@Timeout(120)
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
            run.publish(1, 8);
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
            List<PromptRequest> first = assertReleased(2);
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
            assertReleased(4);
            deadLetter(prompts, "", run.bytes(PromptRequest.class, prompts, first.get(0)));
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
            rewardedAlike("0-0");
            assertReleased(6);
            rewardedAlike("0-5"); // 17 samples without a new version: more than two batches of 8
            assertThat(role.awaitEnd())
                    .hasMessageContaining("17 samples left because their groups were rewarded alike")
                    .hasMessageContaining("zero_variance_limit_batches");
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
            run.publish(1, 8);
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
                run.publish(version, 8L * version);
                assertReleased(2 + 2 * version);
            }
            assertThat(one.awaitEnd())
                    .isInstanceOf(IllegalStateException.class)
                    .hasMessageContaining("another admission of the run has taken over");
            two.stop();
        }
    }

    @Test
    void shouldFailWhenEverythingIsDeadLettered() {
        run.publish(0, 0);
        try (StalenessController admission = admission(0, new SimpleMeterRegistry())) {
            RunningRole role = new RunningRole("admission", admission::run, admission::stop);
            for (int group = 0; group < 5; group++) { // more than two batches of two groups
                for (int sample = 0; sample < 4; sample++) {
                    deadLetter(run.connection().topics().rollouts(), "0-" + group + "/" + sample, new byte[] {1});
                }
            }
            assertThat(role.awaitEnd())
                    .isInstanceOf(IllegalStateException.class)
                    .hasMessageContaining("17 samples were dead-lettered while no new policy version appeared")
                    .hasMessageContaining("dead_letter_limit_batches")
                    .hasMessageContaining("a test wants it so");
        }
    }

    @Test
    void shouldSayThatThereIsNoPolicyWhenNoneAppears() {
        StalenessControllerConfig config =
                new StalenessControllerConfig(0, 8, 4, 5, SamplingConfig.defaults(), 300, 2, 1, 8);
        try (StalenessController admission = new StalenessController(
                run.connection(), run.feed(), TASK, config, new SimpleMeterRegistry(), Clock.systemUTC())) {
            RunningRole role = new RunningRole("admission", admission::run, admission::stop);
            assertThat(role.awaitEnd())
                    .isInstanceOf(VersionUnavailableException.class)
                    .hasMessageContaining("300 ms");
        }
    }

    private StalenessController admission(int eta, MeterRegistry meters) {
        return new StalenessController(
                run.connection(),
                run.feed(),
                TASK,
                new StalenessControllerConfig(eta, 8, 4, 5, SamplingConfig.defaults(), 20_000, 2, 1, 2),
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
        run.write(topic, group, run.bytes(Outcome.class, topic, outcome));
    }

    private void deadLetter(String source, String rolloutId, byte[] value) {
        run.write(
                run.connection().topics().deadLetters(),
                "key",
                value,
                "millrace.error.reason",
                "test",
                "millrace.error.message",
                "a test wants it so",
                "millrace.error.source.topic",
                source,
                "millrace.error.run-id",
                run.connection().run().runId(),
                "millrace.error.epoch",
                Integer.toString(run.connection().run().epoch()),
                "millrace.error.rollout-id",
                rolloutId);
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
