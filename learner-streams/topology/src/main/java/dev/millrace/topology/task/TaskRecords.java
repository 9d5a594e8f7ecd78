package dev.millrace.topology.task;

import dev.millrace.log.deadletter.DeadLetters;
import dev.millrace.schemas.LogCoordinates;
import dev.millrace.schemas.Outcome;
import dev.millrace.schemas.rollout.Refusal;
import dev.millrace.schemas.serde.AvroSerde;
import dev.millrace.topology.RunContext;
import java.nio.charset.StandardCharsets;
import java.util.function.Consumer;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.serialization.Serializer;
import org.apache.kafka.streams.processor.api.Record;

/** Writes the outcomes, dead letters and other records of one task, and counts them. */
public final class TaskRecords {
    /** An outcome's version that is not known. */
    public static final long UNKNOWN_VERSION = -1;

    private final RunContext context;
    private final String stage;
    private final Consumer<TaskOutput> sink;
    private final Serializer<Outcome> outcomes;

    /** @param stage who decides, such as join or groups */
    public TaskRecords(RunContext context, String stage, Consumer<TaskOutput> sink) {
        this.context = context;
        this.stage = stage;
        this.sink = sink;
        this.outcomes = AvroSerde.of(Outcome.class, context.registry()).serializer();
    }

    /**
     * Writes the outcome of a rollout, or of a partner without one.
     *
     * @param newestVersion of any token of it; {@link #UNKNOWN_VERSION} where not known
     * @param source the rollout's record, or the score's where it is about a score
     * @param detail a sentence with the values that decided
     */
    public void leave(
            OutcomeReason reason,
            String groupId,
            String rolloutId,
            long newestVersion,
            LogCoordinates source,
            long decidedAtMs,
            String detail) {
        context.meters().outcome(reason);
        String topic = context.topics().outcomes();
        Outcome outcome = new Outcome(
                context.run().runId(),
                context.run().epoch(),
                rolloutId,
                groupId,
                stage,
                reason.code(),
                detail,
                newestVersion,
                source,
                decidedAtMs);
        write(topic, groupId, outcomes.serialize(topic, outcome), new RecordHeaders());
    }

    /** Writes a record that is refused to the dead letters, as it came. */
    public void refuse(Record<byte[], byte[]> raw, LogCoordinates at, String rolloutId, Refusal refusal) {
        context.meters().deadLetter(refusal.reason());
        sink.accept(new TaskOutput(
                context.topics().deadLetters(),
                raw.key(),
                raw.value(),
                DeadLetters.headers(
                        raw.headers(),
                        new DeadLetters.Source(at.getTopic(), at.getPartition(), at.getOffset(), raw.timestamp()),
                        refusal.about(context.run().runId(), context.run().epoch(), rolloutId),
                        context.run())));
    }

    /** Writes a record. */
    public void write(String topic, String key, byte[] value, Headers headers) {
        sink.accept(new TaskOutput(topic, key.getBytes(StandardCharsets.UTF_8), value, headers));
    }
}
