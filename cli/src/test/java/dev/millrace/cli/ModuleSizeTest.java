package dev.millrace.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** No module becomes the house: each holds at most a quarter of the lines that ship. */
class ModuleSizeTest {
    private static final Path ROOT = Path.of("..").toAbsolutePath().normalize();
    private static final Pattern MODULE = Pattern.compile("<module>([^<]+)</module>");

    @Test
    void shouldHoldAtMostAQuarterOfTheCodeInOneModule() throws IOException {
        Map<String, Long> lines = new TreeMap<>();
        for (Matcher module = MODULE.matcher(Files.readString(ROOT.resolve("pom.xml"))); module.find(); ) {
            lines.put(module.group(1), lines(ROOT.resolve(module.group(1)).resolve("src/main/java")));
        }
        long all = lines.values().stream().mapToLong(Long::longValue).sum();

        assertThat(lines)
                .allSatisfy((module, own) -> assertThat(own)
                        .as("lines of " + module + ", of " + all + " in all")
                        .isLessThanOrEqualTo(all / 4));
    }

    private static long lines(Path sources) throws IOException {
        if (!Files.isDirectory(sources)) {
            return 0;
        }
        long lines = 0;
        try (Stream<Path> files = Files.walk(sources)) {
            for (Path file :
                    files.filter(file -> file.toString().endsWith(".java")).toList()) {
                try (Stream<String> each = Files.lines(file)) {
                    lines += each.count();
                }
            }
        }
        return lines;
    }
}
