package dev.millrace.report;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.List;
import java.util.function.Consumer;
import java.util.stream.Stream;

/**
 * A folder with the files of a report, written beside its place and renamed when it is whole.
 *
 * <p>Where there is no folder yet, the whole one gets its name at once. Where there is one, whose other files stay, the earlier
 * report's files are deleted and the new ones renamed into it, the one that a person opens last: what is interrupted has no page. Until then
 * the files lie in a folder beside it whose name ends in {@value WholeFile#UNFINISHED}; the next report deletes what a kill left of it.
 * One process at a time may write to a place.
 */
public final class ReportFolder implements AutoCloseable {
    private final Path place;
    private final Path beside;
    private final List<String> names;

    private ReportFolder(Path place, Path beside, List<String> names) {
        this.place = place;
        this.beside = beside;
        this.names = names;
    }

    /**
     * Begins a report.
     *
     * @param names of all files that a report of this kind may have, the one that a person opens first
     */
    public static ReportFolder begin(Path place, List<String> names) throws IOException {
        Path absolute = place.toAbsolutePath().normalize();
        if (Files.exists(absolute) && !Files.isDirectory(absolute)) {
            throw new IOException(place + " is a file");
        }
        Path beside = WholeFile.beside(absolute);
        Files.createDirectories(absolute.getParent());
        delete(beside);
        Files.createDirectory(beside);
        return new ReportFolder(absolute, beside, List.copyOf(names));
    }

    /** Where a file of the report is to be written. */
    public Path file(String name) {
        if (!names.contains(name)) {
            throw new IllegalArgumentException(name + " is none of the report's files: " + names);
        }
        return beside.resolve(name);
    }

    /** Writes a text. */
    public void write(String name, String text) throws IOException {
        Files.writeString(file(name), text);
    }

    /** Writes rows as CSV. */
    public <R> void write(String name, List<Column<R>> columns, Iterable<? extends R> rows) throws IOException {
        CsvFile.write(file(name), columns, rows);
    }

    /**
     * Draws charts of the report.
     *
     * @param said is told where there can be no picture: a machine without fonts still gets the other files
     */
    public void draw(String name, Report report, List<Chart> charts, int columns, Consumer<String> said) {
        try {
            Picture.write(report, charts, columns, file(name));
        } catch (IOException e) {
            said.accept("there is no " + name + ": " + e.getMessage());
        }
    }

    /** All files are written: they get their place. */
    public void finish() throws IOException {
        if (Files.exists(place)) {
            for (String name : names) {
                Files.deleteIfExists(place.resolve(name));
            }
            List<String> last = new ArrayList<>(names);
            Collections.reverse(last);
            for (String name : last) {
                if (Files.exists(beside.resolve(name))) {
                    Files.move(beside.resolve(name), place.resolve(name), StandardCopyOption.ATOMIC_MOVE);
                }
            }
        } else {
            Files.move(beside, place, StandardCopyOption.ATOMIC_MOVE);
        }
    }

    /** Deletes what has no place. */
    @Override
    public void close() throws IOException {
        delete(beside);
    }

    private static void delete(Path folder) throws IOException {
        if (Files.exists(folder)) {
            try (Stream<Path> all = Files.walk(folder)) {
                for (Path each : all.sorted(Comparator.reverseOrder()).toList()) {
                    Files.delete(each);
                }
            }
        }
    }
}
