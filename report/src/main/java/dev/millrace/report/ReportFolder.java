package dev.millrace.report;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.function.Consumer;

/**
 * A report's folder, replaced as a whole.
 *
 * <p>A new folder is renamed into place. In an existing one the earlier report's files are replaced, the page last, so
 * an interrupted write has no page. Temporary files lie next to it under {@value WholeFile#UNFINISHED}; the next report
 * deletes them. One process at a time.
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

    /** @param names of all possible files, the page first */
    public static ReportFolder begin(Path place, List<String> names) throws IOException {
        Path absolute = place.toAbsolutePath().normalize();
        if (Files.exists(absolute) && !Files.isDirectory(absolute)) {
            throw new IOException(place + " is a file");
        }
        Path beside = WholeFile.beside(absolute);
        Files.createDirectories(absolute.getParent());
        WholeFile.delete(beside);
        Files.createDirectory(beside);
        return new ReportFolder(absolute, beside, List.copyOf(names));
    }

    public Path file(String name) {
        if (!names.contains(name)) {
            throw new IllegalArgumentException(name + " is none of the report's files: " + names);
        }
        return beside.resolve(name);
    }

    public void write(String name, String text) throws IOException {
        Files.writeString(file(name), text);
    }

    public <R> void write(String name, List<Column<R>> columns, Iterable<? extends R> rows) throws IOException {
        CsvFile.write(file(name), columns, rows);
    }

    /** @param said receives a line if there can be no picture */
    public void draw(String name, Report report, List<Chart> charts, int columns, Consumer<String> said) {
        try {
            Picture.write(report, charts, columns, file(name));
        } catch (IOException e) {
            said.accept("there is no " + name + ": " + e.getMessage());
        }
    }

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

    @Override
    public void close() throws IOException {
        WholeFile.delete(beside);
    }
}
