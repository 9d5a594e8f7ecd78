package dev.millrace.workloads;

import dev.millrace.log.LogConnection;
import dev.millrace.schemas.BatchEntry;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.serde.AvroRecordDeserializer;
import dev.millrace.schemas.serde.AvroSerde;
import dev.millrace.workloads.topology.LoadException;
import java.util.function.Consumer;
import org.apache.kafka.clients.consumer.ConsumerRecord;

/** Maps batches to synthetic rollouts. */
public final class BatchedRollouts {
    private BatchedRollouts() {}

    public static Consumer<ConsumerRecord<byte[], byte[]>> batches(
            LogConnection connection, Consumer<LearnerBatch> viewer) {
        AvroRecordDeserializer<LearnerBatch> decoder =
                AvroSerde.of(LearnerBatch.class, connection.registry()).deserializer();
        return record -> viewer.accept(decoder.deserialize(record.topic(), record.value()));
    }

    /** The index of a synthetic rollout, from its name {@code group-G/S}. */
    public static long index(BatchEntry entry, int groupSize) {
        String name = entry.getRolloutId();
        int slash = name.indexOf('/');
        try {
            return Long.parseLong(name, name.indexOf('-') + 1, slash, 10) * groupSize
                    + Long.parseLong(name, slash + 1, name.length(), 10);
        } catch (NumberFormatException | IndexOutOfBoundsException e) {
            throw new LoadException("rollout '" + name + "' is none of this load's", e);
        }
    }
}
