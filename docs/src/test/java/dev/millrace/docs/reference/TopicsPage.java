package dev.millrace.docs.reference;

import dev.millrace.schemas.run.RunSchemas;
import dev.millrace.schemas.run.RunTopics;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.apache.avro.JsonProperties;
import org.apache.avro.Schema;

/**
 * Topics of a run and the records on them, from the Avro schemas. {@code topics.txt} shortens documentation of schemas: lines of
 * {@code Record.field | meaning}, without a meaning where the name says it, and {@code *.field | meaning} for fields of several
 * records, which the page explains once. The schemas' own text is registered with every run and pinned by {@code SchemaHistoryTest}.
 */
final class TopicsPage {
    private static final String PREFIX = "x.";
    private static final int IN_AN_ITEM = 4;
    /** Record of the meanings that hold for every record. */
    private static final String SHARED = "*.";
    /** Fields of every record on a topic. */
    private static final Set<String> ENVELOPE = Set.of("run_id", "epoch");

    private static final Pattern KEY = Pattern.compile("Topics? [^.]*?, key ([^.;:]+)");
    private static final String BEFORE = """
            # Topics and schemas

            - Prefix of every topic name: `millrace.` on the embedded broker, `millrace.<run id>.` on a cluster.
            - Values: Avro in Confluent's wire format. Subject: the topic's name with `-value`.
            - `rewards`, `reference-scores` and `teacher-scores` exist if `topology.join` waits for them.
            - `dead-letters` holds refused records unchanged, `files` a run's tokenizer files under `SHA-256/piece/pieces`.

            """;
    private static final String TYPES = """

            Every record also has `run_id` (string) and `epoch` (int, counts rollbacks); readers refuse other runs and older epochs.

            - `T?`: nullable. `= x`: default. `T[]`: array. `map<T>`: string to `T`.
            - `packed-int32`, `packed-float32`, `packed-int8`: little-endian vector in `bytes`, one element per token unless the field says otherwise;
              `numpy.frombuffer(field, '<i4')` reads the first.
            - `..._ms`: Unix milliseconds. `UNKNOWN` in an enum: a symbol of a newer schema.
            - Full text per field: [schemas](../../schemas/src/main/avro).

            Fields of several records:

            """;

    private TopicsPage() {}

    static String text() throws IOException {
        Map<String, String> shorter = shorter();
        Map<String, Schema> byTopic = RunSchemas.byTopic(new RunTopics(PREFIX));
        StringBuilder page = new StringBuilder(BEFORE).append(Tables.head("topic", "key", "record"));
        Map<String, Schema> records = new LinkedHashMap<>();
        byTopic.forEach((topic, schema) -> {
            Matcher key = KEY.matcher(schema.getDoc());
            page.append(Tables.row(
                    Tables.code(topic.substring(PREFIX.length())),
                    key.find() ? key.group(1) : "",
                    "[" + schema.getName() + "](#" + schema.getName().toLowerCase(Locale.ROOT) + ")"));
            records.put(schema.getFullName(), schema);
        });
        page.append(TYPES);
        shorter.keySet().stream()
                .filter(name -> name.startsWith(SHARED))
                .sorted()
                .forEach(name -> page.append("- `")
                        .append(name.substring(SHARED.length()))
                        .append("`: ")
                        .append(shorter.get(name))
                        .append('\n'));
        Map<String, Schema> parts = new LinkedHashMap<>();
        records.values().forEach(schema -> record(schema, parts, ENVELOPE, shorter, page));
        page.append("\n# Parts\n");
        Map<String, Schema> written = new LinkedHashMap<>();
        while (!parts.keySet().equals(written.keySet())) {
            Map<String, Schema> next = new LinkedHashMap<>(parts);
            next.keySet().removeAll(written.keySet());
            next.values().forEach(schema -> part(schema, parts, shorter, page));
            written.putAll(next);
        }
        shorter.keySet().removeIf(name -> name.startsWith(SHARED));
        if (!shorter.isEmpty()) {
            throw new AssertionError("topics.txt names records or fields that no schema has: " + shorter.keySet());
        }
        return page.toString();
    }

    private static Map<String, String> shorter() throws IOException {
        try (InputStream lines = Objects.requireNonNull(TopicsPage.class.getResourceAsStream("topics.txt"))) {
            Map<String, String> shorter = new HashMap<>();
            for (String line : new String(lines.readAllBytes(), StandardCharsets.UTF_8).split("\n")) {
                String[] cells = line.split(" \\|", 2);
                shorter.put(cells[0], cells[1].strip());
            }
            return shorter;
        }
    }

    private static void part(
            Schema schema, Map<String, Schema> parts, Map<String, String> shorter, StringBuilder page) {
        if (schema.getType() == Schema.Type.ENUM) {
            String symbols = shorter.remove(schema.getName());
            page.append("\n## ")
                    .append(schema.getName())
                    .append("\n\n")
                    .append(symbols == null ? String.join(", ", schema.getEnumSymbols()) : symbols)
                    .append(".\n");
        } else {
            record(schema, parts, Set.of(), shorter, page);
        }
    }

    private static void record(
            Schema schema,
            Map<String, Schema> parts,
            Set<String> without,
            Map<String, String> shorter,
            StringBuilder page) {
        String about = shorter.remove(schema.getName());
        page.append("\n## ")
                .append(schema.getName())
                .append("\n\n")
                .append(about == null ? Tables.firstSentence(schema.getDoc()) : about + ".")
                .append("\n\n");
        List<String> named = new ArrayList<>();
        for (Schema.Field field : schema.getFields()) {
            if (!without.contains(field.name())) {
                String own = shorter.remove(schema.getName() + "." + field.name());
                String meaning = own != null ? own : shorter.containsKey(SHARED + field.name()) ? "" : meaning(field);
                named.add("`" + field.name() + "` " + type(field.schema(), parts) + byDefault(field));
                if (!meaning.isEmpty()) {
                    String explained = named.remove(named.size() - 1) + ": " + meaning;
                    item(named, page);
                    item(List.of(explained), page);
                    named.clear();
                }
            }
        }
        item(named, page);
    }

    /** Items of at most {@link #IN_AN_ITEM} fields. */
    private static void item(List<String> fields, StringBuilder page) {
        for (int i = 0; i < fields.size(); i += IN_AN_ITEM) {
            page.append("- ")
                    .append(String.join(", ", fields.subList(i, Math.min(i + IN_AN_ITEM, fields.size()))))
                    .append('\n');
        }
    }

    /** The first sentence without the type. */
    private static String meaning(Schema.Field field) {
        String doc = Tables.firstSentence(field.doc())
                .replaceAll("; null [^;]*$", "")
                .replaceAll(", Unix milliseconds|, little-endian int32", "")
                .replaceAll("\\.$", "");
        return doc.substring(0, 1).toLowerCase(Locale.ROOT).equals(doc.substring(0, 1)) || acronym(doc)
                ? doc
                : doc.substring(0, 1).toLowerCase(Locale.ROOT) + doc.substring(1);
    }

    private static boolean acronym(String text) {
        return text.length() > 1 && Character.isUpperCase(text.charAt(1));
    }

    private static String byDefault(Schema.Field field) {
        return field.hasDefaultValue() && field.defaultVal() != JsonProperties.NULL_VALUE
                ? " = `" + (field.defaultVal().equals("") ? "\"\"" : field.defaultVal()) + "`"
                : "";
    }

    /** Records and enums inside become parts of the page. */
    private static String type(Schema schema, Map<String, Schema> parts) {
        return switch (schema.getType()) {
            case RECORD, ENUM -> {
                parts.putIfAbsent(schema.getFullName(), schema);
                yield "[" + schema.getName() + "](#" + schema.getName().toLowerCase(Locale.ROOT) + ")";
            }
            case ARRAY -> type(schema.getElementType(), parts) + "[]";
            case MAP -> "map<" + type(schema.getValueType(), parts) + ">";
            case UNION -> union(schema.getTypes(), parts);
            default ->
                schema.getProp("logicalType") == null ? schema.getType().getName() : schema.getProp("logicalType");
        };
    }

    private static String union(List<Schema> types, Map<String, Schema> parts) {
        String nullable = types.stream().anyMatch(type -> type.getType() == Schema.Type.NULL) ? "?" : "";
        return types.stream()
                        .filter(type -> type.getType() != Schema.Type.NULL)
                        .map(type -> type(type, parts))
                        .collect(Collectors.joining("|"))
                + nullable;
    }
}
