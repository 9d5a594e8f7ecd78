package dev.millrace.learner.batch;

import dev.millrace.schemas.LearnerBatch;
import java.util.List;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;

/**
 * A batch that is to be trained on, and what is to be committed together with the step on it.
 *
 * @param behind      the offset behind all that was read
 * @param progress    what is consumed with it
 * @param deadLetters of the records that were refused before it, or cannot come once it is consumed
 */
public record IncomingBatch(
        LearnerBatch batch,
        TopicPartition partition,
        OffsetAndMetadata behind,
        BatchProgress progress,
        List<ProducerRecord<byte[], byte[]>> deadLetters) {

    /** Rollouts in all batches up to this one. */
    public long rolloutsConsumed() {
        return progress.rolloutsConsumed();
    }

    /** The offset to commit with the step, and the progress as its metadata. */
    public OffsetAndMetadata committed(long newestVersion) {
        return new OffsetAndMetadata(
                behind.offset(),
                behind.leaderEpoch(),
                progress.at(newestVersion).text());
    }
}
