package dev.millrace.log.transaction;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.millrace.log.transaction.AcknowledgedProducer.Acknowledgements;
import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.clients.producer.Callback;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.TimeoutException;
import org.junit.jupiter.api.Test;

class AcknowledgedProducerTest {
    private static final RecordMetadata WRITTEN = new RecordMetadata(new TopicPartition("scores", 0), 7, 0, 0, 1, 1);

    private final Acknowledgements transaction = new Acknowledgements();

    @Test
    void shouldTakeACommitForOneWhereEveryRecordIsAcknowledged() {
        transaction.expect(null).onCompletion(WRITTEN, null);
        transaction.expect(null).onCompletion(WRITTEN, null);

        transaction.requireAll();
    }

    @Test
    void shouldRefuseACommitWithoutARecord() {
        transaction.expect(null).onCompletion(WRITTEN, null);
        transaction.expect(null);
        transaction.expect(null).onCompletion(null, new TimeoutException("expired"));

        assertThatThrownBy(transaction::requireAll)
                .isInstanceOf(KafkaException.class)
                .hasMessage(
                        "a transaction was committed without 2 of its records, which the broker did not acknowledge");
    }

    @Test
    void shouldTellTheSenderToo() {
        List<Object> told = new ArrayList<>();
        Callback callback = (metadata, failure) -> told.add(failure == null ? metadata : failure);
        TimeoutException expired = new TimeoutException("expired");

        transaction.expect(callback).onCompletion(WRITTEN, null);
        transaction.expect(callback).onCompletion(null, expired);

        assertThat(told).containsExactly(WRITTEN, expired);
    }
}
