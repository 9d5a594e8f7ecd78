package dev.millrace.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;

import dev.millrace.runtime.config.ConfigBinder;
import dev.millrace.runtime.config.ConfigTree;
import dev.millrace.runtime.config.MillraceConfig;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import picocli.CommandLine;

/** What the documents tell people to type is understood, and the configuration files beside them can be used. */
class DocumentedCommandsTest {
    private static final Path ROOT = Path.of("..").toAbsolutePath().normalize();
    private static final Pattern FENCE = Pattern.compile("```[a-z]*\\n(.*?)```", Pattern.DOTALL);

    @Test
    void shouldUnderstandEveryCommandInTheDocuments() throws IOException {
        List<String> commands = new ArrayList<>();
        for (Path document : documents()) {
            for (Matcher fence = FENCE.matcher(Files.readString(document)); fence.find(); ) {
                String run = "";
                for (String line : fence.group(1).split("\n")) {
                    if (line.startsWith("run=\"")) {
                        run = line.substring(5, line.lastIndexOf('"'));
                    }
                    for (String command :
                            line.replace("\"$run\"", run).replace("$run", run).split("[&;|>]|\\s#|\\bdo\\b")) {
                        if (command.strip().startsWith("./millrace")) {
                            commands.add(command.strip()
                                    .substring("./millrace".length())
                                    .strip());
                        }
                    }
                }
            }
        }
        assertThat(commands).hasSizeGreaterThan(8);
        for (String command : commands) {
            String[] arguments = command.isEmpty()
                    ? new String[0]
                    : command.replace("$seed", "1").replace("<run id>", "a").split("\\s+");
            assertThatCode(() -> {
                        CommandLine.ParseResult parsed = Main.commandLine().parseArgs(arguments);
                        List<String> settings = new ArrayList<>();
                        for (int i = 0; i + 1 < arguments.length; i++) {
                            if (arguments[i].equals("--set")) {
                                settings.add(arguments[i + 1]);
                            }
                        }
                        var tree = ConfigTree.empty();
                        settings.forEach(setting -> ConfigTree.set(tree, setting));
                        ConfigBinder.bind(MillraceConfig.defaults(), tree);
                        assertThat(parsed.hasSubcommand() || parsed.isUsageHelpRequested())
                                .isTrue();
                    })
                    .as("./millrace " + command)
                    .doesNotThrowAnyException();
        }
    }

    private static List<Path> documents() throws IOException {
        try (Stream<Path> files = Files.walk(ROOT, 4)) {
            return files.filter(file -> file.getFileName().toString().equals("README.md"))
                    .sorted()
                    .toList();
        }
    }

    @Test
    void shouldTakeTheDeploymentsConfiguration() {
        MillraceConfig config = ConfigBinder.bind(
                MillraceConfig.defaults(), ConfigTree.read(ROOT.resolve("infra/docker/millrace.yaml")));
        assertThat(config.run().embedded()).isFalse();
    }
}
