package dev.millrace.schemas;

import com.fasterxml.jackson.databind.ObjectWriter;
import dev.millrace.schemas.registry.InMemorySchemaRegistry;
import dev.millrace.schemas.serde.AvroSerde;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import org.apache.avro.Schema;
import org.apache.avro.specific.SpecificRecord;
import org.junit.jupiter.api.Test;

/**
 * Adds a version to the history of every schema that has changed. No test: run it by its name, look at what it
 * wrote and commit that.
 *
 * <pre>{@code ./mvnw -pl schemas test -Dtest=PinRecords}</pre>
 */
class PinRecords {

    @Test
    void writeNewVersions() throws IOException {
        for (SpecificRecord example : Examples.all()) {
            Schema schema = SchemaDocumentation.withoutJavasNotes(example.getSchema());
            List<SchemaHistory.Version> versions = SchemaHistory.of(schema.getName());
            boolean known = !versions.isEmpty()
                    && versions.get(versions.size() - 1).schema().toString().equals(schema.toString());
            if (!known) {
                write(example, schema, versions.size() + 1);
            }
        }
    }

    @SuppressWarnings("unchecked") // the serde of the example's own class
    private static void write(SpecificRecord example, Schema schema, int number) throws IOException {
        AvroSerde<SpecificRecord> serde =
                (AvroSerde<SpecificRecord>) AvroSerde.of(example.getClass(), new InMemorySchemaRegistry());
        byte[] bytes = serde.serializer().serialize("pinned", example);
        ObjectWriter pretty = SchemaHistory.JSON.writerWithDefaultPrettyPrinter();
        Path directory = SchemaHistory.file(schema.getName(), number, "avsc").getParent();
        Files.createDirectories(directory);
        Files.writeString(
                SchemaHistory.file(schema.getName(), number, "avsc"),
                pretty.writeValueAsString(SchemaHistory.JSON.readTree(schema.toString())) + "\n");
        Files.writeString(
                SchemaHistory.file(schema.getName(), number, "hex"),
                HexFormat.of().formatHex(bytes).replaceAll("(.{100})", "$1\n") + "\n");
        Files.writeString(
                SchemaHistory.file(schema.getName(), number, "json"),
                pretty.writeValueAsString(
                                SchemaHistory.values(Arrays.copyOfRange(bytes, 5, bytes.length), schema, schema))
                        + "\n");
    }
}
