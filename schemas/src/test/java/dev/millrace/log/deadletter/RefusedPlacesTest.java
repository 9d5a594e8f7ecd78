package dev.millrace.log.deadletter;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.schemas.LogCoordinates;
import dev.millrace.schemas.rollout.Refusal;
import dev.millrace.schemas.rollout.RefusalReason;
import dev.millrace.schemas.run.RunIdentity;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.record.TimestampType;
import org.junit.jupiter.api.Test;

class RefusedPlacesTest {
    private static final TopicPartition BATCHES = new TopicPartition("run.batches", 0);

    private final RefusedPlaces refused = new RefusedPlaces(Set.of(BATCHES.topic()));

    private static ConsumerRecord<byte[], byte[]> at(String topic, long offset, byte[] value, Headers headers) {
        return new ConsumerRecord<>(
                topic, 0, offset, 0L, TimestampType.CREATE_TIME, 0, 0, new byte[0], value, headers, Optional.empty());
    }

    private static ConsumerRecord<byte[], byte[]> letterOf(String topic, long offset) {
        return at(
                "run.dead-letters",
                0,
                new byte[0],
                DeadLetters.headers(
                        new RecordHeaders(),
                        new DeadLetters.Source(topic, 0, offset, 0),
                        Refusal.of(RefusalReason.IDENTITY, "batch_id", "a copy"),
                        new RunIdentity("run", 0, "policy")));
    }

    @Test
    void shouldHoldPlacesOfItsTopicsThatALetterNames() {
        refused.add(letterOf(BATCHES.topic(), 7));
        refused.add(letterOf("run.rollouts", 8));

        assertThat(refused.has(BATCHES, 7)).isTrue();
        assertThat(refused.has(at(BATCHES.topic(), 7, new byte[0], new RecordHeaders())))
                .isTrue();
        assertThat(refused.has(BATCHES, 8)).isFalse();
        assertThat(refused.has(new TopicPartition(BATCHES.topic(), 1), 7)).isFalse();
        assertThat(refused.has(new TopicPartition("run.rollouts", 0), 8)).isFalse();
    }

    @Test
    void shouldPassOverWhatNamesNoPlace() {
        Map<String, String> places = Map.of("-1", "7", "0", "-7", "99999999999", "7", "", "", "0x", "7 ");
        places.forEach((partition, offset) -> {
            Headers headers = letterOf(BATCHES.topic(), 7).headers();
            headers.add(DeadLetterHeaders.SOURCE_PARTITION, partition.getBytes(StandardCharsets.UTF_8));
            headers.add(DeadLetterHeaders.SOURCE_OFFSET, offset.getBytes(StandardCharsets.UTF_8));
            refused.add(at("run.dead-letters", 0, new byte[0], headers));
        });
        Headers withoutValues = letterOf(BATCHES.topic(), 7).headers();
        withoutValues.add(DeadLetterHeaders.SOURCE_PARTITION, null);
        refused.add(at("run.dead-letters", 0, new byte[0], withoutValues));
        refused.add(at("run.dead-letters", 0, new byte[0], new RecordHeaders()));

        assertThat(refused.has(BATCHES, 7)).isFalse();
    }

    @Test
    void shouldNotTakeTheMarkOfARedrivenLetterForALetter() {
        var mark = new RedriveMark(
                        0,
                        0,
                        new LogCoordinates(BATCHES.topic(), 0, 7L),
                        9,
                        0,
                        "",
                        new RedriveMark.Subject("", "run", 0))
                .record("run.dead-letters", new byte[0]);
        refused.add(at("run.dead-letters", 1, null, mark.headers()));

        assertThat(refused.has(BATCHES, 7)).isFalse();
    }
}
