package dev.millrace.log.transaction;

import java.util.Map;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.clients.producer.Callback;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.jspecify.annotations.Nullable;

/**
 * A transactional producer whose commit fails if a record of the transaction is not acknowledged.
 *
 * <p>In Kafka 4.4.0 a commit may return with a record unsent, if the transaction before it was aborted with a record unsent to the
 * same partition; only the record's callback tells, after {@code delivery.timeout.ms}. Threading is that of {@link KafkaProducer}.
 */
public final class AcknowledgedProducer extends KafkaProducer<byte[], byte[]> {
    private volatile Acknowledgements transaction = new Acknowledgements();

    public AcknowledgedProducer(Map<String, Object> settings) {
        super(settings, new ByteArraySerializer(), new ByteArraySerializer());
    }

    @Override
    public void beginTransaction() {
        super.beginTransaction();
        transaction = new Acknowledgements();
    }

    @Override
    public Future<RecordMetadata> send(ProducerRecord<byte[], byte[]> record, @Nullable Callback callback) {
        return super.send(record, transaction.expect(callback));
    }

    /** @throws KafkaException also if the commit succeeded without one of the transaction's records */
    @Override
    public void commitTransaction() {
        super.commitTransaction();
        transaction.requireAll();
    }

    /** A transaction's records that are not acknowledged. Thread-safe. */
    static final class Acknowledgements {
        private final AtomicLong missing = new AtomicLong();

        Callback expect(@Nullable Callback callback) {
            missing.incrementAndGet();
            return (metadata, failure) -> {
                if (failure == null) {
                    missing.decrementAndGet();
                }
                if (callback != null) {
                    callback.onCompletion(metadata, failure);
                }
            };
        }

        void requireAll() {
            long unknown = missing.get();
            if (unknown > 0) {
                throw new KafkaException("a transaction was committed without " + unknown
                        + " of its records, which the broker did not acknowledge");
            }
        }
    }
}
