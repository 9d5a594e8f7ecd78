package dev.millrace.generator.environment.text;

import dev.millrace.api.dataset.Dataset;
import dev.millrace.api.dataset.DatasetSettings;
import java.nio.file.Path;
import java.util.Objects;

/**
 * A file of JSON lines: {@code {"prompt": TEXT, "answer": ..., any more}} each.
 *
 * @param file the file, a JSON object a line with a text prompt, an answer where the reward compares with one, and any more
 */
public record JsonLines(String file) implements DatasetSettings {

    public JsonLines {
        Objects.requireNonNull(file, "file");
    }

    /** No file yet. */
    public static JsonLines defaults() {
        return new JsonLines("");
    }

    @Override
    public Dataset open() {
        if (file.isEmpty()) {
            throw new IllegalArgumentException("file must name a file of JSON lines: it is empty");
        }
        return JsonLinesFile.read(Path.of(file));
    }
}
