package dev.millrace.cli.run;

import dev.millrace.audit.ledger.Account;
import dev.millrace.audit.ledger.LedgerReader;
import dev.millrace.infra.broker.EmbeddedBroker;
import dev.millrace.log.LogConnection;
import dev.millrace.log.run.RunLog;
import dev.millrace.log.run.TopicsConfig;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.schemas.run.RunTopics;
import dev.millrace.schemas.serde.AvroSerde;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.avro.specific.SpecificRecord;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** The topics of a run as anybody with a Kafka client sees them, while it runs or afterwards. */
final class LoggedRun implements AutoCloseable {
    private static final Duration LIMIT = Duration.ofMinutes(5);

    private final RunLog log;
    private final EmbeddedBroker broker;

    private LoggedRun(String bootstrapServers, String runId, String prefix, EmbeddedBroker broker) {
        this.broker = broker;
        this.log = RunLog.join(
                Map.of("bootstrap.servers", bootstrapServers),
                new RunTopics(prefix),
                new RunIdentity(runId, 0, "policy"),
                TopicsConfig.defaults(),
                "");
    }

    /** A run on a broker that is up. */
    static LoggedRun on(String bootstrapServers, String runId, String prefix) {
        return new LoggedRun(bootstrapServers, runId, prefix, null);
    }

    /** What a run that has ended left in its folder: its broker is started again to be asked. */
    static LoggedRun in(Path runDirectory, String runId) {
        EmbeddedBroker broker = EmbeddedBroker.start(runDirectory.resolve("broker"));
        try {
            return new LoggedRun(broker.bootstrapServers(), runId, "millrace.", broker);
        } catch (RuntimeException e) {
            broker.close();
            throw e;
        }
    }

    RunTopics topics() {
        return log.connection().topics();
    }

    LogConnection connection() {
        return log.connection();
    }

    /** What the ledger makes of the run. */
    Account account() {
        return new LedgerReader(connection()).read(LIMIT);
    }

    /** All committed records of a topic, partition by partition. */
    List<ConsumerRecord<byte[], byte[]>> records(String topic) {
        Map<String, Object> properties = connection()
                .with(Map.of(
                        "isolation.level",
                        "read_committed",
                        "enable.auto.commit",
                        false,
                        "auto.offset.reset",
                        "earliest"));
        List<ConsumerRecord<byte[], byte[]>> records = new ArrayList<>();
        try (KafkaConsumer<byte[], byte[]> consumer =
                new KafkaConsumer<>(properties, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            Set<TopicPartition> partitions = consumer.partitionsFor(topic).stream()
                    .map(info -> new TopicPartition(topic, info.partition()))
                    .collect(Collectors.toSet());
            consumer.assign(partitions);
            Map<TopicPartition, Long> ends = consumer.endOffsets(partitions);
            long deadline = System.nanoTime() + LIMIT.toNanos();
            while (partitions.stream().anyMatch(partition -> consumer.position(partition) < ends.get(partition))) {
                if (System.nanoTime() > deadline) {
                    throw new AssertionError(topic + " was not read to its end within " + LIMIT.toSeconds() + " s");
                }
                consumer.poll(Duration.ofMillis(200)).forEach(records::add);
            }
        }
        return records;
    }

    /** All committed records of a topic, decoded; every one must be of the type. */
    <T extends SpecificRecord> List<T> records(String topic, Class<T> type) {
        var deserializer = AvroSerde.of(type, connection().registry()).deserializer();
        return records(topic).stream()
                .map(record -> deserializer.deserialize(topic, record.value()))
                .toList();
    }

    <T extends SpecificRecord> byte[] encode(String topic, Class<T> type, T record) {
        return AvroSerde.of(type, connection().registry()).serializer().serialize(topic, record);
    }

    /** Sends records as somebody would who knows no better: no transaction, any bytes. */
    void send(List<ProducerRecord<byte[], byte[]>> records) throws Exception {
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(
                connection().producer(Map.of("acks", "all")), new ByteArraySerializer(), new ByteArraySerializer())) {
            for (ProducerRecord<byte[], byte[]> record : records) {
                producer.send(record).get();
            }
        }
    }

    @Override
    public void close() {
        log.close();
        if (broker != null) {
            broker.close();
        }
    }
}
