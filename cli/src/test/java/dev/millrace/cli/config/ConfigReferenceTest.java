package dev.millrace.cli.config;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.corrections.kl.CoefficientConfig;
import dev.millrace.corrections.kl.ReferenceConfig;
import dev.millrace.runtime.config.Choice;
import dev.millrace.runtime.config.ConfigBinder;
import dev.millrace.runtime.config.KeyScope;
import dev.millrace.runtime.config.MillraceConfig;
import java.io.IOException;
import java.lang.reflect.RecordComponent;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/**
 * Keeps the reference of all configuration keys equal to what the records say: names and defaults from the records
 * themselves, meanings from their {@code @param} tags. {@code -Dmillrace.write.reference=true} writes it anew.
 */
class ConfigReferenceTest {
    private static final Path ROOT = Path.of("..").toAbsolutePath().normalize();
    /** Choices of many kinds at once, told in one line each time. */
    private static final List<Class<?>> SHOWN_ONCE = List.of(CoefficientConfig.class, ReferenceConfig.class);

    private static final Path REFERENCE = Path.of("src/main/resources" + ConfigCommand.REFERENCE);

    @Test
    void shouldSayWhatEveryKeyMeans() throws IOException {
        StringBuilder text = new StringBuilder(
                "# Configuration\n\nEvery key with its default, for a YAML file (`--config`) or `--set key=value`. A kind in brackets says for which "
                        + "choice a key exists.\n\nEmpty: recorded on the log, the same in every process. `default`: recorded, a process may override it. "
                        + "`process`: not recorded.\n");
        sections("", MillraceConfig.defaults(), text);
        for (Class<?> shared : SHOWN_ONCE) {
            String key = ConfigBinder.keyOf(shared.getSimpleName().replace("Config", ""));
            for (Record kind : Choice.of(shared).orElseThrow().defaults()) {
                if (kind.getClass().getRecordComponents().length > 0) {
                    table(key + ": " + Choice.kindOf(kind), "…." + key, kind, text);
                }
            }
        }
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
        assertThat(ConfigBinder.keys(MillraceConfig.defaults()))
                .hasSizeGreaterThan(60)
                .allSatisfy(key -> assertThat(reference).contains("| `" + key + "` "));
    }

    private static void sections(String path, Record record, StringBuilder text) throws IOException {
        table(path.isEmpty() ? "clients" : path, path, record, text);
        for (RecordComponent component : record.getClass().getRecordComponents()) {
            String key = join(path, component);
            if (Choice.of(component.getType()).isPresent()) {
                choice(key, component, (Record) value(component, record), text);
            } else if (Choice.ofElements(component).isPresent()) {
                elements(key, component, text);
            } else if (Record.class.isAssignableFrom(component.getType())) {
                sections(key, (Record) value(component, record), text);
            }
        }
    }

    /** Begins a table where the first part of the key is another than that of the rows before. */
    private static void heading(String title, StringBuilder text) {
        String section = "\n## " + title.replaceAll("[.:\\[].*", "") + "\n";
        if (text.lastIndexOf("\n## ") != text.lastIndexOf(section) || text.indexOf(section) < 0) {
            text.append(section).append("\n| key | default | for | meaning |\n| --- | --- | --- | --- |\n");
        }
    }

    /** One row for the choice, and one for each setting of each kind. */
    private static void choice(String key, RecordComponent component, Record chosen, StringBuilder text)
            throws IOException {
        Choice choice = Choice.of(component.getType()).orElseThrow();
        heading(key, text);
        text.append("| `")
                .append(key)
                .append(".kind` | `")
                .append(Choice.kindOf(chosen))
                .append("` | " + scope(key) + " | ")
                .append(meaning(
                        source(component.getDeclaringRecord()), component.getName(), component.getDeclaringRecord()))
                .append("; one of ")
                .append(choice.kinds().stream().map(kind -> "`" + kind + "`").collect(Collectors.joining(", ")))
                .append(" |\n");
        for (Record kind : choice.defaults()) {
            Record shown = kind.getClass() == chosen.getClass() ? chosen : kind;
            if (kind.getClass().getRecordComponents().length > 0) {
                sections(key, shown, text, Choice.kindOf(kind));
            }
        }
    }

    /** The settings of each kind of a list's elements. */
    private static void elements(String key, RecordComponent component, StringBuilder text) throws IOException {
        for (Record kind : Choice.ofElements(component).orElseThrow().defaults()) {
            if (kind.getClass().getRecordComponents().length > 0) {
                sections(key + "[]", kind, text, Choice.kindOf(kind));
            }
        }
    }

    private static void sections(String path, Record record, StringBuilder text, String kind) throws IOException {
        table(path + ": " + kind, path, record, text);
        for (RecordComponent component : record.getClass().getRecordComponents()) {
            if (Choice.of(component.getType()).isPresent() && !SHOWN_ONCE.contains(component.getType())) {
                choice(join(path, component), component, (Record) value(component, record), text);
            } else if (Choice.ofElements(component).isPresent()) {
                elements(join(path, component), component, text);
            }
        }
    }

    private static void table(String title, String path, Record record, StringBuilder text) throws IOException {
        String source = source(record.getClass());
        List<String> rows = new ArrayList<>();
        for (RecordComponent component : record.getClass().getRecordComponents()) {
            boolean choice = Choice.of(component.getType()).isPresent();
            if (!choice && Record.class.isAssignableFrom(component.getType())) {
                continue;
            }
            Object value = value(component, record);
            if (!choice || SHOWN_ONCE.contains(component.getType())) {
                rows.add("| `" + join(path, component) + (choice ? "." + Choice.KIND : "") + "`"
                        + (title.contains(": ") ? " (" + title.substring(title.indexOf(": ") + 2) + ")" : "") + " | "
                        + (choice ? "`" + Choice.kindOf(value) + "`" : shown(value)) + " | "
                        + scope(join(path, component)) + " | "
                        + meaning(source, component.getName(), record.getClass()) + alternatives(component) + " |");
            }
        }
        if (!rows.isEmpty()) {
            heading(title, text);
            rows.forEach(row -> text.append(row).append('\n'));
        }
    }

    /** Returns who sets a key, empty for the run; keys that are shown once are parts of a step. */
    private static String scope(String key) {
        KeyScope scope = key.startsWith("…") ? KeyScope.RUN : KeyScope.of(key);
        return scope == KeyScope.RUN ? "" : scope.name().toLowerCase(Locale.ROOT);
    }

    private static String alternatives(RecordComponent component) {
        return Choice.of(component.getType())
                .or(() -> Choice.ofElements(component))
                .filter(choice -> !choice.kinds().isEmpty())
                .map(choice -> ": " + String.join(", ", choice.kinds()))
                .orElse("");
    }

    private static String join(String path, RecordComponent component) {
        return (path.isEmpty() ? "" : path + ".") + ConfigBinder.keyOf(component.getName());
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
            return "`" + choice.name().toLowerCase(Locale.ROOT) + "`";
        }
        if (value instanceof List<?> list && !list.isEmpty() && list.get(0) instanceof Record) {
            return "`[" + list.stream().map(Choice::kindOf).collect(Collectors.joining(", ")) + "]`";
        }
        return value.toString().isEmpty() ? "empty" : "`" + value + "`";
    }

    private static String source(Class<?> type) throws IOException {
        String file = type.getName().replaceAll("\\$.*", "").replace('.', '/') + ".java";
        String place = "src/main/java/" + file;
        try (Stream<Path> modules =
                Files.find(ROOT, 2, (path, is) -> is.isDirectory() && Files.isRegularFile(path.resolve(place)))) {
            return Files.readString(modules.findFirst()
                    .orElseThrow(() -> new AssertionError("no source of " + type))
                    .resolve(place));
        }
    }

    /** The text of a {@code @param} tag of the record, in one line. */
    private static String meaning(String source, String name, Class<?> type) {
        String before = source.substring(0, source.indexOf("record " + type.getSimpleName() + "("));
        String doc = before.substring(
                Math.max(0, before.lastIndexOf("/**"))); // the record's own, where several share a file
        Matcher tag = Pattern.compile("@param\\s+" + name + "\\s+(.*?)(?=\\n\\s*\\*\\s*@|\\n\\s*\\*/)", Pattern.DOTALL)
                .matcher(doc);
        assertThat(tag.find())
                .as("the record " + type.getName() + " has no @param for " + name)
                .isTrue();
        return tag.group(1)
                .replaceAll("\\s*\\n\\s*\\*\\s*", " ")
                .replaceAll("\\{@(?:code|link|value)\\s+#?((?:[^{}]|\\{[^{}]*})*)}", "`$1`")
                .replace("|", "\\|")
                .strip();
    }
}
