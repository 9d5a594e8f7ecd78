package dev.millrace.learner.batch;

import dev.millrace.schemas.LearnerBatch;
import java.util.List;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;

/**
 * A batch that is to be trained on, and what is to be committed together with the step on it.
 *
 * @param batch       the batch
 * @param partition   where it lay
 * @param committed   the offset after it, with the progress in its metadata
 * @param rolloutsConsumed in all batches up to this one
 * @param deadLetters records before it that were refused
 */
public record IncomingBatch(
        LearnerBatch batch,
        TopicPartition partition,
        OffsetAndMetadata committed,
        long rolloutsConsumed,
        List<ProducerRecord<byte[], byte[]>> deadLetters) {}
