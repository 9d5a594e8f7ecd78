package dev.millrace.workloads;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;

/** Label of swept settings: last part of each key with its value. */
public final class SettingsLabel {
    private static final ObjectMapper JSON = new ObjectMapper();

    private SettingsLabel() {}

    public static String of(Map<String, String> settings) {
        return settings.isEmpty()
                ? "as it is"
                : settings.entrySet().stream()
                        .map(e -> e.getKey().substring(e.getKey().lastIndexOf('.') + 1) + " " + value(e.getValue()))
                        .collect(Collectors.joining(", "));
    }

    public static String of(Map<String, String> settings, Map<String, String> shared) {
        return of(settings.entrySet().stream()
                .filter(e -> !shared.containsKey(e.getKey()))
                .collect(Collectors.toMap(Map.Entry::getKey, Map.Entry::getValue, (a, b) -> a, TreeMap::new)));
    }

    private static String value(String text) {
        if (!text.startsWith("{")) {
            return text;
        }
        try {
            JsonNode json = JSON.readTree(text);
            return json.path("kind").asText().replace('_', '-') + " "
                    + json.path("value").asText()
                    + (json.has("spread") ? " spread " + json.path("spread").asText() : "");
        } catch (JsonProcessingException e) {
            return text;
        }
    }
}
