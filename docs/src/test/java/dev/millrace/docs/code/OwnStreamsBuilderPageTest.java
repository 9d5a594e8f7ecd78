package dev.millrace.docs.code;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.log.LogConnection;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.registry.InMemorySchemaRegistry;
import dev.millrace.schemas.serde.AvroSerde;
import dev.millrace.topology.Samples;
import dev.millrace.topology.TopologyConfig;
import dev.millrace.topology.batch.BatchConfig;
import dev.millrace.topology.state.RecordTimestampExtractor;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Instant;
import java.util.Map;
import java.util.Properties;
import org.apache.avro.specific.SpecificRecord;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.test.TestRecord;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class OwnStreamsBuilderPageTest {
    private static final Instant WRITTEN = Instant.ofEpochMilli(1_700_000_000_000L);
    private static final long HAPPENED_MS = 1_600_000_000_000L;

    @TempDir
    private Path folder;

    private final InMemorySchemaRegistry schemas = new InMemorySchemaRegistry();

    @Test
    void shouldMakeBatchesBesideTheProgramsOwnProcessorsByTheTimeOfTheEvents() throws Exception {
        TopologyConfig config =
                TopologyConfig.defaults().with(new BatchConfig(2, 0, BatchConfig.Order.COMPLETION, 0, false));
        LogConnection log =
                new LogConnection(Map.of("bootstrap.servers", "none:1"), Samples.TOPICS, Samples.RUN, schemas);
        try (PageCode code = PageCode.compile("how-to/own-streams-builder.md", folder);
                TopologyTestDriver driver = driver((Topology) code.type("example.OwnTopology")
                        .getMethod("topology", LogConnection.class, TopologyConfig.class)
                        .invoke(null, log, config))) {
            pipe(driver, Samples.TOPICS.policyVersions(), "policy/3", Samples.version(3));
            pipe(driver, Samples.TOPICS.policyVersions(), "policy/4", Samples.version(4));
            for (int sample = 0; sample < 2; sample++) {
                Rollout rollout = Samples.rollout("g", sample).build();
                pipe(driver, Samples.TOPICS.rollouts(), "g", rollout);
                pipe(
                        driver,
                        Samples.TOPICS.scores(),
                        "g",
                        Samples.score(rollout, sample).build());
            }

            var sizes = driver.createOutputTopic("batch-sizes", new ByteArrayDeserializer(), new StringDeserializer());
            assertThat(sizes.readValuesToList())
                    .singleElement()
                    .satisfies(size -> assertThat(Integer.parseInt(size)).isGreaterThan(100));
            var trajectories = driver.createOutputTopic(
                    Samples.TOPICS.trajectories(), new ByteArrayDeserializer(), new ByteArrayDeserializer());
            assertThat(trajectories.readRecordsToList()).hasSize(2).allSatisfy(record -> {
                assertThat(happenedMs(record)).isEqualTo(HAPPENED_MS);
                assertThat(record.timestamp()).isGreaterThanOrEqualTo(WRITTEN.toEpochMilli());
            });
        }
    }

    /** Like a program without the header: with the engine's default extractor. */
    private TopologyTestDriver driver(Topology topology) {
        Properties settings = new Properties();
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, "own");
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, "none:1");
        settings.put(StreamsConfig.STATE_DIR_CONFIG, folder.resolve("state").toString());
        return new TopologyTestDriver(topology, settings, WRITTEN);
    }

    private void pipe(TopologyTestDriver driver, String topic, String key, SpecificRecord record) {
        driver.createInputTopic(topic, new ByteArraySerializer(), new ByteArraySerializer())
                .pipeInput(new TestRecord<>(
                        key.getBytes(StandardCharsets.UTF_8),
                        bytes(topic, record),
                        new RecordHeaders(RecordTimestampExtractor.header(HAPPENED_MS)),
                        WRITTEN.toEpochMilli()));
    }

    @SuppressWarnings("unchecked")
    private <T extends SpecificRecord> byte[] bytes(String topic, T record) {
        return AvroSerde.of((Class<T>) record.getClass(), schemas).serializer().serialize(topic, record);
    }

    private static long happenedMs(TestRecord<byte[], byte[]> record) {
        Header header = record.headers().lastHeader("millrace.event-ms");
        return Long.parseLong(new String(header.value(), StandardCharsets.US_ASCII));
    }
}
