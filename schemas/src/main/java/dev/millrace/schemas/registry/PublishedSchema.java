package dev.millrace.schemas.registry;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.avro.Schema;

/**
 * The published text of a schema: with its documentation, without the Java properties that Avro's compiler adds.
 */
public final class PublishedSchema {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final String JAVA_STRING_NOTE = "avro.java.string";

    private PublishedSchema() {}

    /** The text under which a schema is registered; equal schemas have equal texts. */
    public static String text(Schema schema) {
        try {
            JsonNode tree = JSON.readTree(schema.toString());
            return JSON.writeValueAsString(withoutNotes(tree));
        } catch (JsonProcessingException e) {
            throw new SchemaRegistryException("schema " + schema.getFullName() + " has no JSON form", e);
        }
    }

    private static JsonNode withoutNotes(JsonNode node) {
        if (node instanceof ObjectNode object) {
            object.remove(JAVA_STRING_NOTE);
            object.properties().forEach(field -> field.setValue(withoutNotes(field.getValue())));
            boolean onlyNamesAString =
                    object.size() == 1 && "string".equals(object.path("type").asText());
            return onlyNamesAString ? object.get("type") : object;
        }
        if (node instanceof ArrayNode array) {
            for (int i = 0; i < array.size(); i++) {
                array.set(i, withoutNotes(array.get(i)));
            }
        }
        return node;
    }
}
