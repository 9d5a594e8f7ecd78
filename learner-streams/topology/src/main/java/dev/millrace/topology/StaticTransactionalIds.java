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
 * Makes the engine's clients, with transactional ids that survive a crash, and a consumer that bears a log without its end.
 *
 * <p>The engine names its transactions after a number that it draws at each start when no state is on disk. A
 * transaction that a crash left open then stays open until the broker gives it up, and whoever reads committed
 * records waits behind it. Under the same name, the first thing the new instance does is to end it.
 */
final class StaticTransactionalIds implements KafkaClientSupplier {
    private final String transactionalPrefix;

    /** @param transactionalPrefix what the ids begin with */
    StaticTransactionalIds(String transactionalPrefix) {
        this.transactionalPrefix = transactionalPrefix;
    }

    @Override
    public Producer<byte[], byte[]> getProducer(Map<String, Object> config) {
        String drawn = (String) config.get(ProducerConfig.TRANSACTIONAL_ID_CONFIG);
        if (drawn != null) { // none at least once, where nothing is a transaction
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
