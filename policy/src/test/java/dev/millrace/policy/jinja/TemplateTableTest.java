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
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

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
            }
        }
        assertThat(String.join("\n", differing)).isEmpty();
        assertThat(refused)
                .as("refused though Jinja renders them: ''.__class__, half a character, cycler, self")
                .isEqualTo(4);
        assertThat(table.path("cases").size()).isGreaterThan(200);
    }

    /** Programs of the table with parts replaced by those of others: each ends with text or a refusal. */
    @Timeout(120)
    @Test
    void shouldRenderOrRefuseProgramsThatAreMixed() throws IOException {
        JsonNode table = JSON.readTree(
                Path.of("src", "test", "resources", "chat", "table.json").toFile());
        List<JsonNode> cases = new ArrayList<>();
        table.path("cases").forEach(cases::add);
        SplittableRandom random = new SplittableRandom(7);
        int rendered = 0;
        for (int i = 0; i < 20_000; i++) {
            JsonNode one = cases.get(random.nextInt(cases.size()));
            String into = one.path("template").asText();
            String from =
                    cases.get(random.nextInt(cases.size())).path("template").asText();
            int at = random.nextInt(into.length() + 1);
            int to = Math.min(into.length(), at + random.nextInt(6));
            int begin = random.nextInt(from.length() + 1);
            String part = from.substring(begin, Math.min(from.length(), begin + random.nextInt(12)));
            String mixed = into.substring(0, at) + part + into.substring(to);
            try {
                rendered += rendered(table, one, mixed).startsWith("REFUSED ") ? 0 : 1;
            } catch (RuntimeException e) {
                throw new AssertionError("a program fails: " + mixed, e);
            }
        }
        assertThat(rendered).isBetween(1_000, 19_000);
    }

    private static String rendered(JsonNode table, JsonNode of) {
        return rendered(table, of, of.path("template").asText());
    }

    private static String rendered(JsonNode table, JsonNode of, String template) {
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
            return new Template(template).render(values);
        } catch (TemplateException e) {
            return "REFUSED " + e.getMessage();
        }
    }
}
