package dev.millrace.view.follow;

import dev.millrace.replay.archive.ArchivedRun;
import dev.millrace.runtime.train.RunDirectory;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * The named runs and those in a folder or one level below, as {@code EXPERIMENT.RUN}. Opened on demand; the least
 * recently used are closed. Thread-safe.
 */
public final class ViewedRuns implements AutoCloseable {
    private static final int OPEN = 4;

    private final Map<String, RunSource> named = new LinkedHashMap<>();
    private final @Nullable Path folder;
    private final Path indexes;
    private final Map<String, ViewedRun> open = new LinkedHashMap<>(16, 0.75f, true);

    /**
     * @param named the default first
     * @param folder of further runs; null for none
     */
    public ViewedRuns(List<RunSource> named, @Nullable Path folder, Path indexes) {
        named.forEach(source -> this.named.put(source.name(), source));
        this.folder = folder;
        this.indexes = indexes;
    }

    /** Runs of the folder are newest first. */
    public Collection<RunSource> sources() {
        Map<String, RunSource> sources = new LinkedHashMap<>(named);
        inFolder().forEach(source -> sources.putIfAbsent(source.name(), source));
        return sources.values();
    }

    private List<RunSource> inFolder() {
        Path runs = folder;
        if (runs == null || !Files.isDirectory(runs)) {
            return List.of();
        }
        List<Path> found = new ArrayList<>();
        for (Path entry : entries(runs)) {
            if (isRun(entry)) {
                found.add(entry);
            } else if (Files.isDirectory(entry)) { // an experiment that keeps its runs together
                entries(entry).stream().filter(ViewedRuns::isRun).forEach(found::add);
            }
        }
        found.sort(Comparator.comparingLong(ViewedRuns::beganMs).reversed());
        return found.stream()
                .map(path -> source(
                        runs.relativize(path)
                                .toString()
                                .replace(path.getFileSystem().getSeparator(), "."),
                        path))
                .toList();
    }

    private static RunSource source(String name, Path path) {
        return RunDirectory.holdsRun(path) ? new RunSource.Folder(name, path) : new RunSource.Archive(name, path);
    }

    private static boolean isRun(Path path) {
        return RunDirectory.holdsRun(path) || ArchivedRun.isIn(path);
    }

    private static List<Path> entries(Path folder) {
        try (Stream<Path> entries = Files.list(folder)) {
            return entries.toList();
        } catch (IOException e) {
            return List.of();
        }
    }

    private static long beganMs(Path path) {
        try {
            Path config = RunDirectory.config(path);
            return Files.getLastModifiedTime(Files.exists(config) ? config : path)
                    .toMillis();
        } catch (IOException e) {
            return 0;
        }
    }

    /** Opens the run; empty if there is none. */
    public Optional<ViewedRun> run(String name) {
        List<ViewedRun> closing = new ArrayList<>();
        Optional<ViewedRun> found;
        synchronized (open) {
            ViewedRun known = open.get(name);
            if (known == null) {
                Optional<RunSource> source =
                        sources().stream().filter(it -> it.name().equals(name)).findFirst();
                known = source.map(it -> new ViewedRun(it, indexes).start()).orElse(null);
                if (known != null) {
                    open.put(name, known);
                }
            }
            found = Optional.ofNullable(known);
            for (var each = open.entrySet().iterator(); open.size() > OPEN && each.hasNext(); ) {
                ViewedRun oldest = each.next().getValue();
                if (oldest != known && !oldest.events().isWatched()) {
                    closing.add(oldest);
                    each.remove();
                }
            }
        }
        closing.forEach(ViewedRun::close);
        found.ifPresent(ViewedRun::look);
        return found;
    }

    public Optional<ViewedRun> opened(String name) {
        Optional<ViewedRun> found;
        synchronized (open) {
            found = Optional.ofNullable(open.get(name));
        }
        found.ifPresent(ViewedRun::look);
        return found;
    }

    @Override
    public void close() {
        List<ViewedRun> all;
        synchronized (open) {
            all = List.copyOf(open.values());
            open.clear();
        }
        all.forEach(ViewedRun::close);
    }
}
