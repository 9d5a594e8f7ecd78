package dev.millrace.docs.mention;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** The table of alarms has those that the code raises, and no others. */
class AlarmsTest {
    private static final Path ROOT = Path.of("..").toAbsolutePath().normalize();
    private static final Pattern RAISED = Pattern.compile("\\.raise\\(\\s*(\"[^\"]+\"|[\\w.()]+)\\s*,");
    private static final Pattern LOST = Pattern.compile("new LostVersionsException\\(\\s*(\"[a-z-]+\"|[A-Z_]+)\\s*,");
    private static final Pattern ROW = Pattern.compile("(?m)^\\| `([a-z-]+)` \\| .* \\| .* \\| .+ \\|$");

    @Test
    void shouldListEveryAlarmOfTheCode() throws IOException {
        String page = Files.readString(ROOT.resolve("docs/operations.md"));
        String section = page.substring(page.indexOf("\n## Alarms\n"), page.indexOf("\n## Upgrades\n"));
        Set<String> listed = new TreeSet<>();
        for (Matcher row = ROW.matcher(section); row.find(); ) {
            assertThat(listed.add(row.group(1))).as(row.group(1)).isTrue();
        }
        assertThat(listed).isEqualTo(raised());
    }

    private static Set<String> raised() throws IOException {
        Set<String> names = new TreeSet<>();
        for (Path source : sources()) {
            String text = Files.readString(source);
            for (Matcher call = RAISED.matcher(text); call.find(); ) {
                if (!call.group(1).equals("e.alarm")) { // which the exception was made with
                    names.add(name(call.group(1), text, source));
                }
            }
            for (Matcher made = LOST.matcher(text); made.find(); ) {
                names.add(name(made.group(1), text, source));
            }
        }
        return names;
    }

    /** A literal, or a constant of the file. */
    private static String name(String argument, String text, Path source) {
        if (argument.startsWith("\"")) {
            return argument.substring(1, argument.length() - 1);
        }
        Matcher constant = Pattern.compile("String " + Pattern.quote(argument) + " = \"([a-z-]+)\"")
                .matcher(text);
        assertThat(constant.find())
                .as("%s is a constant of %s", argument, source)
                .isTrue();
        return constant.group(1);
    }

    private static List<Path> sources() throws IOException {
        try (Stream<Path> files = Files.walk(ROOT)) {
            return files.filter(file -> file.toString().endsWith(".java"))
                    .filter(file -> file.toString().contains("/src/main/java/"))
                    .toList();
        }
    }
}
