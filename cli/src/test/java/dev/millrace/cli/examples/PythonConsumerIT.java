package dev.millrace.cli.examples;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.abort;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.sun.net.httpserver.HttpServer;
import dev.millrace.infra.broker.EmbeddedBroker;
import dev.millrace.log.registry.RegistryHttpApi;
import dev.millrace.log.run.RunLog;
import dev.millrace.log.run.TopicsConfig;
import dev.millrace.schemas.FinishReason;
import dev.millrace.schemas.LogProbDistribution;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.SamplingParameters;
import dev.millrace.schemas.Speaker;
import dev.millrace.schemas.Turn;
import dev.millrace.schemas.VersionSpan;
import dev.millrace.schemas.packed.PackedFloats;
import dev.millrace.schemas.packed.PackedInts;
import dev.millrace.schemas.packed.PackedMask;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.schemas.run.RunTopics;
import dev.millrace.schemas.serde.AvroSerde;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Clock;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** The example for Python, as a stranger would run it; needs Debian's python3-confluent-kafka and python3-avro. */
@Timeout(900)
class PythonConsumerIT {
    private static final List<String> PYTHONS = List.of("python3", "/usr/bin/python3");

    @TempDir
    private Path directory;

    @Test
    void shouldReadCommittedRolloutsWithStockClientsThroughOurHttpPort() throws Exception {
        String python = pythonWithKafka();
        RunTopics topics = new RunTopics("millrace.");
        try (EmbeddedBroker broker = EmbeddedBroker.start(directory.resolve("broker"));
                RunLog log = RunLog.open(
                        Map.of("bootstrap.servers", broker.bootstrapServers()),
                        topics,
                        new RunIdentity("run-1", 0, "default"),
                        TopicsConfig.defaults(),
                        "",
                        Clock.systemUTC())) {
            produce(log, topics);
            HttpServer server = HttpServer.create(new InetSocketAddress(InetAddress.getByName("127.0.0.1"), 0), 0);
            new RegistryHttpApi(log.registryContents().orElseThrow()).mount(server::createContext);
            server.start();
            try {
                List<JsonNode> read = run(
                        python,
                        "--bootstrap-servers",
                        broker.bootstrapServers(),
                        "--registry",
                        "http://127.0.0.1:" + server.getAddress().getPort(),
                        "--limit",
                        "2",
                        "--timeout",
                        "240");

                assertThat(read).hasSize(2);
                JsonNode first = read.get(0);
                assertThat(first.path("rollout_id").asText()).isEqualTo("g/0");
                assertThat(first.path("prompt_tokens")).hasToString("[1,15]");
                assertThat(first.path("response_tokens")).hasToString("[4,70000,2]");
                assertThat(first.path("mask")).hasToString("[1,0,1]");
                assertThat(first.path("behavior_log_probs")).hasToString("[-0.5,0.0,-3.25]");
                assertThat(first.path("versions")).hasToString("[6,7]");
                assertThat(first.path("finish_reason").asText()).isEqualTo("STOP");
                assertThat(read.get(1).path("rollout_id").asText())
                        .as("the aborted one is not shown")
                        .isEqualTo("g/2");
            } finally {
                server.stop(0);
            }
        }
    }

    private static String pythonWithKafka() throws Exception {
        for (String python : PYTHONS) {
            try {
                Process probe = new ProcessBuilder(python, "-c", "import confluent_kafka.avro, avro")
                        .redirectErrorStream(true)
                        .redirectOutput(ProcessBuilder.Redirect.DISCARD)
                        .start();
                if (probe.waitFor(300, TimeUnit.SECONDS) && probe.exitValue() == 0) {
                    return python;
                }
            } catch (IOException e) {
                continue; // this one is not installed; another may be
            }
        }
        return abort("no python3 with confluent_kafka and avro is installed"
                + " (Debian: apt-get install python3-confluent-kafka python3-avro)");
    }

    private List<JsonNode> run(String python, String... arguments) throws Exception {
        List<String> command = new ArrayList<>(List.of(python, "../infra/examples/python/read_rollouts.py"));
        command.addAll(List.of(arguments));
        Path out = directory.resolve("out");
        Path err = directory.resolve("err");
        Process process = new ProcessBuilder(command)
                .redirectOutput(out.toFile())
                .redirectError(err.toFile())
                .start();
        assertThat(process.waitFor(300, TimeUnit.SECONDS))
                .as("ends within 300 s")
                .isTrue();
        assertThat(process.exitValue())
                .as("exit status, with on standard error: %s", Files.readString(err))
                .isZero();
        List<JsonNode> objects = new ArrayList<>();
        for (String line : Files.readAllLines(out)) {
            objects.add(new ObjectMapper().readTree(line));
        }
        return objects;
    }

    /** One committed, one aborted, garbage, one committed; all of one group and so in one partition. */
    private static void produce(RunLog log, RunTopics topics) throws Exception {
        var serializer =
                AvroSerde.of(Rollout.class, log.connection().registry()).serializer();
        try (KafkaProducer<String, byte[]> producer = new KafkaProducer<>(
                log.connection().producer(Map.of("transactional.id", "t", "compression.type", "lz4")),
                new StringSerializer(),
                new ByteArraySerializer())) {
            producer.initTransactions();
            byte[][] values = {
                serializer.serialize(topics.rollouts(), rollout(0)),
                serializer.serialize(topics.rollouts(), rollout(1)),
                {9, 9, 9},
                serializer.serialize(topics.rollouts(), rollout(2))
            };
            for (int i = 0; i < values.length; i++) {
                producer.beginTransaction();
                producer.send(new ProducerRecord<>(topics.rollouts(), "g", values[i]))
                        .get(90, TimeUnit.SECONDS);
                if (i == 1) {
                    producer.abortTransaction();
                } else {
                    producer.commitTransaction();
                }
            }
        }
    }

    private static Rollout rollout(int sample) {
        return new Rollout(
                "run-1",
                0,
                "g/" + sample,
                "g",
                0L,
                sample,
                8,
                "generator-0",
                "inc",
                "hash",
                PackedInts.of(1, 15),
                PackedInts.of(4, 70_000, 2),
                PackedMask.of((byte) 1, (byte) 0, (byte) 1),
                PackedFloats.of(-0.5f, 0f, -3.25f),
                LogProbDistribution.TEMPERED,
                null,
                new SamplingParameters(1.0, 0, 1.0, 8, 7L, false, 0, 0.0, false),
                List.of(new Turn(Speaker.POLICY, 0, 3, null)),
                List.of(new VersionSpan(6L, 0, 2), new VersionSpan(7L, 2, 3)),
                0.5,
                Map.of(),
                FinishReason.STOP,
                5L,
                1L,
                2L,
                null,
                null,
                null,
                null,
                null,
                null,
                null);
    }
}
