package dev.millrace.workloads;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.PropertyNamingStrategies;
import com.fasterxml.jackson.databind.SerializationFeature;
import com.fasterxml.jackson.databind.json.JsonMapper;
import dev.millrace.report.WholeFile;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
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
        return read(Files.readString(file), type);
    }

    public static <T> T read(String text, Class<T> type) throws IOException {
        return MAPPER.readValue(text, type);
    }

    /** @param name of a resource in the package of the class */
    public static <T> T read(Class<?> beside, String name, Class<T> type) throws IOException {
        try (InputStream resource = beside.getResourceAsStream(name)) {
            if (resource == null) {
                throw new NoSuchFileException(name);
            }
            return MAPPER.readValue(resource, type);
        }
    }
}
