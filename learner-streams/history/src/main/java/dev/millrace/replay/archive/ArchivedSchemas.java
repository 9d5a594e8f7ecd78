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
 * Schemas of an archive, or of files without a registry, by the ids in the records.
 *
 * <p>A current schema that no record used has a negative id, which occurs on no log, so replayed records can be read
 * but never taken for the run's. Thread-safe.
 */
public final class ArchivedSchemas implements SchemaRegistry {
    private final Map<Integer, Schema> byId = new ConcurrentHashMap<>();
    private final Map<String, Integer> ids = new HashMap<>();

    private final Map<Schema, Integer> cached = new ConcurrentHashMap<>();
    private final AtomicInteger lowest = new AtomicInteger();

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
