package dev.millrace.policy.jinja;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.core.type.TypeReference;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** The table that {@code table.py} makes with Jinja in the environment of transformers: the same text, and what Jinja refuses is refused. */
class TemplateTableTest {
    private static final ObjectMapper JSON = new ObjectMapper();

    @Test
    void shouldRenderEveryCaseAsJinjaOrRefuseItByName() throws IOException {
        JsonNode table = JSON.readTree(
                Path.of("src", "test", "resources", "chat", "table.json").toFile());
        List<String> differing = new ArrayList<>();
        int refused = 0;
        for (JsonNode each : table.path("cases")) {
            String found = rendered(table, each);
            boolean isRefused = found.startsWith("REFUSED ");
            refused += isRefused && each.has("text") ? 1 : 0;
            if (each.has("refused")
                    ? !isRefused
                    : !isRefused && !found.equals(each.path("text").asText())) {
                differing.add(each.path("name").asText() + "\n  " + each.path("template") + "\n  expected "
                        + each.path("text") + each.path("refused") + "\n  found    " + JSON.writeValueAsString(found));
            } else if (isRefused && each.has("text")) {
                System.err.println("refused: " + each.path("template") + ": " + found);
            }
        }
        assertThat(String.join("\n", differing)).isEmpty();
        assertThat(refused).as("refused though Jinja renders them").isLessThan(10);
        assertThat(table.path("cases").size()).isGreaterThan(200);
    }

    private static String rendered(JsonNode table, JsonNode of) {
        Map<String, Object> values = new HashMap<>();
        values.put(
                "messages",
                JSON.convertValue(
                        table.path("conversations").path(of.path("conversation").asText()),
                        new TypeReference<List<Map<String, Object>>>() {}));
        values.put(
                "tools",
                of.path("tools").asBoolean()
                        ? JSON.convertValue(table.path("tools"), new TypeReference<List<Map<String, Object>>>() {})
                        : null);
        values.put("documents", null);
        values.put("add_generation_prompt", true);
        values.put("bos_token", "<s>");
        values.put("eos_token", "</s>");
        try {
            return new Template(of.path("template").asText()).render(values);
        } catch (TemplateException e) {
            return "REFUSED " + e.getMessage();
        }
    }
}
