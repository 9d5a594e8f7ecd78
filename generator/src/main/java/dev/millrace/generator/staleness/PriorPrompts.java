package dev.millrace.generator.staleness;

import dev.millrace.log.LogConnection;
import dev.millrace.log.scan.LogReader;
import dev.millrace.log.scan.ReadLimit;
import dev.millrace.schemas.PromptRequest;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.schemas.serde.AvroSerde;
import dev.millrace.schemas.serde.MalformedRecordException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.Deserializer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * What the prompts topic says about requests that admission's table lacks: all of them at a run's first start, and after a run of
 * an earlier form is resumed; those at its end where a crash of the broker took the end of the table.
 */
final class PriorPrompts {
    private static final Logger LOG = LoggerFactory.getLogger(PriorPrompts.class);

    /** A request of this epoch as it lies on the topic. */
    record Request(
            String groupId,
            long ordinal,
            int samples,
            long admittedVersion,
            long releasedAtMs,
            int partition,
            long offset) {}

    private final TreeMap<Long, Request> requests = new TreeMap<>();
    private final Map<TopicPartition, Long> ends;
    private long nextOrdinal;

    private PriorPrompts(Map<TopicPartition, Long> ends) {
        this.ends = ends;
    }

    /**
     * Reads to what is committed now.
     *
     * @param positions by topic-partition: from where on; from the beginning where it says nothing
     * @param room samples of the newest requests that are kept, at least
     */
    static PriorPrompts read(LogConnection connection, Map<String, Long> positions, long room) {
        Deserializer<PromptRequest> prompts =
                AvroSerde.of(PromptRequest.class, connection.registry()).deserializer();
        try (LogReader log = new LogReader(connection)) {
            List<TopicPartition> partitions =
                    log.fromBeginning(connection.topics().prompts());
            Map<TopicPartition, Long> ends = log.consumer().endOffsets(partitions);
            for (TopicPartition partition : partitions) {
                Long from = positions.get(partition.toString());
                if (from != null) { // a log that lost its end begins there anew
                    log.consumer().seek(partition, Math.min(from, Objects.requireNonNull(ends.get(partition))));
                }
            }
            PriorPrompts prior = new PriorPrompts(ends);
            boolean isRead = log.readTo(ends, ReadLimit.withoutProgress(connection.patience()), record -> {
                PromptRequest prompt = decoded(prompts, record);
                if (prompt != null) {
                    prior.take(prompt, record, connection.run());
                }
            });
            if (!isRead) {
                throw new KafkaException("the earlier prompts of the run could not be read: no record came for "
                        + connection.patience().toSeconds() + " s, at " + log.progress() + " of " + ends);
            }
            prior.keep(room);
            return prior;
        }
    }

    private void take(PromptRequest prompt, ConsumerRecord<byte[], byte[]> record, RunIdentity run) {
        if (!prompt.getRunId().equals(run.runId()) || prompt.getOrdinal() < 0) {
            return;
        }
        boolean isOurs = RequestName.parse(prompt.getGroupId())
                .filter(name -> name.epoch() == prompt.getEpoch() && name.ordinal() == prompt.getOrdinal())
                .isPresent();
        if (!isOurs) {
            return; // released by another program, which counts what it released itself
        }
        nextOrdinal = Math.max(nextOrdinal, prompt.getOrdinal() + 1);
        if (prompt.getEpoch() == run.epoch() && prompt.getSamples() > 0) {
            requests.put(
                    prompt.getOrdinal(),
                    new Request(
                            prompt.getGroupId(),
                            prompt.getOrdinal(),
                            prompt.getSamples(),
                            prompt.getAdmittedVersion(),
                            prompt.getReleasedAtMs(),
                            record.partition(),
                            record.offset()));
        }
    }

    private void keep(long room) {
        long samples = 0;
        for (Request request : new ArrayList<>(requests.descendingMap().values())) {
            if (samples >= room) {
                requests.remove(request.ordinal());
            }
            samples += request.samples();
        }
    }

    /** Requests of this epoch with this ordinal or a later one, in their order. */
    List<Request> releasedFrom(long ordinal) {
        return List.copyOf(requests.tailMap(ordinal, true).values());
    }

    /** One more than the highest ordinal of the run that was read, in any epoch. */
    long nextOrdinal() {
        return nextOrdinal;
    }

    boolean isEmpty() {
        return requests.isEmpty();
    }

    /** Where each partition ended. */
    Map<TopicPartition, Long> ends() {
        return ends;
    }

    private static @Nullable PromptRequest decoded(
            Deserializer<PromptRequest> prompts, ConsumerRecord<byte[], byte[]> record) {
        try {
            return prompts.deserialize(record.topic(), record.value());
        } catch (MalformedRecordException e) { // the generator refuses it with its reason
            LOG.warn(
                    "not counted, because it cannot be read: {}-{}@{}: {}",
                    record.topic(),
                    record.partition(),
                    record.offset(),
                    e.getMessage());
            return null;
        }
    }
}
