package dev.millrace.report;

import static java.nio.file.StandardOpenOption.APPEND;

import com.fasterxml.jackson.databind.SequenceWriter;
import com.fasterxml.jackson.dataformat.csv.CsvGenerator;
import com.fasterxml.jackson.dataformat.csv.CsvMapper;
import com.fasterxml.jackson.dataformat.csv.CsvSchema;
import java.io.IOException;
import java.io.Writer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** Rows as CSV: column keys as head, full precision, empty fields for absent values. Used by one thread. */
public final class CsvFile<R> implements AutoCloseable {
    private static final CsvMapper CSV = CsvMapper.builder()
            .enable(CsvGenerator.Feature.STRICT_CHECK_FOR_QUOTING)
            .build();

    private final List<Column<R>> columns;
    private final SequenceWriter out;

    public CsvFile(Path file, List<Column<R>> columns) throws IOException {
        this(Files.newBufferedWriter(file), columns, true);
    }

    private CsvFile(Writer to, List<Column<R>> columns, boolean hasHead) throws IOException {
        this.columns = List.copyOf(columns);
        CsvSchema.Builder schema = CsvSchema.builder();
        columns.forEach(column -> schema.addColumn(column.heading().key()));
        this.out = CSV.writer(schema.build().withUseHeader(hasHead)).writeValues(to);
    }

    public static <R> void write(Path file, List<Column<R>> columns, Iterable<? extends R> rows) throws IOException {
        WholeFile.write(file, beside -> {
            try (CsvFile<R> csv = new CsvFile<>(beside, columns)) {
                csv.writeAll(rows);
            }
        });
    }

    /** Adds rows to a file that {@link #write(Path, List, Iterable)} made with the same columns. */
    public static <R> void append(Path file, List<Column<R>> columns, Iterable<? extends R> rows) throws IOException {
        try (CsvFile<R> csv = new CsvFile<>(Files.newBufferedWriter(file, APPEND), columns, false)) {
            csv.writeAll(rows);
        }
    }

    private void writeAll(Iterable<? extends R> rows) throws IOException {
        for (R row : rows) {
            write(row);
        }
    }

    public void write(R row) throws IOException {
        List<@Nullable Object> values = new ArrayList<>();
        columns.forEach(column -> values.add(column.of(row)));
        out.write(values);
    }

    @Override
    public void close() throws IOException {
        out.close();
    }
}
