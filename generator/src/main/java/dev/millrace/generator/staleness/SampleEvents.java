package dev.millrace.generator.staleness;

import dev.millrace.log.LogConnection;
import dev.millrace.log.deadletter.DeadLetterHeaders;
import dev.millrace.log.deadletter.RedriveMark;
import dev.millrace.schemas.BatchEntry;
import dev.millrace.schemas.ComparedLogProbs;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.Outcome;
import dev.millrace.schemas.PromptRequest;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.ServerRole;
import dev.millrace.schemas.Serving;
import dev.millrace.schemas.TrainingStep;
import dev.millrace.schemas.rollout.RefusalReason;
import dev.millrace.schemas.rollout.RefusedException;
import dev.millrace.schemas.rollout.RolloutLimits;
import dev.millrace.schemas.rollout.SampleName;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.schemas.run.RunTopics;
import dev.millrace.schemas.serde.AvroSerde;
import dev.millrace.schemas.serde.MalformedRecordException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.serialization.Deserializer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Reads off a record of {@code outcomes}, {@code dead-letters}, {@code batches} or {@code training-log} what it says about
 * samples. Whether they were released, and are under way still, is {@link ReleasedSamples}' to know.
 *
 * <p>An outcome is about one sample, unless it is about something that was surplus: a repetition, or a partner without a
 * rollout. A refused rollout or trajectory is about the sample that it names, a refused request about all samples of its group;
 * a mark that one was redriven takes that back. A rollout under a key that is not its group id says nothing about the sample
 * that it names: it lies where nothing of that sample belongs. What is of another run or epoch, or cannot be read, says nothing.
 */
final class SampleEvents {
    private static final Logger LOG = LoggerFactory.getLogger(SampleEvents.class);
    private static final Set<String> SURPLUS =
            Set.of("duplicate", "orphan-score", "orphan-reward", "orphan-reference", "orphan-teacher");

    private final RunTopics topics;
    private final RunIdentity run;
    private final Deserializer<Outcome> outcomes;
    private final Deserializer<PromptRequest> prompts;
    private final Deserializer<Rollout> rollouts;
    private final Deserializer<LearnerBatch> batches;
    private final Deserializer<TrainingStep> steps;
    private final Deserializer<Serving> servings;

    SampleEvents(LogConnection connection) {
        this.topics = connection.topics();
        this.run = connection.run();
        this.outcomes = AvroSerde.of(Outcome.class, connection.registry()).deserializer();
        this.prompts = AvroSerde.of(PromptRequest.class, connection.registry()).deserializer();
        this.rollouts = AvroSerde.of(Rollout.class, connection.registry()).deserializer();
        this.batches = AvroSerde.of(LearnerBatch.class, connection.registry()).deserializer();
        this.steps = AvroSerde.of(TrainingStep.class, connection.registry()).deserializer();
        this.servings = AvroSerde.of(Serving.class, connection.registry()).deserializer();
    }

    /** What the record says; empty if nothing. */
    Optional<SampleEvent> in(ConsumerRecord<byte[], byte[]> record) {
        try {
            if (record.topic().equals(topics.deadLetters())) {
                return ofDeadLetter(record);
            }
            if (record.value() == null || record.topic().equals(topics.serving())) {
                return Optional.empty();
            }
            if (record.topic().equals(topics.outcomes())) {
                return ofOutcome(outcomes.deserialize(record.topic(), record.value()));
            }
            return record.topic().equals(topics.batches())
                    ? ofBatch(batches.deserialize(record.topic(), record.value()), record.offset())
                    : ofStep(steps.deserialize(record.topic(), record.value()));
        } catch (MalformedRecordException e) {
            LOG.warn(
                    "not counted, because it cannot be read: {}-{}@{}: {}",
                    record.topic(),
                    record.partition(),
                    record.offset(),
                    e.getMessage());
            return Optional.empty();
        }
    }

    private Optional<SampleEvent> ofOutcome(Outcome outcome) {
        if (!run.owns(outcome.getRunId(), outcome.getEpoch()) || SURPLUS.contains(outcome.getReason())) {
            return Optional.empty();
        }
        return Optional.of(named(outcome.getRolloutId())
                .<SampleEvent>map(sample -> new SampleEvent.Left(sample, outcome.getReason()))
                .orElse(new SampleEvent.Nameless()));
    }

    private Optional<SampleEvent> ofBatch(LearnerBatch batch, long offset) {
        if (!run.owns(batch.getRunId(), batch.getEpoch()) || !run.policyId().equals(batch.getPolicyId())) {
            return Optional.empty();
        }
        List<SampleName> samples = new ArrayList<>(batch.getEntries().size());
        for (BatchEntry entry : batch.getEntries()) {
            named(entry.getRolloutId()).ifPresent(samples::add);
        }
        return Optional.of(new SampleEvent.Batched(batch.getBatchId(), offset, samples));
    }

    private Optional<SampleEvent> ofStep(TrainingStep step) {
        return step.getStarved() && run.owns(step.getRunId(), step.getEpoch())
                ? Optional.of(new SampleEvent.Starved(step.getBatchId()))
                : Optional.empty(); // a version says it otherwise
    }

    private Optional<SampleEvent> ofDeadLetter(ConsumerRecord<byte[], byte[]> record) {
        if (!run.owns(
                DeadLetterHeaders.text(record.headers(), DeadLetterHeaders.RUN_ID),
                DeadLetterHeaders.epoch(record.headers(), DeadLetterHeaders.EPOCH))) {
            return Optional.empty();
        }
        String source = DeadLetterHeaders.text(record.headers(), DeadLetterHeaders.SOURCE_TOPIC);
        Optional<RedriveMark> redriven = RedriveMark.of(record);
        if (topics.prompts().equals(source)) {
            String groupId = record.key() == null ? "" : new String(record.key(), StandardCharsets.UTF_8);
            return redriven.isPresent()
                    ? Optional.of(new SampleEvent.RequestRedriven(groupId))
                    : ofRequest(record, groupId);
        }
        if (!topics.rollouts().equals(source) && !topics.trajectories().equals(source)) {
            return Optional.empty(); // a refused score leaves its rollout unscored, and that has an outcome of its own
        }
        Optional<SampleName> sample = named(DeadLetterHeaders.text(record.headers(), DeadLetterHeaders.ROLLOUT_ID));
        if (redriven.isPresent()) {
            return sample.map(SampleEvent.Redriven::new);
        }
        String reason = DeadLetterHeaders.text(record.headers(), DeadLetterHeaders.REASON);
        if (sample.isEmpty() || RefusalReason.WRONG_KEY.code().equals(reason)) {
            return Optional.of(new SampleEvent.Nameless());
        }
        return Optional.of(
                RefusalReason.QUARANTINED.code().equals(reason)
                        ? new SampleEvent.Quarantined(sample.get())
                        : new SampleEvent.Refused(sample.get(), reasonOf(record)));
    }

    /**
     * Whose fault a refused rollout is.
     *
     * @param of one of so many records that the generator sent since the one that was refused before
     * @param reason why, with the sentence
     */
    record Blame(String generatorId, long of, String reason) {}

    /** Who is to be blamed for a refused record of this run; empty if it is none, or nobody is. */
    Optional<Blame> blame(ConsumerRecord<byte[], byte[]> record) {
        String of = DeadLetterHeaders.text(record.headers(), DeadLetterHeaders.SENDER_RECORDS);
        if (!record.topic().equals(topics.deadLetters())
                || record.value() == null
                || !of.matches("\\d{1,18}")
                || !topics.rollouts().equals(DeadLetterHeaders.text(record.headers(), DeadLetterHeaders.SOURCE_TOPIC))
                || !run.owns(
                        DeadLetterHeaders.text(record.headers(), DeadLetterHeaders.RUN_ID),
                        DeadLetterHeaders.epoch(record.headers(), DeadLetterHeaders.EPOCH))) {
            return Optional.empty();
        }
        try {
            return Optional.of(new Blame(
                    rollouts.deserialize(topics.rollouts(), record.value()).getGeneratorId(),
                    Long.parseLong(of),
                    reasonOf(record)));
        } catch (MalformedRecordException e) {
            return Optional.empty(); // nobody's, as far as can be said
        }
    }

    /** What a scorer says in this record of the log-probs that generators sent; empty if nothing. */
    List<ComparedLogProbs> compared(ConsumerRecord<byte[], byte[]> record) {
        if (!record.topic().equals(topics.serving()) || record.value() == null) {
            return List.of();
        }
        try {
            Serving serving = servings.deserialize(record.topic(), record.value());
            return run.owns(serving.getRunId(), serving.getEpoch()) && serving.getRole() == ServerRole.SCORER
                    ? serving.getCompared()
                    : List.of();
        } catch (MalformedRecordException e) {
            return List.of(); // whoever looks at who serves what says so
        }
    }

    private Optional<SampleEvent> ofRequest(ConsumerRecord<byte[], byte[]> record, String groupId) {
        PromptRequest prompt = prompts.deserialize(topics.prompts(), record.value());
        return Optional.of(
                run.owns(prompt.getRunId(), prompt.getEpoch())
                                && prompt.getGroupId().equals(groupId)
                        ? new SampleEvent.RequestRefused(groupId, reasonOf(record))
                        : new SampleEvent.Nameless());
    }

    /** A rollout id taken apart; empty if it is none. */
    static Optional<SampleName> named(String rolloutId) {
        int slash = rolloutId.lastIndexOf('/');
        try {
            return slash < 0
                    ? Optional.empty()
                    : Optional.of(SampleName.of(rolloutId, rolloutId.substring(0, slash), RolloutLimits.LARGEST_GROUP));
        } catch (RefusedException e) {
            return Optional.empty();
        }
    }

    /** Why the record is a dead letter, for a sentence. */
    private static String reasonOf(ConsumerRecord<byte[], byte[]> record) {
        return DeadLetterHeaders.text(record.headers(), DeadLetterHeaders.REASON) + ": "
                + DeadLetterHeaders.text(record.headers(), DeadLetterHeaders.MESSAGE);
    }
}
