package dev.millrace.generator.staleness;

import dev.millrace.log.LogConnection;
import dev.millrace.log.follow.LogReader;
import dev.millrace.log.follow.ReadLimit;
import dev.millrace.schemas.PromptRequest;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.schemas.serde.AvroSerde;
import dev.millrace.schemas.serde.MalformedRecordException;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.LongAccumulator;
import java.util.concurrent.atomic.LongAdder;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.Deserializer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * What the prompts topic itself says about earlier admissions, for a start without committed state: a run's first
 * start, or one so long after the last that the broker has forgotten the offsets.
 *
 * @param nextOrdinal one more than the highest ordinal of the run, in any epoch
 * @param samples asked for in this epoch
 * @param complete false if old prompts were deleted, so that the sums are not the whole
 * @param epoch of the run
 */
record PriorPrompts(long nextOrdinal, long samples, boolean complete, int epoch) {
    private static final Logger LOG = LoggerFactory.getLogger(PriorPrompts.class);
    private static final Duration LIMIT = Duration.ofSeconds(60);

    /** Reads the topic from its beginning to what is committed now. */
    static PriorPrompts read(LogConnection connection) {
        Deserializer<PromptRequest> prompts =
                AvroSerde.of(PromptRequest.class, connection.registry()).deserializer();
        RunIdentity run = connection.run();
        try (LogReader log = new LogReader(connection)) {
            List<TopicPartition> partitions =
                    log.fromBeginning(connection.topics().prompts());
            Map<TopicPartition, Long> ends = log.consumer().endOffsets(partitions);
            boolean complete = log.consumer().beginningOffsets(partitions).values().stream()
                    .allMatch(first -> first == 0);
            LongAccumulator nextOrdinal = new LongAccumulator(Math::max, 0);
            LongAdder samples = new LongAdder();
            boolean isRead = log.readTo(ends, ReadLimit.withoutProgress(LIMIT), record -> {
                PromptRequest prompt = decoded(prompts, record);
                if (prompt != null && prompt.getRunId().equals(run.runId())) {
                    nextOrdinal.accumulate(prompt.getOrdinal() + 1);
                    samples.add(prompt.getEpoch() == run.epoch() ? prompt.getSamples() : 0);
                }
            });
            if (!isRead) {
                throw new IllegalStateException("the earlier prompts of the run could not be read: no record came for "
                        + LIMIT.toSeconds() + " s, at " + log.progress() + " of " + ends);
            }
            return new PriorPrompts(nextOrdinal.get(), samples.sum(), complete, run.epoch());
        }
    }

    /**
     * The state they amount to; losses are still to be counted from the beginning of their topics.
     *
     * @param consumedSamples what the policy has consumed so far
     * @param lossesComplete false if old outcomes or dead letters were deleted
     * @throws IllegalStateException if there were prompts and the state cannot be told
     */
    ControllerState state(long consumedSamples, boolean lossesComplete) {
        if (samples == 0) {
            return new ControllerState(nextOrdinal, consumedSamples, 0, consumedSamples);
        }
        if (!complete || !lossesComplete || epoch > 0) {
            throw new IllegalStateException(
                    "admission cannot tell how many samples are under way: its committed state is"
                            + " gone and the log is no longer whole (" + samples + " samples in epoch " + epoch
                            + " are known). Begin a new epoch or a new run from the newest weights");
        }
        return new ControllerState(nextOrdinal, samples, 0, consumedSamples);
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
