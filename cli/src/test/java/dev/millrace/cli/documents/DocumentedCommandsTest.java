package dev.millrace.cli.documents;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;

import dev.millrace.cli.Main;
import dev.millrace.runtime.config.ConfigLayers;
import dev.millrace.runtime.config.MillraceConfig;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import picocli.CommandLine;

/** Documented commands parse, and the documents' configuration files load. */
class DocumentedCommandsTest {
    private static final CommandLine COMMANDS = Main.commandLine();
    private static final Pattern WORD = Pattern.compile("(?:[^\\s'\"]|'[^']*'|\"[^\"]*\")+");

    @Test
    void shouldUnderstandEveryCommandInTheDocuments() throws IOException {
        List<String> commands = new ArrayList<>();
        for (Path page : DocumentPages.all()) {
            for (List<String> block : DocumentPages.blocks(page)) {
                String run = "";
                for (String line : block) {
                    if (line.startsWith("run=\"")) {
                        run = line.substring(5, line.lastIndexOf('"'));
                    }
                    for (String command :
                            line.replace("\"$run\"", run).replace("$run", run).split("[&;|>]|\\bdo\\b")) {
                        if (command.strip().startsWith("./millrace")) {
                            commands.add(command.strip()
                                    .substring("./millrace".length())
                                    .strip());
                        }
                    }
                }
            }
        }
        assertThat(commands).hasSizeGreaterThan(60);
        for (String command : commands) {
            String[] arguments = command.isEmpty()
                    ? new String[0]
                    : words(command.replace("$seed", "1").replace("<run id>", "a"));
            assertThatCode(() -> {
                        CommandLine.ParseResult parsed = COMMANDS.parseArgs(arguments);
                        List<String> settings = new ArrayList<>();
                        for (int i = 0; i + 1 < arguments.length; i++) {
                            if (arguments[i].equals("--set")) {
                                settings.add(arguments[i + 1]);
                            }
                        }
                        ConfigLayers layers = new ConfigLayers();
                        boolean isOfAlgorithm = command.startsWith("correct --algorithm");
                        if (isOfAlgorithm || !command.startsWith("correct")) { // whose settings else are a preset's own
                            settings.forEach(setting -> layers.set(isOfAlgorithm ? "algorithm." + setting : setting));
                        }
                        layers.resolve();
                        assertThat(parsed.hasSubcommand() || parsed.isUsageHelpRequested())
                                .isTrue();
                    })
                    .as("./millrace " + command)
                    .doesNotThrowAnyException();
        }
    }

    /** As a shell divides them: what stands between quotes is one word. */
    private static String[] words(String command) {
        List<String> words = new ArrayList<>();
        for (Matcher word = WORD.matcher(command); word.find(); ) {
            words.add(word.group().replaceAll("['\"]", ""));
        }
        return words.toArray(String[]::new);
    }

    @Test
    void shouldUnderstandEveryCommandInASentenceOrATable() throws IOException {
        Pattern inline = Pattern.compile("`\\./millrace( [^`]*)?`");
        int found = 0;
        for (Path document : DocumentPages.all()) {
            String text =
                    DocumentPages.FENCE.matcher(DocumentPages.text(document)).replaceAll("");
            for (Matcher command = inline.matcher(text); command.find(); ) {
                String written = command.group(1) == null
                        ? ""
                        : command.group(1).split("[>|;]")[0].strip();
                found++;
                assertThatCode(() -> understand(written))
                        .as(document + ": ./millrace " + written)
                        .doesNotThrowAnyException();
            }
        }
        assertThat(found).isGreaterThan(20);
    }

    /** Parses a command that may be told without all that it needs. */
    private static void understand(String written) {
        try {
            COMMANDS.parseArgs(written.isEmpty() ? new String[0] : words(written));
        } catch (CommandLine.MissingParameterException toldInShort) {
            assertThat(toldInShort.getCommandLine().getParent()).isNotNull();
        }
    }

    /** A pattern that no test has runs nothing, and Maven says nothing of it. */
    @Test
    void shouldNameTestsThatExist() throws IOException {
        Map<String, String> tests = new HashMap<>();
        try (Stream<Path> all = Files.walk(DocumentPages.ROOT)) {
            for (Path file : all.filter(each ->
                            each.toString().endsWith(".java") && each.toString().contains("src/test/java"))
                    .toList()) {
                tests.put(file.getFileName().toString().replace(".java", ""), Files.readString(file));
            }
        }
        Pattern option = Pattern.compile("-D(?:it\\.)?test=(?:'([^']*)'|(\\S+))");
        int found = 0;
        for (Path page : DocumentPages.all()) {
            for (Matcher of = option.matcher(DocumentPages.text(page)); of.find(); ) {
                for (String name : (of.group(1) == null ? of.group(2) : of.group(1)).split(",")) {
                    found++;
                    String[] parts = name.split("#");
                    Pattern type = wildcard(parts[0]);
                    Pattern method =
                            Pattern.compile(parts.length == 1 ? "@\\w*Test\\b" : "void " + wildcard(parts[1]) + "\\(");
                    assertThat(tests.entrySet())
                            .as("%s: %s", page, name)
                            .anyMatch(test -> type.matcher(test.getKey()).matches()
                                    && method.matcher(test.getValue()).find());
                }
            }
        }
        assertThat(found).isGreaterThan(10);
    }

    private static Pattern wildcard(String pattern) {
        return Pattern.compile(pattern.replace("*", "\\w*"));
    }

    @Test
    void shouldTakeTheDeploymentsConfiguration() {
        MillraceConfig config = new ConfigLayers()
                .file(DocumentPages.ROOT.resolve("infra/docker/millrace.yaml"))
                .resolve();
        assertThat(config.run().embedded()).isFalse();
    }
}
