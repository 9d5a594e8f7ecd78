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
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
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

    /** Keys of the same environment, said once. */
    private static final String ENVIRONMENTS = "environments[].";

    private static final String TASK_ENVIRONMENT = "task.environment.";

    /** A row of the page; kinds of a choice that agree in all of it share one. */
    private record Row(String key, String shown, KeyScope scope, String meaning) {
        String text(List<String> kinds) {
            String mark = switch (scope) {
                case RUN -> "";
                case DEFAULT -> "ᵈ";
                case PROCESS -> "ᵖ";
            };
            return "- `" + key + "`" + mark + (kinds.contains("") ? "" : " (" + String.join(", ", kinds) + ")") + " = "
                    + shown + ": " + meaning + "\n";
        }
    }

    /** Rows with their kinds, by the first part of the key. */
    private final Map<String, Map<Row, List<String>>> page = new LinkedHashMap<>();

    @Test
    void shouldSayWhatEveryKeyMeans() throws IOException {
        sections("", MillraceConfig.defaults(), "");
        for (Class<?> shared : SHOWN_ONCE) {
            String key = ConfigBinder.keyOf(shared.getSimpleName().replace("Config", ""));
            for (Record kind : Choice.of(shared).orElseThrow().defaults()) {
                rows("…." + key, kind, Choice.kindOf(kind));
            }
        }
        StringBuilder text = new StringBuilder(
                "# Configuration\n\nEvery key `=` its default, for a YAML file (`--config`) or `--set key=value`. Brackets name the kinds that have a "
                        + "key.\n\nKeys are recorded on the log and the same in every process; ᵈ: a process may override it; ᵖ: not recorded.\n");
        page.forEach((section, rows) -> {
            text.append("\n## ").append(section).append("\n\n");
            rows.forEach((row, kinds) -> text.append(row.text(kinds)));
        });
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
                .allSatisfy(key -> assertThat(reference).contains("- `" + key + "`"));
    }

    /** Adds the keys of a record and of the records inside; {@code kind} is empty outside a choice. */
    private void sections(String path, Record record, String kind) throws IOException {
        rows(path, record, kind);
        for (RecordComponent component : record.getClass().getRecordComponents()) {
            String key = join(path, component);
            if (Choice.of(component.getType()).isPresent()) {
                if (kind.isEmpty() || !SHOWN_ONCE.contains(component.getType())) {
                    choice(key, component, (Record) value(component, record));
                }
            } else if (Choice.ofElements(component).isPresent()) {
                for (Record element : Choice.ofElements(component).orElseThrow().defaults()) {
                    sections(key + "[]", element, Choice.kindOf(element));
                }
            } else if (kind.isEmpty() && Record.class.isAssignableFrom(component.getType())) {
                sections(key, (Record) value(component, record), "");
            }
        }
    }

    /** One row for the choice, and one for each setting of each kind. */
    private void choice(String key, RecordComponent component, Record chosen) throws IOException {
        Choice choice = Choice.of(component.getType()).orElseThrow();
        String meaning =
                meaning(source(component.getDeclaringRecord()), component.getName(), component.getDeclaringRecord());
        add(
                new Row(
                        key + ".kind",
                        "`" + Choice.kindOf(chosen) + "`",
                        scope(key),
                        meaning + "; one of "
                                + choice.kinds().stream()
                                        .map(kind -> "`" + kind + "`")
                                        .collect(Collectors.joining(", "))),
                "");
        for (Record kind : choice.defaults()) {
            sections(key, kind.getClass() == chosen.getClass() ? chosen : kind, Choice.kindOf(kind));
        }
    }

    private void rows(String path, Record record, String kind) throws IOException {
        for (RecordComponent component : record.getClass().getRecordComponents()) {
            boolean choice = Choice.of(component.getType()).isPresent();
            boolean once = choice && SHOWN_ONCE.contains(component.getType());
            if (once || !choice && !Record.class.isAssignableFrom(component.getType())) {
                Object value = value(component, record);
                add(
                        new Row(
                                join(path, component) + (choice ? "." + Choice.KIND : ""),
                                choice ? "`" + Choice.kindOf(value) + "`" : shown(value),
                                scope(join(path, component)),
                                meaning(source(record.getClass()), component.getName(), record.getClass())
                                        + alternatives(component)),
                        kind);
            }
        }
    }

    private void add(Row row, String kind) {
        Row asInTask = new Row(row.key.replace(ENVIRONMENTS, TASK_ENVIRONMENT), row.shown, row.scope, row.meaning);
        if (asInTask.equals(row) || !page.getOrDefault("task", Map.of()).containsKey(asInTask)) {
            String section = row.key.replace("….", "");
            page.computeIfAbsent(
                            section.contains(".") ? section.replaceAll("[.\\[].*", "") : "clients",
                            name -> new LinkedHashMap<>())
                    .computeIfAbsent(row, first -> new ArrayList<>())
                    .add(kind);
        }
    }

    /** Returns who sets a key; keys that are shown once are parts of a step. */
    private static KeyScope scope(String key) {
        return key.startsWith("…") ? KeyScope.RUN : KeyScope.of(key);
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
                .strip();
    }
}
