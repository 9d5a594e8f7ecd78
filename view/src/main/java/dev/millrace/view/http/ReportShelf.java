package dev.millrace.view.http;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.report.ReportPage;
import dev.millrace.view.follow.RunSource;
import java.io.IOException;
import java.nio.file.FileVisitOption;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.SimpleFileVisitor;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.Collection;
import java.util.Comparator;
import java.util.EnumSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;

/**
 * Report pages written by {@code --report} in report folders and run folders, recognised by content. Thread-safe;
 * changed pages are read again.
 */
public final class ReportShelf {
    private static final int DEPTH = 4;
    private static final int MOST = 500;
    private static final long MOST_BYTES = 64 << 20;
    /** Run folders without reports but thousands of files. */
    private static final Set<String> NO_REPORTS = Set.of("broker", "state", "models", "tokenizer", "checkpoints");

    private final List<Path> folders;
    private final Map<Path, Known> known = new ConcurrentHashMap<>();

    /** @param folders in addition to those of the runs; missing ones are empty */
    public ReportShelf(List<Path> folders) {
        this.folders = List.copyOf(folders);
    }

    /**
     * @param about summary for the list; null without a report
     * @param view command that shows its run; empty if none
     */
    private record Known(
            long modifiedMs, long size, @Nullable ObjectNode about, String view) {}

    private record Found(Path file, Optional<RunSource> folderOf, Known known) {}

    /** Newest first. */
    public ObjectNode list(Collection<RunSource> runs) {
        ObjectNode json = JsonNodeFactory.instance.objectNode();
        ArrayNode names = json.putArray("folders");
        folders.forEach(folder -> names.add(folder.toString()));
        ArrayNode array = json.putArray("reports");
        found(runs).entrySet().stream()
                .sorted(Comparator.comparingLong((Map.Entry<String, Found> entry) ->
                                entry.getValue().known().modifiedMs())
                        .reversed())
                .forEach(entry -> {
                    Found found = entry.getValue();
                    ObjectNode about = Objects.requireNonNull(found.known().about());
                    array.add(about.deepCopy()
                            .put("id", entry.getKey())
                            .put("run", run(found, runs).map(RunSource::name).orElse(null)));
                });
        return json;
    }

    /** By a name from the list, which alone grants access. */
    public Optional<ObjectNode> report(Collection<RunSource> runs, String id) {
        return Optional.ofNullable(found(runs).get(id)).flatMap(found -> read(found.file()));
    }

    /** By paths as the folders were named. */
    private Map<String, Found> found(Collection<RunSource> runs) {
        Map<String, Found> found = new LinkedHashMap<>();
        for (RunSource run : runs) {
            run.folder().ifPresent(folder -> look(folder, Optional.of(run), found));
        }
        folders.forEach(folder -> look(folder, Optional.empty(), found));
        return found;
    }

    private void look(Path folder, Optional<RunSource> of, Map<String, Found> found) {
        if (!Files.isDirectory(folder)) {
            return;
        }
        try {
            Files.walkFileTree(folder, EnumSet.noneOf(FileVisitOption.class), DEPTH, new SimpleFileVisitor<>() {
                @Override
                public FileVisitResult preVisitDirectory(Path directory, BasicFileAttributes attributes) {
                    return NO_REPORTS.contains(String.valueOf(directory.getFileName()))
                            ? FileVisitResult.SKIP_SUBTREE
                            : FileVisitResult.CONTINUE;
                }

                @Override
                public FileVisitResult visitFile(Path file, BasicFileAttributes attributes) {
                    if (file.toString().endsWith(".html") && attributes.size() <= MOST_BYTES) {
                        Known page = known(file, attributes);
                        if (page.about() != null) {
                            found.putIfAbsent(file.toString(), new Found(file, of, page));
                        }
                    }
                    return found.size() < MOST ? FileVisitResult.CONTINUE : FileVisitResult.TERMINATE;
                }

                @Override
                public FileVisitResult visitFileFailed(Path file, IOException e) {
                    return FileVisitResult.CONTINUE; // removed or not readable
                }
            });
        } catch (IOException e) {
            // the folder went away meanwhile
        }
    }

    private Known known(Path file, BasicFileAttributes attributes) {
        long modified = attributes.lastModifiedTime().toMillis();
        Known before = known.get(file);
        if (before != null && before.modifiedMs() == modified && before.size() == attributes.size()) {
            return before;
        }
        Optional<ObjectNode> report = read(file);
        Known now = new Known(
                modified,
                attributes.size(),
                report.map(found -> about(found, modified)).orElse(null),
                report.map(found -> found.path("view").asText()).orElse(""));
        known.put(file, now);
        return now;
    }

    private static Optional<ObjectNode> read(Path file) {
        try {
            return ReportPage.reportIn(Files.readString(file));
        } catch (IOException e) {
            return Optional.empty();
        }
    }

    private static ObjectNode about(ObjectNode report, long modifiedMs) {
        JsonNode conclusion = report.path("conclusion");
        return JsonNodeFactory.instance
                .objectNode()
                .put("title", report.path("title").asText())
                .put("asked", conclusion.path("asked").asText())
                .put(
                        "answer",
                        conclusion.path("answer").asText(report.at("/verdict/0").asText()))
                .put("health", conclusion.path("health").asText("NONE"))
                .put("command", report.at("/origin/command").asText())
                .put("written_ms", modifiedMs);
    }

    /** The run whose folder has it, or that its command names. */
    private static Optional<RunSource> run(Found found, Collection<RunSource> runs) {
        return found.folderOf()
                .or(() -> runs.stream()
                        .filter(run -> names(found.known().view(), run))
                        .findFirst());
    }

    private static boolean names(String view, RunSource run) {
        List<String> words = List.of(view.strip().split("\\s+"));
        for (int w = 0; w + 1 < words.size(); w++) {
            String value = words.get(w + 1);
            boolean isNamed = switch (words.get(w)) {
                case "--run-dir", "--archive" ->
                    Path.of(value).toAbsolutePath().normalize().equals(place(run));
                case "--run" -> run instanceof RunSource.Cluster && value.equals(run.name());
                default -> false;
            };
            if (isNamed) {
                return true;
            }
        }
        return false;
    }

    private static @Nullable Path place(RunSource run) {
        Path path = run instanceof RunSource.Archive archive
                ? archive.path()
                : run.folder().orElse(null);
        return path == null ? null : path.toAbsolutePath().normalize();
    }
}
