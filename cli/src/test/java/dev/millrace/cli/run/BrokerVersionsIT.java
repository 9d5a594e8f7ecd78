package dev.millrace.cli.run;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.millrace.cli.Main;
import dev.millrace.cli.start.StagedRepository;
import dev.millrace.runtime.rights.SecuredBroker;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** A run of this build on Kafka's own server in other versions, which has its defaults but for what a small single node needs. */
@Tag("brokers")
@Timeout(value = 20, unit = TimeUnit.MINUTES)
class BrokerVersionsIT {
    private static final int STEPS = 3;
    private static final int LIMIT_MS = 300_000;

    @TempDir
    private Path folder;

    @ParameterizedTest
    @ValueSource(strings = {"3.9.1", "4.3.1", "4.4.0"})
    void shouldTrainOnABrokerAndDeleteTheRun(String version) throws Exception {
        List<String> java = List.of(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-Xmx512m",
                "-XX:+UseSerialGC",
                "-XX:TieredStopAtLevel=1",
                "-cp",
                classPath(version));
        String address = "127.0.0.1:" + SecuredBroker.freePort();
        String settings = settings(address).toString();
        assertThat(start(java, "kafka.tools.StorageTool", "format", "-t", "bWlsbHJhY2UtYnJva2Vycw", "-c", settings)
                        .waitFor())
                .as(Files.readString(said()))
                .isZero();
        Process broker = start(java, "kafka.Kafka", settings);
        Map<String, Object> client = Map.of("bootstrap.servers", address, "default.api.timeout.ms", LIMIT_MS);
        try (Admin admin = Admin.create(client)) {
            assertThat(admin.describeCluster().nodes().get()).hasSize(1);
            train(address);

            assertThat(millrace("ledger", address)).startsWith("0 ").contains("It adds up.");
            assertThat(millrace("topics check", address)).isEqualTo("0 23 topics are as the run expects them.\n");
            String deleted;
            long deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(LIMIT_MS);
            do { // refused as long as the run may be alive
                deleted = millrace("delete --yes", address);
            } while (!deleted.startsWith("0 ") && System.nanoTime() < deadline);
            assertThat(deleted).startsWith("0 ").doesNotContain("still there");
            assertThat(admin.listTopics().names().get()).isEqualTo(Set.of("_schemas"));
            assertThat(admin.listGroups().all().get()).isEmpty();
        } finally {
            broker.destroyForcibly().waitFor();
        }
    }

    /** The server's jars and what they need. */
    private String classPath(String version) throws IOException, InterruptedException {
        Files.writeString(folder.resolve("pom.xml"), """
                <project>
                  <modelVersion>4.0.0</modelVersion>
                  <groupId>example</groupId><artifactId>broker</artifactId><version>1</version>
                  <dependencies>
                    <dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>%s</version></dependency>
                  </dependencies>
                </project>
                """.formatted(version));
        return StagedRepository.classPath(folder);
    }

    private Path settings(String address) throws IOException {
        String controller = "127.0.0.1:" + SecuredBroker.freePort();
        return Files.writeString(
                folder.resolve("server.properties"), """
                process.roles=broker,controller
                node.id=1
                controller.quorum.voters=1@%s
                controller.listener.names=CONTROLLER
                listeners=PLAINTEXT://%s,CONTROLLER://%1$s
                listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
                log.dirs=%s
                offsets.topic.replication.factor=1
                offsets.topic.num.partitions=4
                transaction.state.log.replication.factor=1
                transaction.state.log.min.isr=1
                transaction.state.log.num.partitions=4
                """.formatted(controller, address, folder.resolve("data")));
    }

    private Path said() {
        return folder.resolve("broker.log");
    }

    private Process start(List<String> java, String... words) throws IOException {
        List<String> command = new ArrayList<>(java);
        command.addAll(List.of(words));
        return new ProcessBuilder(command)
                .redirectErrorStream(true)
                .redirectOutput(ProcessBuilder.Redirect.appendTo(said().toFile()))
                .start();
    }

    private void train(String address) throws Exception {
        try (TrainProcess train = TrainProcess.train(
                folder.resolve("run"),
                "--bootstrap-servers",
                address,
                "--set",
                "run.id=stranger",
                "--max-steps",
                Integer.toString(STEPS))) {
            assertThat(train.awaitExit(TrainProcess.PATIENCE))
                    .as(train.toString())
                    .isZero();
        }
        JsonNode summary =
                new ObjectMapper().readTree(folder.resolve("run/summary.json").toFile());
        assertThat(summary.path("steps").asInt()).isEqualTo(STEPS);
        assertThat(summary.at("/rollouts/adds_up").asBoolean())
                .as(summary.toString())
                .isTrue();
        assertThat(summary.at("/rollouts/dead_lettered").asInt()).isZero();
    }

    /** Its exit status and what it printed. */
    private static String millrace(String command, String address) {
        List<String> words = new ArrayList<>(List.of(command.split(" ")));
        words.addAll(List.of("--run", "stranger", "--bootstrap-servers", address));
        StringWriter said = new StringWriter();
        int status = Main.commandLine()
                .setOut(new PrintWriter(said))
                .setErr(new PrintWriter(said))
                .execute(words.toArray(String[]::new));
        return status + " " + said;
    }
}
