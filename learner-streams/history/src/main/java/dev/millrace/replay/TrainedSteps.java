package dev.millrace.replay;

import dev.millrace.replay.archive.RecordCursor;
import dev.millrace.replay.archive.RecordedRun;
import dev.millrace.schemas.TrainingStep;
import dev.millrace.schemas.serde.AvroSerde;
import dev.millrace.schemas.serde.MalformedRecordException;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.Deserializer;

/**
 * What the learner's log says of steps, asked for in the order of their batches. Holds one record a partition; confined to
 * one thread.
 */
final class TrainedSteps implements AutoCloseable {
    private final RecordedRun run;
    private final Deserializer<TrainingStep> deserializer;
    private final List<Head> heads = new ArrayList<>();

    private static final class Head {
        private final RecordCursor cursor;
        private Optional<TrainingStep> step = Optional.empty();

        Head(RecordCursor cursor) {
            this.cursor = cursor;
        }
    }

    TrainedSteps(RecordedRun run) {
        this.run = run;
        this.deserializer = AvroSerde.of(TrainingStep.class, run.registry()).deserializer();
        for (TopicPartition partition : run.partitions(run.topics().trainingLog())) {
            heads.add(new Head(run.read(partition, 0)));
        }
    }

    /** The step on a batch; empty if there is none. Batches that are asked for come in their order. */
    Optional<TrainingStep> of(long batchId) {
        for (Head head : heads) {
            while (head.step.isEmpty() || head.step.get().getBatchId() < batchId) {
                Optional<ConsumerRecord<byte[], byte[]>> next = head.cursor.next();
                if (next.isEmpty()) {
                    break;
                }
                head.step = ours(next.get()).or(() -> head.step);
            }
            if (head.step.isPresent() && head.step.get().getBatchId() == batchId) {
                return head.step;
            }
        }
        return Optional.empty();
    }

    private Optional<TrainingStep> ours(ConsumerRecord<byte[], byte[]> record) {
        try {
            return Optional.ofNullable(deserializer.deserialize(record.topic(), record.value()))
                    .filter(step -> run.run().owns(step.getRunId(), step.getEpoch())
                            && run.run().policyId().equals(step.getPolicyId()));
        } catch (MalformedRecordException notAStep) {
            return Optional.empty();
        }
    }

    @Override
    public void close() {
        heads.forEach(head -> head.cursor.close());
    }
}
