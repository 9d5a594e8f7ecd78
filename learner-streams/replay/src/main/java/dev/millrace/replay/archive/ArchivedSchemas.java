package dev.millrace.replay.archive;

import dev.millrace.schemas.registry.PublishedSchema;
import dev.millrace.schemas.registry.SchemaRegistry;
import dev.millrace.schemas.registry.SchemaRegistryException;
import dev.millrace.schemas.registry.UnknownSchemaException;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.avro.Schema;

/** The schemas that an archive carries, under the ids that its records have. Thread-safe. */
final class ArchivedSchemas implements SchemaRegistry {
    private final Map<Integer, Schema> byId = new HashMap<>();
    /** By the text that is published, since compiled classes hold more than that. */
    private final Map<String, Integer> ids = new HashMap<>();

    private final Map<Schema, Integer> cached = new ConcurrentHashMap<>();

    ArchivedSchemas(Map<Integer, String> texts) {
        texts.forEach((id, text) -> {
            Schema schema = new Schema.Parser().parse(text);
            byId.put(id, schema);
            ids.put(PublishedSchema.text(schema), id);
        });
    }

    @Override
    public int idOf(String subject, Schema schema) {
        Integer id = cached.computeIfAbsent(schema, s -> ids.get(PublishedSchema.text(s)));
        if (id == null) {
            throw new SchemaRegistryException(
                    "no record of the archive was written with this version's schema of " + schema.getFullName() + " ("
                            + subject + "); replay it with the version of Millrace that the run was made with");
        }
        return id;
    }

    @Override
    public Schema byId(int id) {
        Schema schema = byId.get(id);
        if (schema == null) {
            throw new UnknownSchemaException(id);
        }
        return schema;
    }

    @Override
    public void close() {
        // holds nothing but memory
    }
}
