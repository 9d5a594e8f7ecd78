package dev.millrace.cli.replay;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;

/** A page that holds its numbers and draws them without asking anybody. */
final class ReportPage {
    private static final ObjectMapper JSON = new ObjectMapper();

    private ReportPage() {}

    /** @param page the resource with the page's layout */
    static void write(Path file, String page, JsonNode data) throws IOException {
        Files.writeString(
                file,
                resource(page).replace("/*PLOTS*/", resource("plots.js")).replace("/*DATA*/null", embedded(data)));
    }

    /** A name that holds "&lt;/script&gt;" must not end the script. */
    private static String embedded(JsonNode data) throws JsonProcessingException {
        return JSON.writeValueAsString(data).replace("<", "\\u003c");
    }

    private static String resource(String name) throws IOException {
        try (InputStream in = ReportPage.class.getResourceAsStream(name)) {
            return new String(in.readAllBytes(), StandardCharsets.UTF_8);
        }
    }
}
