package dev.millrace.cli.run;

import com.fasterxml.jackson.databind.ObjectMapper;
import dev.millrace.schemas.registry.RestSchemaRegistry;
import dev.millrace.schemas.registry.SchemaRegistry;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.net.URI;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.avro.Schema;

/** Writes by the newest schema of a subject, as clients without auto-registration do. */
final class LatestSchemas implements SchemaRegistry {
    private final String address;
    private final RestSchemaRegistry byId;
    private final Map<String, Integer> ids = new ConcurrentHashMap<>();

    LatestSchemas(String address) {
        this.address = address;
        this.byId = new RestSchemaRegistry(address, false, 10_000);
    }

    @Override
    public int idOf(String subject, Schema schema) {
        return ids.computeIfAbsent(subject, name -> {
            try (InputStream answer = URI.create(address + "/subjects/" + name + "/versions/latest")
                    .toURL()
                    .openStream()) {
                return new ObjectMapper().readTree(answer).get("id").intValue();
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        });
    }

    @Override
    public Schema byId(int id) {
        return byId.byId(id);
    }

    @Override
    public void close() {
        byId.close();
    }
}
