package dev.millrace.schemas.registry;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.avro.Schema;

/**
 * An in-memory registry: ids count from 1 in the order in which schemas first appear.
 *
 * <p>For tests without a broker and for files that contain their schemas. Equal schemas share one id across
 * subjects.
 */
public final class InMemorySchemaRegistry implements SchemaRegistry {
    private final List<Schema> schemas = new ArrayList<>();
    private final Map<Schema, Integer> ids = new HashMap<>();

    @Override
    public synchronized int idOf(String subject, Schema schema) {
        return ids.computeIfAbsent(schema, s -> {
            schemas.add(s);
            return schemas.size();
        });
    }

    @Override
    public synchronized Schema byId(int id) {
        if (id < 1 || id > schemas.size()) {
            throw new UnknownSchemaException(id);
        }
        return schemas.get(id - 1);
    }

    @Override
    public void close() {
        // nothing to close
    }
}
