package dev.millrace.runtime.report;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.schemas.packed.PackedType;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Collection;
import java.util.HexFormat;
import java.util.Map;
import org.apache.avro.Schema;
import org.apache.avro.generic.IndexedRecord;

/** A record as JSON, field by field, with packed vectors as arrays of numbers. */
public final class RecordJson {
    private static final JsonNodeFactory JSON = JsonNodeFactory.instance;

    private RecordJson() {}

    public static ObjectNode of(IndexedRecord record) {
        ObjectNode json = JSON.objectNode();
        for (Schema.Field field : record.getSchema().getFields()) {
            json.set(field.name(), value(record.get(field.pos()), field.schema()));
        }
        return json;
    }

    private static JsonNode value(Object value, Schema schema) {
        if (value == null) {
            return JSON.nullNode();
        }
        if (value instanceof IndexedRecord record) {
            return of(record);
        }
        if (value instanceof Collection<?> elements) {
            ArrayNode array = JSON.arrayNode();
            elements.forEach(element -> array.add(value(element, present(schema).getElementType())));
            return array;
        }
        if (value instanceof Map<?, ?> entries) {
            ObjectNode object = JSON.objectNode();
            entries.forEach((name, entry) ->
                    object.set(name.toString(), value(entry, present(schema).getValueType())));
            return object;
        }
        if (value instanceof ByteBuffer bytes) {
            return bytes(bytes.duplicate().order(ByteOrder.LITTLE_ENDIAN), present(schema));
        }
        if (value instanceof Double number) {
            return JSON.numberNode(number);
        }
        if (value instanceof Float number) {
            return JSON.numberNode(number);
        }
        if (value instanceof Long number) {
            return JSON.numberNode(number);
        }
        if (value instanceof Integer number) {
            return JSON.numberNode(number);
        }
        return value instanceof Boolean truth ? JSON.booleanNode(truth) : JSON.textNode(value.toString());
    }

    /** Of a union with null, the other branch. */
    private static Schema present(Schema schema) {
        return schema.getType() != Schema.Type.UNION
                ? schema
                : schema.getTypes().stream()
                        .filter(branch -> branch.getType() != Schema.Type.NULL)
                        .findFirst()
                        .orElseThrow();
    }

    private static JsonNode bytes(ByteBuffer bytes, Schema schema) {
        if (!PackedType.isPacked(schema)) {
            byte[] raw = new byte[bytes.remaining()];
            bytes.get(raw);
            return JSON.textNode(HexFormat.of().formatHex(raw));
        }
        ArrayNode array = JSON.arrayNode();
        String type = schema.getLogicalType().getName();
        int elementBytes = ((PackedType) schema.getLogicalType()).elementBytes();
        while (bytes.remaining() >= elementBytes) {
            switch (type) {
                case "packed-int32" -> array.add(bytes.getInt());
                case "packed-float32" -> array.add(bytes.getFloat());
                default -> array.add(bytes.get());
            }
        }
        return array;
    }
}
