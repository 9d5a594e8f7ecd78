package dev.millrace.topology;

import java.util.Map;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.streams.KafkaClientSupplier;

/**
 * Creates the engine's clients: producers with transactional ids that survive a crash, and a consumer that tolerates a
 * truncated log.
 *
 * <p>Without state on disk, the engine names its transactions after a random number drawn at each start. A transaction
 * that a crash left open then stays open until the broker times it out, and read_committed consumers wait for that.
 * With a stable name, the new instance first ends the old transaction.
 */
final class StaticTransactionalIds implements KafkaClientSupplier {
    private final String transactionalPrefix;

    /** @param transactionalPrefix prefix of the ids */
    StaticTransactionalIds(String transactionalPrefix) {
        this.transactionalPrefix = transactionalPrefix;
    }

    @Override
    public Producer<byte[], byte[]> getProducer(Map<String, Object> config) {
        String drawn = (String) config.get(ProducerConfig.TRANSACTIONAL_ID_CONFIG);
        if (drawn != null) { // null with at-least-once processing, which has no transactions
            String thread = drawn.substring(drawn.lastIndexOf('-') + 1);
            config.put(ProducerConfig.TRANSACTIONAL_ID_CONFIG, transactionalPrefix + "-" + thread);
        }
        return new KafkaProducer<>(config, new ByteArraySerializer(), new ByteArraySerializer());
    }

    @Override
    public Admin getAdmin(Map<String, Object> config) {
        return Admin.create(config);
    }

    @Override
    public Consumer<byte[], byte[]> getConsumer(Map<String, Object> config) {
        return new ShortenedLogConsumer(config);
    }

    @Override
    public Consumer<byte[], byte[]> getRestoreConsumer(Map<String, Object> config) {
        return consumer(config);
    }

    @Override
    public Consumer<byte[], byte[]> getGlobalConsumer(Map<String, Object> config) {
        return consumer(config);
    }

    private static Consumer<byte[], byte[]> consumer(Map<String, Object> config) {
        return new KafkaConsumer<>(config, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }
}
