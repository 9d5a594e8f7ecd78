package dev.millrace.gateway.engine;

import dev.millrace.policy.huggingface.CheckpointDirectory;
import dev.millrace.policy.huggingface.CheckpointException;
import dev.millrace.policy.huggingface.CheckpointExport;
import dev.millrace.policy.huggingface.NewDirectory;
import dev.millrace.policy.weights.Weights;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import java.util.stream.Stream;

/** Folder of versions for an engine, each written whole; the oldest are removed. Owned by one thread. */
final class VersionDirectories {
    private final EngineConfig config;
    private final Path root;
    private final String prefix;
    private final String checkpoint;
    private final Deque<Path> written = new ArrayDeque<>();

    /** @param checkpoint config and tokenizer to copy; empty for none */
    VersionDirectories(EngineConfig config, String prefix, String checkpoint) {
        this.config = config;
        this.root = Path.of(config.directory()).toAbsolutePath();
        this.prefix = prefix;
        this.checkpoint = checkpoint;
    }

    /** @throws EngineException if it cannot be written */
    Path write(long version, Weights weights) {
        Path directory = root.resolve(prefix + version);
        try {
            Files.createDirectories(root);
            if (written.isEmpty()) {
                removeLeftOver();
            }
            written.remove(directory);
            NewDirectory.remove(directory); // of a log that was cut off: the same number, other weights
            export(weights).to(directory, "Version " + version + ", written for an engine to take up.\n");
        } catch (IOException | CheckpointException e) {
            throw EngineException.failed(
                    "version " + version + " cannot be written to " + directory + " (engine.directory): "
                            + e.getMessage(),
                    e);
        }
        written.addLast(directory);
        return directory;
    }

    private CheckpointExport export(Weights weights) throws IOException {
        CheckpointExport plain = CheckpointExport.of(weights);
        boolean isThere = !checkpoint.isEmpty() && Files.isDirectory(Path.of(checkpoint));
        return (isThere ? plain.beside(new CheckpointDirectory(Path.of(checkpoint))) : plain)
                .as(config.dtype().name());
    }

    String seen(Path directory) {
        return config.seenAs().isEmpty()
                ? directory.toString()
                : config.seenAs() + (config.seenAs().endsWith("/") ? "" : "/") + directory.getFileName();
    }

    void removeOld() {
        while (written.size() > config.keptVersions()) {
            try {
                NewDirectory.remove(written.removeFirst());
            } catch (IOException e) {
                throw EngineException.failed(
                        "an older version cannot be removed from " + root + " (engine.directory): " + e.getMessage(),
                        e);
            }
        }
    }

    private void removeLeftOver() throws IOException {
        List<Path> left;
        try (Stream<Path> all = Files.list(root)) {
            left = all.filter(each -> each.getFileName().toString().startsWith(prefix)
                            && each.getFileName()
                                    .toString()
                                    .substring(prefix.length())
                                    .matches("\\d+"))
                    .toList();
        }
        for (Path each : left) {
            NewDirectory.remove(each);
        }
    }
}
