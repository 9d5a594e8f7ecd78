package dev.millrace.schemas;

import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import org.apache.avro.LogicalTypes;
import org.apache.avro.Schema;

/** Walks schemas: what is not documented, what is packed. */
final class SchemaDocumentation {
    private SchemaDocumentation() {}

    /** The schema without the notes on Java types that the compiler leaves in the generated classes. */
    static Schema withoutJavasNotes(Schema schema) {
        return new Schema.Parser().parse(schema.toString().replace(",\"avro.java.string\":\"String\"", ""));
    }

    /** Records, fields and enums without a sentence about them. */
    static List<String> undocumented(Schema root) {
        List<String> missing = new ArrayList<>();
        for (Schema schema : named(root)) {
            if (schema.getDoc() == null || schema.getDoc().isBlank()) {
                missing.add(schema.getFullName());
            }
            if (schema.getType() == Schema.Type.RECORD) {
                schema.getFields().stream()
                        .filter(f -> f.doc() == null || f.doc().isBlank())
                        .forEach(f -> missing.add(schema.getName() + "." + f.name()));
            }
        }
        return missing;
    }

    /** Fields declared as packed, as {@code Record.field}, with whether Avro accepts the declaration. */
    static List<String> brokenLogicalTypes(Schema root) {
        List<String> broken = new ArrayList<>();
        for (Schema schema : all(root)) {
            if (schema.getProp("logicalType") != null) {
                try {
                    if (LogicalTypes.fromSchema(schema) == null) {
                        broken.add("unknown: " + schema);
                    }
                } catch (IllegalArgumentException e) {
                    broken.add(e.getMessage());
                }
            }
        }
        return broken;
    }

    /** Enums that do not name {@code UNKNOWN} as what a reader sees in place of a symbol it does not have. */
    static List<String> enumsWithoutDefault(Schema root) {
        return all(root).stream()
                .filter(s -> s.getType() == Schema.Type.ENUM && !"UNKNOWN".equals(s.getEnumDefault()))
                .map(Schema::getFullName)
                .toList();
    }

    private static List<Schema> named(Schema root) {
        return all(root).stream()
                .filter(s -> s.getType() == Schema.Type.RECORD || s.getType() == Schema.Type.ENUM)
                .toList();
    }

    private static Set<Schema> all(Schema root) {
        Set<Schema> seen = new LinkedHashSet<>();
        walk(root, seen);
        return seen;
    }

    private static void walk(Schema schema, Set<Schema> seen) {
        if (!seen.add(schema)) {
            return;
        }
        switch (schema.getType()) {
            case RECORD -> schema.getFields().forEach(field -> walk(field.schema(), seen));
            case ARRAY -> walk(schema.getElementType(), seen);
            case MAP -> walk(schema.getValueType(), seen);
            case UNION -> schema.getTypes().forEach(type -> walk(type, seen));
            default -> {}
        }
    }
}
