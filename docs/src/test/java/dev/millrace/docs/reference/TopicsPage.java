package dev.millrace.docs.reference;

import dev.millrace.schemas.run.RunSchemas;
import dev.millrace.schemas.run.RunTopics;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.avro.Schema;

/** Topics of a run and the records on them, from the Avro schemas. */
final class TopicsPage {
    private static final String PREFIX = "x.";
    private static final int SHARED_BY = 3;

    private TopicsPage() {}

    static String text() {
        Map<String, Schema> byTopic = RunSchemas.byTopic(new RunTopics(PREFIX));
        StringBuilder page = new StringBuilder("# Topics and schemas\n\n")
                .append(
                        "Topic names follow the run's prefix: `millrace.` on the embedded broker, `millrace.<run id>.` on a cluster. Values are "
                                + "Avro in Confluent's wire\nformat; the subject is the topic's name with `-value`. `dead-letters` holds refused records unchanged. "
                                + "`rewards`, `reference-scores` and\n`teacher-scores` exist only if `topology.join` waits for them. `files` holds a text run's "
                                + "tokenizer files, under `SHA-256/piece/pieces`. A type with `?` may be null.\nFull documentation and defaults are in the `.avsc` files of `schemas`.\n\n")
                .append(Tables.head("topic", "record"));
        Map<String, Schema> records = new LinkedHashMap<>();
        byTopic.forEach((topic, schema) -> {
            page.append(Tables.row(
                    Tables.code(topic.substring(PREFIX.length())),
                    "[" + schema.getName() + "](#" + schema.getName().toLowerCase(java.util.Locale.ROOT) + ")"));
            records.put(schema.getFullName(), schema);
        });
        page.append(
                "\n`packed-int32`, `packed-float32` and `packed-int8` are vectors in `bytes`, little-endian, one element a token:\n"
                        + "`numpy.frombuffer(field, '<i4')` reads the first.\n");
        Map<String, Schema> parts = new LinkedHashMap<>();
        Set<String> shared = shared(records.values(), parts);
        page.append("\n# Shared fields\n\nFields with the same meaning in ")
                .append(SHARED_BY)
                .append(" records or more; each record names those that it has.\n\n")
                .append(Tables.head("field", "type", "meaning"));
        shared.forEach(page::append);
        page.append("\n# Records\n");
        records.values().forEach(schema -> record(schema, parts, shared, page));
        page.append("\n# Parts\n\nRecords inside the records above.\n");
        Map<String, Schema> told = new LinkedHashMap<>();
        while (!parts.keySet().equals(told.keySet())) {
            Map<String, Schema> next = new LinkedHashMap<>(parts);
            next.keySet().removeAll(told.keySet());
            next.values().forEach(schema -> record(schema, parts, shared, page));
            told.putAll(next);
        }
        return page.toString();
    }

    /** Returns the rows of fields that several records have word for word. */
    private static Set<String> shared(Collection<Schema> records, Map<String, Schema> parts) {
        Map<String, Integer> times = new LinkedHashMap<>();
        records.forEach(schema -> schema.getFields().forEach(field -> times.merge(row(field, parts), 1, Integer::sum)));
        times.values().removeIf(count -> count < SHARED_BY);
        return times.keySet();
    }

    private static String row(Schema.Field field, Map<String, Schema> parts) {
        String meaning = field.doc() == null ? "" : Tables.firstSentence(field.doc()).replaceFirst(";.*", ".");
        return Tables.row(
                Tables.code(field.name()),
                type(field.schema(), parts),
                meaning + symbols(field.schema()));
    }

    private static void record(Schema schema, Map<String, Schema> parts, Set<String> shared, StringBuilder page) {
        page.append("\n## ").append(schema.getName()).append("\n\n");
        if (schema.getDoc() != null) {
            page.append(Tables.firstSentence(schema.getDoc())).append("\n\n");
        }
        String elsewhere = schema.getFields().stream()
                .filter(field -> shared.contains(row(field, parts)))
                .map(field -> Tables.code(field.name()))
                .collect(Collectors.joining(", "));
        if (!elsewhere.isEmpty()) {
            page.append("[Shared](#shared-fields): ").append(elsewhere).append(".\n\n");
        }
        String rows = schema.getFields().stream()
                .map(field -> row(field, parts))
                .filter(row -> !shared.contains(row))
                .collect(Collectors.joining());
        if (!rows.isEmpty()) {
            page.append(Tables.head("field", "type", "meaning")).append(rows);
        }
    }

    /** Records inside become parts of the page. */
    private static String type(Schema schema, Map<String, Schema> parts) {
        return switch (schema.getType()) {
            case RECORD -> {
                parts.putIfAbsent(schema.getFullName(), schema);
                yield schema.getName();
            }
            case ARRAY -> "array of " + type(schema.getElementType(), parts);
            case MAP -> "map of " + type(schema.getValueType(), parts);
            case UNION -> union(schema, parts);
            case ENUM -> schema.getName();
            default ->
                schema.getProp("logicalType") == null ? schema.getType().getName() : schema.getProp("logicalType");
        };
    }

    private static String union(Schema schema, Map<String, Schema> parts) {
        String types = schema.getTypes().stream()
                .filter(part -> part.getType() != Schema.Type.NULL)
                .map(part -> type(part, parts))
                .collect(Collectors.joining(" or "));
        return schema.isNullable() ? types + "?" : types;
    }

    private static String symbols(Schema schema) {
        return switch (schema.getType()) {
            case ENUM -> " " + (schema.getDoc() == null ? String.join(", ", schema.getEnumSymbols()) : schema.getDoc());
            case ARRAY -> symbols(schema.getElementType());
            case UNION -> schema.getTypes().stream().map(TopicsPage::symbols).collect(Collectors.joining());
            default -> "";
        };
    }
}
