package dev.millrace.cli.run;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.millrace.cli.Main;
import dev.millrace.infra.broker.BrokerConfig;
import dev.millrace.infra.broker.EmbeddedBroker;
import dev.millrace.policy.huggingface.CheckpointDirectory;
import dev.millrace.policy.weights.Dtype;
import dev.millrace.weights.VersionHash;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.common.TopicPartition;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import picocli.CommandLine;

/** The best version on held-out prompts, by the commands as a user types them, while it is there and when Kafka has taken it. */
@Timeout(900)
class BestVersionIT {
    private static final ObjectMapper JSON = new ObjectMapper();

    @TempDir
    private Path folder;

    private record Said(int status, String out, String err) {
        JsonNode json() throws Exception {
            assertThat(status).as(toString()).isZero();
            return JSON.readTree(out);
        }
    }

    private Said millrace(String... arguments) {
        StringWriter out = new StringWriter();
        StringWriter err = new StringWriter();
        CommandLine command = Main.commandLine().setOut(new PrintWriter(out)).setErr(new PrintWriter(err));
        int status = command.execute(arguments);
        return new Said(status, out.toString(), err.toString().replaceAll("\\s+", " "));
    }

    private Said of(String... command) {
        List<String> arguments = new ArrayList<>(List.of(command));
        arguments.addAll(List.of("--run-dir", folder.resolve("run").toString()));
        return millrace(arguments.toArray(String[]::new));
    }

    @Test
    void shouldTryAndWriteTheBestVersionAndNameItWhenItIsGone() throws Exception {
        List<JsonNode> recorded = new ArrayList<>();
        int steps = 4;
        do { // the last version is always evaluated, one that training outran is not
            train(++steps);
            recorded.clear();
            of("evaluate", "--recorded", "--json").json().forEach(recorded::add);
            recorded.sort(Comparator.comparingDouble(
                            (JsonNode each) -> -each.path("reward").asDouble())
                    .thenComparing(each -> each.path("version").asInt()));
        } while (recorded.get(0).path("version").asInt() == steps);
        JsonNode best = recorded.get(0);
        int version = best.path("version").asInt();

        JsonNode tried = of("evaluate", "--version", "best", "--json").json();
        assertThat(tried.path("version").asInt()).isEqualTo(version);
        assertThat(tried.path("reward").asDouble())
                .isEqualTo(best.path("reward").asDouble());
        assertThat(tried.path("weights_sha256")).isEqualTo(best.path("weights_sha256"));
        Path model = folder.resolve("model");
        Said written = of("model", "export", "--version", "best", "--to", model.toString());
        assertThat(written.status).as(written.toString()).isZero();
        assertThat(written.out.replaceAll("\\s+", " ")).contains("version " + version + ", weights ");
        assertThat(VersionHash.of(new CheckpointDirectory(model), Dtype.F32))
                .isEqualTo(best.path("weights_sha256").asText());

        takeAllWeights();
        for (Said gone : List.of(
                of("evaluate", "--version", "best"),
                of(
                        "model",
                        "export",
                        "--version",
                        "best",
                        "--to",
                        folder.resolve("none").toString()))) {
            assertThat(gone.status).as(gone.toString()).isEqualTo(5);
            assertThat(gone.err)
                    .contains(String.format(
                            "the best version on held-out prompts, %d (reward %.3f), is not available: version %d ",
                            version, best.path("reward").asDouble(), version))
                    .contains(" is no longer kept: its chunks were on ")
                    .contains("no other evaluated version is kept");
        }
        assertThat(folder.resolve("none")).doesNotExist();
        assertThat(of("doctor", "--try", "0").out.replaceAll("\\s+", " "))
                .contains("best version: version " + version + ", the best on held-out prompts");
    }

    /** At a rate of next to nothing, so that rewards differ by their draws alone and any version may be the best. */
    private void train(int steps) {
        Said trained = of(
                "train",
                "--plain",
                "--max-steps",
                Integer.toString(steps),
                "--set",
                "goal.mean_reward=0",
                "--set",
                "admission.batch_sequences=32",
                "--set",
                "topology.batch.sequences=32",
                "--set",
                "learner.step.optimizer.learning_rate=1e-12",
                "--set",
                "evaluation={every_versions: 1, prompts: 4, samples: 2}");
        assertThat(trained.status).as(trained.toString()).isZero();
    }

    /** What a broker does by itself where a topic has outgrown its limit: its log begins later. */
    private void takeAllWeights() throws Exception {
        try (EmbeddedBroker broker = EmbeddedBroker.start(folder.resolve("run/broker"), BrokerConfig.defaults());
                Admin admin = Admin.create(Map.of("bootstrap.servers", broker.bootstrapServers()))) {
            TopicPartition weights = new TopicPartition(
                    admin.listTopics().names().get(90, TimeUnit.SECONDS).stream()
                            .filter(topic -> topic.endsWith("weights"))
                            .findFirst()
                            .orElseThrow(),
                    0);
            long end = admin.listOffsets(Map.of(weights, OffsetSpec.latest()))
                    .partitionResult(weights)
                    .get(90, TimeUnit.SECONDS)
                    .offset();
            admin.deleteRecords(Map.of(weights, RecordsToDelete.beforeOffset(end)))
                    .all()
                    .get(90, TimeUnit.SECONDS);
        }
    }
}
