package dev.millrace.log.run;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.millrace.infra.broker.EmbeddedBroker;
import dev.millrace.log.registry.LogSchemaRegistry;
import dev.millrace.log.registry.RegistryContents;
import dev.millrace.log.transaction.LogTable;
import dev.millrace.schemas.Outcome;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.Serving;
import dev.millrace.schemas.registry.PublishedSchema;
import dev.millrace.schemas.registry.SchemaRegistryException;
import dev.millrace.schemas.registry.UnknownSchemaException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.avro.Schema;
import org.apache.avro.SchemaBuilder;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(900)
class SchemaLogIT {
    private static final long LIMIT_MS = 150_000;

    @TempDir
    private static Path directory;

    private static EmbeddedBroker broker;
    private static Map<String, Object> client;

    @BeforeAll
    static void startBroker() {
        broker = EmbeddedBroker.start(directory);
        client = Map.of("bootstrap.servers", broker.bootstrapServers());
    }

    @AfterAll
    static void stopBroker() {
        broker.close();
    }

    @Test
    void shouldShareWhatOneRegistersWithAnotherThatIsOpenAlready() {
        String topic = topic("shared");
        try (LogSchemaRegistry writer = LogSchemaRegistry.writing(client, topic, LIMIT_MS);
                LogSchemaRegistry reader = LogSchemaRegistry.reading(client, topic, LIMIT_MS)) {
            assertThatThrownBy(() -> reader.byId(1)).isInstanceOf(UnknownSchemaException.class);
            assertThatThrownBy(() -> reader.idOf("a-value", Serving.getClassSchema()))
                    .isExactlyInstanceOf(SchemaRegistryException.class)
                    .hasMessageContaining("the schema of dev.millrace.schemas.Serving is not registered under a-value");

            writer.register(Map.of(
                    "a-value",
                    Serving.getClassSchema(),
                    "b-value",
                    Outcome.getClassSchema(),
                    "c-value",
                    Outcome.getClassSchema()));

            int serving = reader.idOf("a-value", Serving.getClassSchema());
            assertThat(reader.byId(serving).getFullName()).isEqualTo("dev.millrace.schemas.Serving");
            assertThat(reader.idOf("b-value", Outcome.getClassSchema()))
                    .as("one text, one id")
                    .isEqualTo(reader.idOf("c-value", Outcome.getClassSchema()))
                    .isNotEqualTo(serving);
            assertThat(writer.idOf("d-value", Rollout.getClassSchema())).isEqualTo(3);
            assertThat(reader.contents().subjects()).containsExactly("a-value", "b-value", "c-value", "d-value");
            assertThat(reader.contents().compatibilityLevel()).isEqualTo("FULL");
        }
        try (LogSchemaRegistry later = LogSchemaRegistry.writing(client, topic, LIMIT_MS)) {
            assertThat(later.idOf("d-value", Rollout.getClassSchema()))
                    .as("after a restart")
                    .isEqualTo(3);
            assertThat(later.contents().versions("d-value")).hasSize(1);
        }
    }

    @Test
    void shouldGiveEveryIdOnceWhateverManyWritersDoAtOnce() throws Exception {
        String topic = topic("contested");
        ExecutorService pool = Executors.newFixedThreadPool(4);
        try {
            List<Future<?>> writers = new ArrayList<>();
            for (int w = 0; w < 4; w++) {
                int who = w;
                writers.add(pool.submit(() -> {
                    try (LogSchemaRegistry registry = LogSchemaRegistry.writing(client, topic, LIMIT_MS)) {
                        for (int i = 0; i < 3; i++) {
                            registry.idOf("s" + who + i + "-value", record("R" + who + i, "f"));
                        }
                    }
                }));
            }
            for (Future<?> writer : writers) {
                writer.get(90, TimeUnit.SECONDS);
            }
        } finally {
            pool.shutdownNow();
        }

        try (LogSchemaRegistry reader = LogSchemaRegistry.reading(client, topic, LIMIT_MS)) {
            RegistryContents contents = reader.contents();
            Set<Integer> ids = new TreeSet<>();
            contents.subjects()
                    .forEach(
                            subject -> ids.add(contents.versions(subject).get(1).id()));
            assertThat(ids).hasSize(12).containsExactlyInAnyOrder(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12);
        }
    }

    @Test
    void shouldTakeACompatibleVersionAndRefuseAnother() {
        try (LogSchemaRegistry registry = LogSchemaRegistry.writing(client, topic("versions"), LIMIT_MS)) {
            Schema first = record("R", "f");
            Schema withDefault = SchemaBuilder.record("R")
                    .fields()
                    .requiredInt("f")
                    .optionalInt("g")
                    .endRecord();
            Schema without = SchemaBuilder.record("R")
                    .fields()
                    .requiredInt("f")
                    .requiredInt("h")
                    .endRecord();

            assertThat(registry.idOf("r-value", first)).isEqualTo(1);
            assertThat(registry.idOf("r-value", withDefault)).isEqualTo(2);
            assertThatThrownBy(() -> registry.idOf("r-value", without))
                    .isExactlyInstanceOf(SchemaRegistryException.class)
                    .hasMessageStartingWith("subject r-value: the new schema cannot read records of version 2 (id 2): "
                            + "READER_FIELD_MISSING_DEFAULT_VALUE at /fields/1; another program");
            assertThat(registry.contents().versions("r-value")).containsOnlyKeys(1, 2);
        }
    }

    @Test
    void shouldPutBackASchemaThatSomebodyOverwroteUnderItsOwnId() throws Exception {
        String topic = topic("overwritten");
        Schema mine = record("R", "f");
        String text = PublishedSchema.text(mine);
        try (LogSchemaRegistry registry = LogSchemaRegistry.writing(client, topic, LIMIT_MS)) {
            assertThat(registry.idOf("r-value", mine)).isEqualTo(1);
        }
        try (KafkaProducer<String, String> producer =
                new KafkaProducer<>(client, new StringSerializer(), new StringSerializer())) {
            producer.send(
                            new ProducerRecord<>(
                                    topic,
                                    "{\"keytype\":\"SCHEMA\",\"subject\":\"r-value\",\"version\":1,\"magic\":1}",
                                    "{\"subject\":\"r-value\",\"version\":1,\"id\":1,\"schema\":\"\\\"string\\\"\",\"deleted\":false}"))
                    .get(90, TimeUnit.SECONDS);
        }
        for (int start = 0; start < 2; start++) {
            try (LogSchemaRegistry registry = LogSchemaRegistry.writing(client, topic, LIMIT_MS)) {
                assertThat(registry.contents().schemaText(1)).contains(text);
                registry.register(Map.of("r-value", mine));
            }
        }
        List<String> values = new ArrayList<>();
        try (LogTable table = new LogTable(
                client, topic, LIMIT_MS, (key, value) -> values.add(new String(value, StandardCharsets.UTF_8)))) {
            table.catchUp();
        }
        assertThat(values)
                .as("the schema, the level, another schema, and once the first again")
                .hasSize(4);
        assertThat(values.get(3)).isEqualTo(values.get(0)).isNotEqualTo(values.get(2));
    }

    @Test
    void shouldKeepOffATopicThatARegistryRunsOn() throws Exception {
        String topic = topic("foreign");
        try (KafkaProducer<String, String> producer =
                new KafkaProducer<>(client, new StringSerializer(), new StringSerializer())) {
            producer.send(new ProducerRecord<>(topic, "{\"keytype\":\"NOOP\",\"magic\":0}", null))
                    .get(90, TimeUnit.SECONDS);
        }
        try (LogSchemaRegistry registry = LogSchemaRegistry.writing(client, topic, LIMIT_MS)) {
            assertThatThrownBy(() -> registry.idOf("r-value", record("R", "f")))
                    .isExactlyInstanceOf(SchemaRegistryException.class)
                    .hasMessage("topic foreign belongs to a schema registry that runs on it; set schema_registry_url "
                            + "to that registry's address, or schemas_topic to another name");
        }
    }

    @Test
    void shouldRefuseAnIdThatCannotExistWithoutAskingTheBroker() {
        try (LogSchemaRegistry registry = LogSchemaRegistry.reading(client, topic("ids"), LIMIT_MS)) {
            long begin = System.nanoTime();
            for (int i = 0; i < 100_000; i++) {
                int id = 1_000_000 + i;
                assertThatThrownBy(() -> registry.byId(id)).isInstanceOf(UnknownSchemaException.class);
            }
            assertThat(System.nanoTime() - begin)
                    .as("a request each would take far longer")
                    .isLessThan(TimeUnit.SECONDS.toNanos(90));
        }
    }

    @Test
    void shouldDecideAgainAfterAnotherWriterCameInBetween() {
        String topic = topic("table");
        List<String> first = new ArrayList<>();
        List<String> second = new ArrayList<>();
        try (LogTable one = new LogTable(client, topic, LIMIT_MS, (key, value) -> first.add(key));
                LogTable two = new LogTable(client, topic, LIMIT_MS, (key, value) -> second.add(key))) {
            List<Integer> seen = new ArrayList<>();

            one.append(() -> {
                seen.add(first.size());
                if (first.isEmpty()) {
                    two.append(() -> Map.of("two", new byte[] {2}));
                    return Map.of("one", new byte[] {1});
                }
                return Map.of();
            });

            assertThat(seen).as("what was there when it decided").containsExactly(0, 1);
            assertThat(first).containsExactly("two");
        }
    }

    private static Schema record(String name, String field) {
        return SchemaBuilder.record(name).fields().requiredInt(field).endRecord();
    }

    private static String topic(String name) {
        TopicsConfig d = TopicsConfig.defaults();
        TopicsConfig config = new TopicsConfig(
                d.partitions(),
                d.replicationFactor(),
                d.minInsyncReplicas(),
                d.recordRetentionMs(),
                d.passingRetentionMs(),
                d.weightsRetentionBytes(),
                d.optimizerRetentionBytes(),
                d.maxRecordBytes(),
                name,
                d.timeoutMs());
        try (TopicAdministration administration = new TopicAdministration(client, config)) {
            administration.prepareSchemas();
        }
        return name;
    }
}
