package dev.millrace.cli.run;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.millrace.api.catalogue.Catalogue;
import dev.millrace.api.plugin.Plugin;
import dev.millrace.cli.audit.RunInFolder;
import dev.millrace.cli.start.StagedRepository;
import dev.millrace.corrections.stage.Stage;
import java.io.IOException;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;
import java.util.jar.JarOutputStream;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** The example plug-in as a stranger has it: built by Maven from its own pom against Millrace's artifacts, and used from its jar. */
@Timeout(1200)
class ExamplePluginIT {
    private static final Path ROOT = Path.of("..").toAbsolutePath().normalize();

    @TempDir
    private static Path shared;

    private static Path project;
    private static Path jar;

    @TempDir
    private Path folder;

    @BeforeAll
    static void build() throws Exception {
        project = shared.resolve("project");
        copy(ROOT.resolve("infra/examples/plugin"), project);
        new StagedRepository(shared.resolve("repository"))
                .with("api", Plugin.class)
                .with("corrections", Stage.class)
                .build(project, "package");
        jar = project.resolve("target/lab-plugin-1.0.jar");
    }

    @AfterAll
    static void removePlugins() {
        Catalogue.install(List.of());
    }

    @Test
    void shouldListWhatThePluginBringsThroughEachExtensionPoint() throws Exception {
        JsonNode listed = new ObjectMapper().readTree(run(0, "plugins", "--json", "--plugin-path", jar.toString()));
        Map<String, String> brought = new TreeMap<>();
        for (JsonNode point : listed.get("doors")) {
            for (JsonNode kind : point.get("kinds")) {
                if (kind.get("plugin").asText().equals("lab")) {
                    brought.put(point.get("name").asText(), kind.get("name").asText());
                }
            }
        }
        assertThat(brought)
                .isEqualTo(Map.of(
                        "task", "reverse",
                        "environment", "spelling",
                        "reward", "first_bonus",
                        "reward-stage", "reward_cap",
                        "advantage", "median_baseline",
                        "mask", "last_tokens",
                        "objective", "scaled_reinforce",
                        "step-observer", "step_file"));
        JsonNode plugin = StreamSupport.stream(listed.get("plugins").spliterator(), false)
                .filter(each -> each.get("name").asText().equals("lab"))
                .findFirst()
                .orElseThrow();
        assertThat(plugin.get("version").asText()).isEqualTo("1.0");
        assertThat(plugin.get("place").asText()).isEqualTo(jar.toRealPath().toString());
        assertThat(run(0, "plugins", "--plugin-path", jar.toString())).contains("lab  1.0  " + jar.toRealPath());
    }

    @Test
    void shouldTellItsSettingsInTheReference() {
        assertThat(run(0, "config", "--reference", "--plugin-path", jar.toString()))
                .contains("## task: reverse")
                .contains("- `length` = `3`: letters of a question, 1 to 16");
    }

    @Test
    void shouldTrainWithEveryExtensionPointAtWork() throws Exception {
        Path plugins = Files.createDirectories(folder.resolve("plugins")); // a folder of plug-ins does as well
        Files.copy(jar, plugins.resolve("lab.jar"));
        try (TrainProcess train = TrainProcess.train(
                folder.resolve("run"),
                "--plain",
                "--plugin-path",
                "plugins",
                "--config",
                project.resolve("run.yaml").toString(),
                "--set",
                "reward.bonus=40")) {
            assertThat(train.awaitExit(TrainProcess.PATIENCE))
                    .as(train::toString)
                    .isZero();
        }
        List<String> steps = Files.readAllLines(folder.resolve("steps.txt"));
        assertThat(steps).as("the observer was told of each step").hasSize(4);
        assertThat(steps.get(3)).startsWith("version=4 batch=3 ");
        assertThat(steps).allSatisfy(step -> {
            assertThat(number(step, "reward_mean"))
                    .as("a right beginning of one in four, at 40")
                    .isBetween(4.0, 25.0);
            assertThat(number(step, "lab/scale"))
                    .as("the objective's own metric")
                    .isEqualTo(0.5);
            double sequences = number(step, "stage.last_tokens.sequences_seen");
            assertThat(number(step, "stage.last_tokens.tokens_changed"))
                    .as("one token of each sequence is masked")
                    .isEqualTo(sequences);
            assertThat(number(step, "tokens_trained"))
                    .as("two of three are left")
                    .isEqualTo(2 * sequences);
            assertThat(number(step, "stage.reward_cap.sequences_changed"))
                    .as("rewards of 40 are capped")
                    .isPositive();
            assertThat(number(step, "stage.median_baseline.groups")).isPositive();
        });
        assertThat(Files.readString(folder.resolve("run/config.yaml")))
                .contains("kind: reverse")
                .contains("bonus: 40");
        assertThat(run(0, "ledger", "--run-dir", folder.resolve("run").toString(), "--plugin-path", jar.toString()))
                .contains("It adds up.");
        assertThat(run(0, "replay", "--run-dir", folder.resolve("run").toString(), "--plugin-path", jar.toString()))
                .as("what plug-ins decided is decided again")
                .contains("as recorded: the replay reproduced every record of the run byte for byte");
        assertThat(refused("ledger", "--run-dir", folder.resolve("run").toString()))
                .contains(
                        "task.kind must be one of inc, sort, guess, text, or a kind of a plug-in (--plugin-path): 'reverse'");
    }

    @Test
    void shouldRefuseASettingOfThePluginInItsOwnWords() {
        assertThat(refused(
                        "config", "--plugin-path", jar.toString(), "--set", "task=reverse", "--set", "task.length=17"))
                .isEqualTo("task.length must be 1 to 16: 17");
    }

    @Test
    void shouldRefuseTwoJarsOfOneName() throws Exception {
        Path other = Files.copy(jar, folder.resolve("copy.jar"));
        assertThat(refused("config", "--plugin-path", jar.toString(), "--plugin-path", other.toString()))
                .isEqualTo("two plug-ins are called lab: " + jar.toRealPath() + " and " + other.toRealPath()
                        + "; take one of them away");
    }

    @Test
    void shouldRefuseWhatIsNoJar() throws Exception {
        Path text = Files.writeString(folder.resolve("text.jar"), "text");
        assertThat(refused("train", "--plugin-path", text.toString()))
                .startsWith("the plug-in " + text.toRealPath() + " cannot be read: text.jar is no jar (");
    }

    @Test
    void shouldRefuseWhatWasBuiltAgainstAnotherVersion() throws Exception {
        Path old = builtAgainst(7);
        assertThat(refused("plugins", "--plugin-path", old.toString()))
                .isEqualTo(
                        "the plug-in " + old.toRealPath() + " was built against version 7 of the plug-in interface, and"
                                + " this is version 1; build it against the millrace-api of this release, or take the jar away");
    }

    /** The example's jar with its classes as another release's interface would have made them. */
    private Path builtAgainst(int version) throws IOException {
        Path api = Files.createDirectories(folder.resolve("dev/millrace/api/plugin"))
                .resolve("PluginApi.java");
        Files.writeString(
                api,
                "package dev.millrace.api.plugin; public final class PluginApi { public static final int VERSION = "
                        + version + "; }");
        Path classes = Files.createDirectories(folder.resolve("classes"));
        List<String> arguments = new ArrayList<>(List.of(
                "-d", classes.toString(), "-cp", System.getProperty("java.class.path"), "-proc:none", api.toString()));
        try (Stream<Path> sources = Files.walk(project.resolve("src"))) {
            sources.map(Path::toString).filter(name -> name.endsWith(".java")).forEach(arguments::add);
        }
        assertThat(ToolProvider.getSystemJavaCompiler().run(null, null, null, arguments.toArray(String[]::new)))
                .isZero();
        Path result = folder.resolve("old.jar");
        try (JarFile from = new JarFile(jar.toFile());
                OutputStream out = Files.newOutputStream(result);
                JarOutputStream into = new JarOutputStream(out)) {
            for (JarEntry entry :
                    from.stream().filter(each -> !each.isDirectory()).toList()) {
                Path compiled = classes.resolve(entry.getName());
                into.putNextEntry(new JarEntry(entry.getName()));
                into.write(
                        Files.exists(compiled)
                                ? Files.readAllBytes(compiled)
                                : from.getInputStream(entry).readAllBytes());
            }
        }
        return result;
    }

    private static double number(String step, String name) {
        var matcher =
                Pattern.compile("[{ ]" + Pattern.quote(name) + "=([-0-9.E]+)").matcher(step);
        assertThat(matcher.find()).as("%s in %s", name, step).isTrue();
        return Double.parseDouble(matcher.group(1));
    }

    private static String run(int status, String... arguments) {
        RunInFolder.Said said = RunInFolder.said(Arrays.asList(arguments));
        assertThat(said.status()).as(said.toString()).isEqualTo(status);
        return said.out();
    }

    private static String refused(String... arguments) {
        RunInFolder.Said said = RunInFolder.said(Arrays.asList(arguments));
        assertThat(said.status()).as(said.toString()).isEqualTo(2);
        List<String> lines = said.err().lines().toList();
        assertThat(lines).as(said.toString()).hasSize(1);
        return lines.get(0).substring("millrace: ".length());
    }

    private static void copy(Path from, Path to) throws IOException {
        try (Stream<Path> files = Files.walk(from)) {
            for (Path file : files.filter(each -> !from.relativize(each).startsWith("target"))
                    .collect(Collectors.toList())) {
                Path target = to.resolve(from.relativize(file).toString());
                try {
                    if (Files.isDirectory(file)) {
                        Files.createDirectories(target);
                    } else {
                        Files.copy(file, target);
                    }
                } catch (IOException e) {
                    throw new UncheckedIOException(e);
                }
            }
        }
    }
}
