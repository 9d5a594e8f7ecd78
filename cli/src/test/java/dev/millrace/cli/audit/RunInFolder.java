package dev.millrace.cli.audit;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.millrace.cli.Main;
import dev.millrace.infra.broker.EmbeddedBroker;
import dev.millrace.log.run.RunLog;
import dev.millrace.log.run.TopicsConfig;
import dev.millrace.log.scan.ConsistentCut;
import dev.millrace.log.scan.TopicScan;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.run.RunTopics;
import dev.millrace.schemas.serde.AvroSerde;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.avro.specific.SpecificRecord;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import picocli.CommandLine;

/** A run in a folder, trained and asked about by the commands as a user types them. Its broker is up only while a command runs. */
public record RunInFolder(Path directory) {
    private static final Duration PATIENCE = Duration.ofMinutes(5);

    public record Said(int status, String out, String err) {
        public String words() {
            return out.replaceAll("\\s+", " ");
        }

        public JsonNode json() throws Exception {
            return new ObjectMapper().readTree(out);
        }
    }

    Said millrace(String... arguments) {
        List<String> all = new ArrayList<>(List.of(arguments));
        all.addAll(List.of("--run-dir", directory.toString()));
        return said(all);
    }

    /** Of a run whose broker is up. */
    static Said millrace(RunLog log, String... arguments) {
        List<String> all = new ArrayList<>(List.of(arguments));
        all.addAll(List.of("--topic-prefix", log.connection().topics().prefix(), "--bootstrap-servers"));
        all.add(log.connection().clientProperties().get("bootstrap.servers").toString());
        return said(all);
    }

    /** Executes a command line in this process. */
    public static Said said(List<String> all) {
        StringWriter out = new StringWriter();
        StringWriter err = new StringWriter();
        CommandLine command = Main.commandLine().setOut(new PrintWriter(out)).setErr(new PrintWriter(err));
        int status = command.execute(all.toArray(String[]::new));
        return new Said(status, out.toString(), err.toString());
    }

    Said train(int maxSteps) {
        Said said = millrace(
                "train",
                "--plain",
                "--max-steps",
                Integer.toString(maxSteps),
                "--set",
                "goal.mean_reward=0",
                "--set",
                "admission.batch_sequences=64",
                "--set",
                "topology.batch.sequences=64",
                "--set",
                "weights.anchor_every=4",
                "--set",
                "weights.checkpoint_every=2");
        assertThat(said.status).as(said.toString()).isZero();
        return said;
    }

    /** Every committed record of a topic, decoded. */
    <T extends SpecificRecord> List<T> records(RunLog log, String topic, Class<T> type) {
        var deserializer = AvroSerde.of(type, log.connection().registry()).deserializer();
        return raw(log, topic).stream()
                .map(record -> deserializer.deserialize(topic, record.value()))
                .toList();
    }

    static List<ConsumerRecord<byte[], byte[]>> raw(RunLog log, String topic) {
        List<ConsumerRecord<byte[], byte[]>> records = new ArrayList<>();
        try (TopicScan scan = log.connection().scan(PATIENCE)) {
            ConsistentCut cut = scan.cut(List.of(topic));
            scan.read(topic, cut, records::add);
        }
        return records;
    }

    interface Look {
        void at(RunLog log) throws Exception;
    }

    void look(Look look) throws Exception {
        try (EmbeddedBroker broker = EmbeddedBroker.start(directory.resolve("broker"));
                RunLog log = RunLog.find(
                        Map.of("bootstrap.servers", broker.bootstrapServers()),
                        new RunTopics("millrace."),
                        TopicsConfig.defaults(),
                        "")) {
            look.at(log);
        }
    }

    List<PolicyVersion> versions() throws Exception {
        List<PolicyVersion> versions = new ArrayList<>();
        look(log -> versions.addAll(records(log, log.connection().topics().policyVersions(), PolicyVersion.class)));
        return versions;
    }
}
