package dev.millrace.conformance;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.conformance.ConformanceFamilies.PresetsFamily;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;

/** A file of golden cases, in file order, answers included. */
public record GoldenFile(Path path, List<JsonNode> cases) {
    private static final int FORMAT_VERSION = 1;

    /** Reads a case file, or every {@code *.json} directly in a directory, by name. */
    public static List<GoldenFile> under(Path fileOrDirectory, ObjectMapper json) throws IOException {
        if (!Files.isDirectory(fileOrDirectory)) {
            return List.of(read(fileOrDirectory, json));
        }
        List<Path> paths;
        try (Stream<Path> entries = Files.list(fileOrDirectory)) {
            paths = entries.filter(p -> p.getFileName().toString().endsWith(".json"))
                    .sorted()
                    .toList();
        }
        if (paths.isEmpty()) {
            throw new MalformedCaseException("no *.json case file in " + fileOrDirectory);
        }
        List<GoldenFile> files = new ArrayList<>();
        for (Path path : paths) {
            files.add(read(path, json));
        }
        return files;
    }

    private static GoldenFile read(Path path, ObjectMapper json) throws IOException {
        JsonNode root = json.readTree(path.toFile());
        if (root.has(PresetsFamily.NAME)) {
            return new GoldenFile(path, presets(root, json));
        }
        if (root.path("format_version").asInt(-1) != FORMAT_VERSION) {
            throw new MalformedCaseException(
                    path + ": format_version must be " + FORMAT_VERSION + ", found " + root.path("format_version"));
        }
        JsonNode cases = root.path("cases");
        if (!cases.isArray()) {
            throw new MalformedCaseException(path + ": no list of cases");
        }
        List<JsonNode> list = new ArrayList<>();
        cases.forEach(list::add);
        return new GoldenFile(path, list);
    }

    /** One case per preset, and one for the constructor's defaults. */
    private static List<JsonNode> presets(JsonNode root, ObjectMapper json) {
        List<JsonNode> cases = new ArrayList<>();
        cases.add(preset(PresetsFamily.DEFAULT_CONSTRUCTOR, root.path(PresetsFamily.DEFAULT_CONSTRUCTOR), json));
        for (Map.Entry<String, JsonNode> entry : root.path(PresetsFamily.NAME).properties()) {
            cases.add(preset(entry.getKey(), entry.getValue(), json));
        }
        return cases;
    }

    private static JsonNode preset(String name, JsonNode expected, ObjectMapper json) {
        ObjectNode golden = json.createObjectNode().put("name", name).put("family", PresetsFamily.NAME);
        golden.putObject("config").put("preset", name);
        golden.putObject("input");
        golden.set("expected", expected);
        return golden;
    }
}
