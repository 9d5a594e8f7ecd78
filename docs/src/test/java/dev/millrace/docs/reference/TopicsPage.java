package dev.millrace.docs.reference;

import dev.millrace.schemas.run.RunSchemas;
import dev.millrace.schemas.run.RunTopics;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.stream.Collectors;
import org.apache.avro.Schema;

/** Topics of a run and the records on them, from the Avro schemas. */
final class TopicsPage {
    private static final String PREFIX = "x.";

    private TopicsPage() {}

    static String text() {
        Map<String, Schema> byTopic = RunSchemas.byTopic(new RunTopics(PREFIX));
        StringBuilder page = new StringBuilder("# Topics and schemas\n\n")
                .append(
                        "Every name below comes after the run's prefix: `millrace.` on the embedded broker, `millrace.<run id>.` on a "
                                + "cluster.\nValues are Avro in Confluent's wire format; a schema's subject is the topic's name with `-value`. "
                                + "`dead-letters` holds\nrefused records as they came. A run has `rewards`, `reference-scores` and `teacher-scores` only where `topology.join` waits for\nthem. `files` "
                                + "holds the tokenizer's files of a run on text: pieces of bytes as they are, under `SHA-256/piece/pieces`.\n\n")
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
        records.values().forEach(schema -> record(schema, parts, page));
        page.append("\n# Parts\n\nRecords that several of the above contain.\n");
        Map<String, Schema> told = new LinkedHashMap<>();
        while (!parts.keySet().equals(told.keySet())) {
            Map<String, Schema> next = new LinkedHashMap<>(parts);
            next.keySet().removeAll(told.keySet());
            next.values().forEach(schema -> record(schema, parts, page));
            told.putAll(next);
        }
        return page.toString();
    }

    private static void record(Schema schema, Map<String, Schema> parts, StringBuilder page) {
        page.append("\n## ").append(schema.getName()).append("\n\n");
        if (schema.getDoc() != null) {
            page.append(schema.getDoc()).append("\n\n");
        }
        page.append(Tables.head("field", "type", "default", "meaning"));
        for (Schema.Field field : schema.getFields()) {
            String symbols = symbols(field.schema());
            page.append(Tables.row(
                    Tables.code(field.name()),
                    type(field.schema(), parts),
                    field.hasDefaultValue() ? Tables.code(String.valueOf(shown(field.defaultVal()))) : "",
                    (field.doc() == null ? "" : field.doc()) + symbols));
        }
    }

    private static Object shown(Object value) {
        return value == org.apache.avro.JsonProperties.NULL_VALUE ? "null" : value;
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
            case UNION ->
                schema.getTypes().stream().map(part -> type(part, parts)).collect(Collectors.joining(" or "));
            case ENUM -> schema.getName();
            default ->
                schema.getProp("logicalType") == null ? schema.getType().getName() : schema.getProp("logicalType");
        };
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
