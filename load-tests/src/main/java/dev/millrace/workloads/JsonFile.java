package dev.millrace.workloads;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.PropertyNamingStrategies;
import com.fasterxml.jackson.databind.SerializationFeature;
import com.fasterxml.jackson.databind.json.JsonMapper;
import dev.millrace.report.WholeFile;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/** Records as JSON in snake case. */
public final class JsonFile {
    private static final ObjectMapper MAPPER = JsonMapper.builder()
            .propertyNamingStrategy(PropertyNamingStrategies.SNAKE_CASE)
            .enable(SerializationFeature.INDENT_OUTPUT)
            .build();

    private JsonFile() {}

    /** Writes the file atomically. */
    public static void write(Path file, Object record) throws IOException {
        WholeFile.write(file, text(record) + "\n");
    }

    public static String text(Object record) throws IOException {
        return MAPPER.writeValueAsString(record);
    }

    public static <T> T read(Path file, Class<T> type) throws IOException {
        return MAPPER.readValue(Files.readString(file), type);
    }
}
