package dev.millrace.generator.staleness;

import dev.millrace.log.LogConnection;
import dev.millrace.log.deadletter.DeadLetterHeaders;
import dev.millrace.log.deadletter.RedriveMark;
import dev.millrace.schemas.Outcome;
import dev.millrace.schemas.PromptRequest;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.schemas.run.RunTopics;
import dev.millrace.schemas.serde.AvroSerde;
import dev.millrace.schemas.serde.MalformedRecordException;
import java.util.Optional;
import java.util.Set;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.serialization.Deserializer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Reads off a record of {@code outcomes} or {@code dead-letters} how many samples it says will never reach a batch.
 *
 * <p>An outcome is one sample, unless it is about something that was surplus: a repetition, or a partner without a
 * rollout. A dead letter counts if it is of this run and can be attributed: one sample for a rollout that says which it
 * is, a whole group for a prompt. When it is redriven, its mark takes that back. Everything else, such as garbage that a
 * stranger wrote, was never released and is not
 * missed.
 */
final class LostSamples {
    private static final Logger LOG = LoggerFactory.getLogger(LostSamples.class);
    private static final Set<String> SURPLUS =
            Set.of("duplicate", "orphan-score", "orphan-reward", "orphan-reference", "orphan-teacher");

    private final RunTopics topics;
    private final RunIdentity run;
    private final Deserializer<Outcome> outcomes;
    private final Deserializer<PromptRequest> prompts;

    LostSamples(LogConnection connection) {
        this.topics = connection.topics();
        this.run = connection.run();
        this.outcomes = AvroSerde.of(Outcome.class, connection.registry()).deserializer();
        this.prompts = AvroSerde.of(PromptRequest.class, connection.registry()).deserializer();
    }

    /** Samples that were all rewarded alike leave under these reasons. */
    private static final Set<String> ALIKE = Set.of("zero-variance", "resample");

    /** Whether a sample leaves because its group was rewarded alike. */
    boolean isOfZeroVariance(ConsumerRecord<byte[], byte[]> record) {
        return outcomeOf(record).map(Outcome::getReason).filter(ALIKE::contains).isPresent();
    }

    /** The request whose prompt is to be released once more, if the record asks for that. */
    Optional<RequestName> toResample(ConsumerRecord<byte[], byte[]> record) {
        return outcomeOf(record)
                .filter(outcome -> outcome.getReason().equals("resample"))
                .flatMap(outcome -> RequestName.parse(outcome.getGroupId()));
    }

    private Optional<Outcome> outcomeOf(ConsumerRecord<byte[], byte[]> record) {
        if (!record.topic().equals(topics.outcomes()) || record.value() == null) {
            return Optional.empty();
        }
        try {
            return Optional.of(outcomes.deserialize(record.topic(), record.value()))
                    .filter(outcome -> run.owns(outcome.getRunId(), outcome.getEpoch()));
        } catch (MalformedRecordException e) {
            return Optional.empty(); // said when it was counted
        }
    }

    long in(ConsumerRecord<byte[], byte[]> record) {
        try {
            return record.topic().equals(topics.outcomes()) ? lostBy(record) : deadLettered(record);
        } catch (MalformedRecordException e) {
            LOG.warn(
                    "not counted, because it cannot be read: {}-{}@{}: {}",
                    record.topic(),
                    record.partition(),
                    record.offset(),
                    e.getMessage());
            return 0;
        }
    }

    private long lostBy(ConsumerRecord<byte[], byte[]> record) {
        Outcome outcome = record.value() == null ? null : outcomes.deserialize(record.topic(), record.value());
        return outcome != null
                        && run.owns(outcome.getRunId(), outcome.getEpoch())
                        && !SURPLUS.contains(outcome.getReason())
                ? 1
                : 0;
    }

    private long deadLettered(ConsumerRecord<byte[], byte[]> record) {
        if (!run.owns(
                DeadLetterHeaders.text(record.headers(), DeadLetterHeaders.RUN_ID),
                DeadLetterHeaders.epoch(record.headers(), DeadLetterHeaders.EPOCH))) {
            return 0;
        }
        Optional<RedriveMark> redriven = RedriveMark.of(record);
        if (redriven.isPresent()) {
            return -redriven.get().samples();
        }
        String source = DeadLetterHeaders.text(record.headers(), DeadLetterHeaders.SOURCE_TOPIC);
        if (topics.rollouts().equals(source)) {
            return DeadLetterHeaders.text(record.headers(), DeadLetterHeaders.ROLLOUT_ID)
                            .isEmpty()
                    ? 0
                    : 1;
        }
        if (topics.prompts().equals(source)) {
            PromptRequest prompt = prompts.deserialize(topics.prompts(), record.value());
            return run.owns(prompt.getRunId(), prompt.getEpoch()) ? prompt.getSamples() : 0;
        }
        return 0; // a refused score leaves its rollout unscored, and that has an outcome of its own
    }

    /** Why the record is a dead letter, for a sentence. */
    String reasonOf(ConsumerRecord<byte[], byte[]> record) {
        return DeadLetterHeaders.text(record.headers(), DeadLetterHeaders.REASON) + ": "
                + DeadLetterHeaders.text(record.headers(), DeadLetterHeaders.MESSAGE);
    }
}
