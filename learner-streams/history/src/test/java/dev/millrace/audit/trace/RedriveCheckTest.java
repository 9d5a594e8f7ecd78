package dev.millrace.audit.trace;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.audit.trace.Redrive.RedriveCheck;
import dev.millrace.log.deadletter.DeadLetterHeaders;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.schemas.run.RunTopics;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.junit.jupiter.api.Test;

class RedriveCheckTest {
    private static final RunTopics TOPICS = new RunTopics("millrace.");
    private final RedriveCheck check = new RedriveCheck(
            new RunIdentity("run-1", 2, "policy"),
            TOPICS,
            Map.of(TOPICS.rollouts(), 4, TOPICS.scores(), 4, TOPICS.batches(), 1, TOPICS.policyVersions(), 1));

    private static DeadLetter letter(String topic, int partition, String reason, String runId) {
        return letter(topic, partition, reason, runId, 2);
    }

    private static DeadLetter letter(String topic, int partition, String reason, String runId, int epoch) {
        RecordHeaders headers = new RecordHeaders();
        Map.of(
                        DeadLetterHeaders.REASON,
                        reason,
                        DeadLetterHeaders.SOURCE_TOPIC,
                        topic,
                        DeadLetterHeaders.SOURCE_PARTITION,
                        "" + partition,
                        DeadLetterHeaders.SOURCE_OFFSET,
                        "12",
                        DeadLetterHeaders.RUN_ID,
                        runId,
                        DeadLetterHeaders.EPOCH,
                        "" + epoch)
                .forEach((name, value) -> headers.add(name, value.getBytes(StandardCharsets.UTF_8)));
        return new DeadLetter(0, 17, 1000, headers);
    }

    @Test
    void shouldTakeBackWhatCanBeMended() {
        assertThat(check.refusal(letter(TOPICS.rollouts(), 3, "reward", "run-1"), -1))
                .isEmpty();
        assertThat(check.refusal(letter(TOPICS.scores(), 0, "unreadable", ""), -1))
                .isEmpty();
    }

    @Test
    void shouldSayWhyNot() {
        assertThat(check.refusal(letter(TOPICS.rollouts(), 3, "reward", "run-1"), 99))
                .contains("it was already redriven to millrace.rollouts-3@99");
        assertThat(check.refusal(letter(TOPICS.rollouts(), 4, "reward", "run-1"), -1))
                .contains("its source millrace.rollouts-4 no longer exists; the topic has 4 partitions");
        assertThat(check.refusal(letter(TOPICS.trajectories(), 0, "reward", "run-1"), -1))
                .contains("its source millrace.trajectories-0 no longer exists");
        assertThat(check.refusal(letter(TOPICS.rollouts(), 0, "wrong-run", "run-2"), -1)
                        .orElseThrow())
                .startsWith("it is of run 'run-2'");
        assertThat(check.refusal(letter(TOPICS.rollouts(), 0, "reward", "run-2"), -1)
                        .orElseThrow())
                .startsWith("it is of run 'run-2'");
        assertThat(check.refusal(letter(TOPICS.rollouts(), 0, "wrong-epoch", "run-1", -1), -1)
                        .orElseThrow())
                .startsWith("it is of another epoch than 2");
        assertThat(check.refusal(letter(TOPICS.rollouts(), 0, "reward", "run-1", 1), -1)
                        .orElseThrow())
                .startsWith("it is of another epoch than 2");
        assertThat(check.refusal(letter(TOPICS.rollouts(), 0, "too-large", "run-1"), -1)
                        .orElseThrow())
                .contains("as a duplicate");
        assertThat(check.refusal(letter(TOPICS.batches(), 0, "unreadable", ""), -1)
                        .orElseThrow())
                .contains("the learner is past this batch");
        assertThat(check.refusal(letter(TOPICS.policyVersions(), 0, "unreadable", ""), -1)
                        .orElseThrow())
                .contains("only the learner");
        assertThat(check.refusal(letter("elsewhere", 0, "unreadable", ""), -1).orElseThrow())
                .contains("not a topic that takes redriven records");
    }

    @Test
    void shouldKnowALetterByItsNumberAndByWhereItCameFrom() {
        DeadLetter letter = letter(TOPICS.rollouts(), 3, "reward", "run-1");
        for (String name : List.of(
                "17", "dead-letters-0@17", "millrace.dead-letters-0@17", "rollouts-3@12", "millrace.rollouts-3@12")) {
            assertThat(new DeadLetterFilter(List.of(name), "", "", "millrace.").takes(letter))
                    .as(name)
                    .isTrue();
        }
        assertThat(new DeadLetterFilter(List.of("12", "rollouts-3@17"), "", "", "millrace.").takes(letter))
                .isFalse();
        assertThat(new DeadLetterFilter(List.of(), "reward", "rollouts", "millrace.").takes(letter))
                .isTrue();
        assertThat(new DeadLetterFilter(List.of(), "reward", "scores", "millrace.").takes(letter))
                .isFalse();
        assertThat(new DeadLetterFilter(List.of(), "mask", "", "millrace.").takes(letter))
                .isFalse();
    }
}
