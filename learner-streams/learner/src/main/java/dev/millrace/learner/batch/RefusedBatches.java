package dev.millrace.learner.batch;

import dev.millrace.log.deadletter.DeadLetters;
import dev.millrace.schemas.rollout.RefusedException;
import dev.millrace.schemas.run.RunIdentity;
import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Records on {@code batches} that were refused and wait for the next commit, with which their dead letters are written.
 *
 * <p>Their offsets are committed only then, so a learner that dies before reads and refuses them again, and each dead
 * letter is written exactly once.
 */
final class RefusedBatches {
    private static final Logger LOG = LoggerFactory.getLogger(RefusedBatches.class);

    private final String topic;
    private final RunIdentity run;
    private final List<ProducerRecord<byte[], byte[]>> letters = new ArrayList<>();

    /** @param run that refuses them */
    RefusedBatches(String topic, RunIdentity run) {
        this.topic = topic;
        this.run = run;
    }

    void add(ConsumerRecord<byte[], byte[]> record, RefusedException refused) {
        LOG.warn(
                "refused {}-{}@{}, dead letter follows with the next version: {}",
                record.topic(),
                record.partition(),
                record.offset(),
                refused.getMessage());
        letters.add(DeadLetters.of(record, refused.refusal(), run, topic));
    }

    /** Everything that waits. */
    List<ProducerRecord<byte[], byte[]>> waiting() {
        return List.copyOf(letters);
    }

    /** These are committed. */
    void written(int count) {
        letters.subList(0, count).clear();
    }
}
