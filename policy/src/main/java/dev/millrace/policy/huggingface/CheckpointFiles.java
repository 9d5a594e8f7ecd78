package dev.millrace.policy.huggingface;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/** Which files of a directory hold the decoder: those that its index names, or all of their kind where there is none. */
final class CheckpointFiles {
    private static final String INDEX = "model.safetensors.index.json";
    private static final String SUFFIX = ".safetensors";
    private static final int MOST_INDEX_BYTES = 1 << 27;
    private static final int MOST_FILES = 1000;
    private static final Pattern PLAIN_NAME = Pattern.compile("[A-Za-z0-9_-][A-Za-z0-9._-]*\\.safetensors");

    private final Path directory;

    CheckpointFiles(Path directory) {
        this.directory = directory;
    }

    /** @throws CheckpointException if there are none, or the index does not say what the files have */
    List<Path> paths() throws IOException {
        Path index = directory.resolve(INDEX);
        return Files.exists(index) ? indexed(index) : listed();
    }

    /** The files that the index names, each of which must have the tensors that the index says it has. */
    private List<Path> indexed(Path index) throws IOException {
        JsonNode map = CheckpointDirectory.json(index, MOST_INDEX_BYTES, "index of a model")
                .path("weight_map");
        if (!map.isObject() || map.isEmpty()) {
            throw new CheckpointException(index + " has no weight_map that gives tensors their files");
        }
        Map<String, Set<String>> tensorsOf = new TreeMap<>();
        for (Map.Entry<String, JsonNode> each : map.properties()) {
            String file = each.getValue().asText();
            if (!each.getValue().isTextual() || !PLAIN_NAME.matcher(file).matches()) {
                throw new CheckpointException(index + " gives " + each.getKey() + " the file " + each.getValue()
                        + ", which is no name of a file beside it");
            }
            tensorsOf.computeIfAbsent(file, absent -> new TreeSet<>()).add(each.getKey());
        }
        if (!tensorsOf.containsKey(CheckpointDirectory.TENSORS)
                && Files.exists(directory.resolve(CheckpointDirectory.TENSORS))) {
            throw new CheckpointException(directory + " holds " + CheckpointDirectory.TENSORS + " and " + INDEX
                    + ", which does not name it; remove the one that is not the model");
        }
        List<Path> paths = new ArrayList<>();
        for (Map.Entry<String, Set<String>> each : tensorsOf.entrySet()) {
            Path path = directory.resolve(each.getKey());
            if (!Files.exists(path)) {
                throw new CheckpointException(index + " names " + each.getKey() + ", which is not there");
            }
            try (SafetensorsFile file = SafetensorsFile.open(path)) {
                if (!file.names().equals(each.getValue())) {
                    Set<String> different = new TreeSet<>(file.names());
                    different.removeAll(each.getValue());
                    if (different.isEmpty()) {
                        different.addAll(each.getValue());
                        different.removeAll(file.names());
                    }
                    throw new CheckpointException(path + " has other tensors than " + INDEX + " says, such as "
                            + different.iterator().next());
                }
            }
            paths.add(path);
        }
        return requireCount(paths);
    }

    private List<Path> requireCount(List<Path> paths) {
        if (paths.size() > MOST_FILES) {
            throw new CheckpointException(
                    directory + " holds " + paths.size() + " files *" + SUFFIX + ", more than " + MOST_FILES);
        }
        return paths;
    }

    private List<Path> listed() throws IOException {
        try (Stream<Path> entries = Files.list(directory)) {
            List<Path> paths = entries.filter(
                            path -> path.getFileName().toString().endsWith(SUFFIX))
                    .sorted()
                    .toList();
            if (paths.isEmpty()) {
                throw new CheckpointException(directory + " holds no *" + SUFFIX + " file");
            }
            return requireCount(paths);
        }
    }
}
