package dev.millrace.replay.archive;

import dev.millrace.schemas.registry.PublishedSchema;
import dev.millrace.schemas.registry.SchemaRegistry;
import dev.millrace.schemas.registry.UnknownSchemaException;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.avro.Schema;

/**
 * The schemas that an archive carries, or that were read from elsewhere than a registry, under the ids that its records have.
 *
 * <p>A schema of this version that no record of the archive was written with has an id below 0, which is on no log: what a
 * replay writes with it can be read here and be compared, and nobody can take it for a record of the run. Thread-safe.
 */
public final class ArchivedSchemas implements SchemaRegistry {
    private final Map<Integer, Schema> byId = new ConcurrentHashMap<>();
    /** By the text that is published, since compiled classes hold more than that. */
    private final Map<String, Integer> ids = new HashMap<>();

    private final Map<Schema, Integer> cached = new ConcurrentHashMap<>();
    private final AtomicInteger lowest = new AtomicInteger();

    /** @param texts by id */
    public ArchivedSchemas(Map<Integer, String> texts) {
        texts.forEach((id, text) -> {
            Schema schema = new Schema.Parser().parse(text);
            byId.put(id, schema);
            ids.put(PublishedSchema.text(schema), id);
        });
    }

    @Override
    public int idOf(String subject, Schema schema) {
        return cached.computeIfAbsent(schema, this::idOf);
    }

    private int idOf(Schema schema) {
        Integer id = ids.get(PublishedSchema.text(schema));
        if (id != null) {
            return id;
        }
        int unknown = lowest.decrementAndGet();
        byId.put(unknown, schema);
        return unknown;
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
