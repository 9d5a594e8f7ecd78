package dev.millrace.cli.config;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.lang.reflect.RecordComponent;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/**
 * Keeps the reference of all configuration keys equal to what the records say: names and defaults from the records
 * themselves, meanings from their {@code @param} tags. {@code -Dmillrace.write.reference=true} writes it anew.
 */
class ConfigReferenceTest {
    private static final Path ROOT = Path.of("..").toAbsolutePath().normalize();
    private static final Path REFERENCE = Path.of("src/main/resources" + ConfigCommand.REFERENCE);

    @Test
    void shouldSayWhatEveryKeyMeans() throws IOException {
        StringBuilder text = new StringBuilder("# Configuration\n\nEvery key with its default. "
            + "Put keys into a YAML file for `--config`, or one at a time into `--set key=value`.\n");
        sections("", MillraceConfig.defaults(), text);
        if (Boolean.getBoolean("millrace.write.reference")) {
            Files.createDirectories(REFERENCE.getParent());
            Files.writeString(REFERENCE, text);
        }
        assertThat(Files.readString(REFERENCE))
            .as("the reference is older than the records: run the test once with -Dmillrace.write.reference=true")
            .isEqualTo(text.toString());
    }

    @Test
    void shouldHaveEveryKeyInTheReference() throws IOException {
        String reference = Files.readString(REFERENCE);
        assertThat(ConfigBinder.keys(MillraceConfig.defaults())).hasSizeGreaterThan(60)
            .allSatisfy(key -> assertThat(reference).contains("| `" + key + "` |"));
    }

    private static void sections(String path, Record record, StringBuilder text) throws IOException {
        String source = source(record.getClass());
        List<String> rows = new ArrayList<>();
        List<RecordComponent> nested = new ArrayList<>();
        for (RecordComponent component : record.getClass().getRecordComponents()) {
            if (Record.class.isAssignableFrom(component.getType())) {
                nested.add(component);
            } else {
                String key = (path.isEmpty() ? "" : path + ".") + ConfigBinder.keyOf(component.getName());
                rows.add("| `" + key + "` | " + shown(value(component, record)) + " | " + meaning(source, component.getName(), record.getClass()) + " |");
            }
        }
        if (!rows.isEmpty()) {
            text.append("\n## ").append(path.isEmpty() ? "clients" : path).append("\n\n| key | default | meaning |\n| --- | --- | --- |\n");
            rows.forEach(row -> text.append(row).append('\n'));
        }
        for (RecordComponent component : nested) {
            sections((path.isEmpty() ? "" : path + ".") + ConfigBinder.keyOf(component.getName()), (Record) value(component, record), text);
        }
    }

    private static Object value(RecordComponent component, Record record) {
        try {
            return component.getAccessor().invoke(record);
        } catch (ReflectiveOperationException e) {
            throw new AssertionError(e);
        }
    }

    private static String shown(Object value) {
        if (value instanceof Enum<?> choice) {
            return "`" + choice.name().toLowerCase(java.util.Locale.ROOT) + "`";
        }
        return value.toString().isEmpty() ? "empty" : "`" + value + "`";
    }

    private static String source(Class<?> type) throws IOException {
        String file = type.getName().replace('.', '/') + ".java";
        try (Stream<Path> modules = Files.list(ROOT)) {
            Path found = modules.map(module -> module.resolve("src/main/java").resolve(file)).filter(Files::isRegularFile)
                .findFirst().orElseThrow(() -> new AssertionError("no source of " + type));
            return Files.readString(found);
        }
    }

    /** The text of a {@code @param} tag of the record, in one line. */
    private static String meaning(String source, String name, Class<?> type) {
        String doc = source.substring(0, source.indexOf("record " + type.getSimpleName()));
        Matcher tag = Pattern.compile("@param\\s+" + name + "\\s+(.*?)(?=\\n\\s*\\*\\s*@|\\n\\s*\\*/)", Pattern.DOTALL).matcher(doc);
        assertThat(tag.find()).as("the record " + type.getName() + " has no @param for " + name).isTrue();
        return tag.group(1).replaceAll("\\s*\\n\\s*\\*\\s*", " ")
            .replaceAll("\\{@(?:code|link|value)\\s+#?([^}]*)}", "`$1`").replace("|", "\\|").strip();
    }
}
