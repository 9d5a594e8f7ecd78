package dev.millrace.cli.documents;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.api.plugin.Plugin;
import dev.millrace.cli.start.StagedRepository;
import dev.millrace.corrections.stage.Stage;
import dev.millrace.infra.broker.EmbeddedBroker;
import dev.millrace.schemas.run.RunTopics;
import dev.millrace.stages.AlgorithmParts;
import dev.millrace.topology.MillraceTopology;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.common.GroupState;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** The projects on the pages, POM and class as written, built by Maven against this build's artifacts and run on what the POM brings. */
@Tag("smoke")
@Timeout(value = 20, unit = TimeUnit.MINUTES)
class ConsumerProjectIT {
    private static final Path HOW_TO = DocumentPages.ROOT.resolve("docs/how-to");
    private static final String UNWANTED =
            "(kafka_|kafka-(server|raft|metadata|storage)|scala|onnxruntime|jna|tokenizers|millrace-(infra|policy|weights|runtime|cli)).*";

    @TempDir
    private Path folder;

    @Test
    void shouldUseTheCorrectionsWithoutAnyOtherJar() throws Exception {
        Path page = HOW_TO.resolve("corrections-library.md");

        List<String> words = build(page, repository().with("corrections", Stage.class));

        assertThat(jars()).singleElement().asString().startsWith("millrace-corrections-");
        Process program = new ProcessBuilder(words).start();
        assertThat(new String(program.getInputStream().readAllBytes())).isEqualTo(block(page, "text"));
        assertThat(program.waitFor()).isZero();
    }

    @Test
    void shouldEmbedTheTopologyWithoutBrokerScalaAndOnnxRuntime() throws Exception {
        List<String> words = build(
                HOW_TO.resolve("own-streams-builder.md"),
                repository()
                        .with("api", Plugin.class)
                        .with("corrections", Stage.class)
                        .with("schemas", RunTopics.class)
                        .with("learner-streams/stages", AlgorithmParts.class)
                        .with("learner-streams/topology", MillraceTopology.class));

        assertThat(jars())
                .anyMatch(name -> name.startsWith("millrace-topology-"))
                .anyMatch(name -> name.startsWith("kafka-streams-"))
                .noneMatch(name -> name.matches(UNWANTED));
        try (EmbeddedBroker broker = EmbeddedBroker.start(folder.resolve("broker"));
                Admin admin = Admin.create(Map.of("bootstrap.servers", broker.bootstrapServers()))) {
            words.add(broker.bootstrapServers());
            Path output = folder.resolve("output");
            Process program = new ProcessBuilder(words)
                    .directory(folder.toFile())
                    .redirectErrorStream(true)
                    .redirectOutput(output.toFile())
                    .start();
            try {
                while (program.isAlive() && !isRunning(admin)) {
                    Thread.sleep(200);
                }
                assertThat(program.isAlive()).as(Files.readString(output)).isTrue();
            } finally {
                program.destroy();
                program.waitFor();
            }
        }
    }

    private static boolean isRunning(Admin admin) throws ExecutionException, InterruptedException {
        return admin.listGroups().all().get().stream()
                .anyMatch(group -> group.groupId().startsWith("millrace.my-run.")
                        && group.groupState().equals(Optional.of(GroupState.STABLE)));
    }

    private StagedRepository repository() throws IOException {
        return new StagedRepository(folder.resolve("repository"));
    }

    /** Compiles the page's project; returns the command that starts it. */
    private List<String> build(Path page, StagedRepository repository) throws IOException, InterruptedException {
        Files.writeString(folder.resolve("pom.xml"), block(page, "xml"));
        String program = block(page, "java");
        Matcher type = Pattern.compile("public class (\\w+)").matcher(program);
        assertThat(type.find()).isTrue();
        Path source = folder.resolve("src/main/java/example/" + type.group(1) + ".java");
        Files.createDirectories(source.getParent());
        Files.writeString(source, program);
        repository.build(
                folder,
                StagedRepository.plugin("compiler") + ":compile",
                StagedRepository.plugin("dependency") + ":build-classpath",
                "-Dmdep.outputFile=" + folder.resolve("class-path"));
        return new ArrayList<>(List.of(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-cp",
                folder.resolve("target/classes") + File.pathSeparator + Files.readString(folder.resolve("class-path")),
                "example." + type.group(1)));
    }

    /** Names of the jars that the POM brings. */
    private List<String> jars() throws IOException {
        return Arrays.stream(Files.readString(folder.resolve("class-path")).split(File.pathSeparator))
                .map(jar -> Path.of(jar).getFileName().toString())
                .toList();
    }

    private static String block(Path page, String language) {
        Matcher fence = Pattern.compile("```" + language + "\\n(.*?)```", Pattern.DOTALL)
                .matcher(DocumentPages.text(page));
        assertThat(fence.find()).as(page + " has " + language).isTrue();
        return fence.group(1);
    }
}
