package dev.millrace.log.registry;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.log.registry.RegistryContents.Registration;
import dev.millrace.schemas.registry.SchemaRegistryException;
import java.nio.charset.StandardCharsets;

/**
 * Records of a {@code _schemas} topic in Confluent's layout.
 *
 * <p>The order of the fields in a key is part of the layout, because compaction compares keys byte by byte.
 */
final class SchemaLogRecords {
    private static final ObjectMapper JSON = new ObjectMapper();

    private SchemaLogRecords() {}

    static String schemaKey(Registration registration) {
        ObjectNode key = JSON.createObjectNode()
                .put("keytype", "SCHEMA")
                .put("subject", registration.subject())
                .put("version", registration.version())
                .put("magic", 1);
        return text(key);
    }

    static byte[] schemaValue(Registration registration) {
        return schemaValue(registration, false);
    }

    /** The registration as one that was deleted and whose id keeps its schema. */
    static byte[] deletedValue(Registration registration) {
        return schemaValue(registration, true);
    }

    private static byte[] schemaValue(Registration registration, boolean deleted) {
        ObjectNode value = JSON.createObjectNode()
                .put("subject", registration.subject())
                .put("version", registration.version())
                .put("id", registration.id())
                .put("schema", registration.schema())
                .put("deleted", deleted);
        return text(value).getBytes(StandardCharsets.UTF_8);
    }

    /** The key of the setting that holds for all subjects. */
    static String configKey() {
        return text(JSON.createObjectNode()
                .put("keytype", "CONFIG")
                .putNull("subject")
                .put("magic", 0));
    }

    static byte[] configValue(String compatibilityLevel) {
        return text(JSON.createObjectNode().put("compatibilityLevel", compatibilityLevel))
                .getBytes(StandardCharsets.UTF_8);
    }

    private static String text(ObjectNode node) {
        try {
            return JSON.writeValueAsString(node);
        } catch (JsonProcessingException e) {
            throw new SchemaRegistryException("a record of the schema log has no JSON form", e);
        }
    }
}
