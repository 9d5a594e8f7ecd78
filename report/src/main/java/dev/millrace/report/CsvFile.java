package dev.millrace.report;

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

/**
 * Rows as CSV, written one by one: a head with the columns' keys, numbers in full precision, an empty field where there is no value.
 *
 * <p>Belongs to one thread.
 *
 * @param <R> row
 */
public final class CsvFile<R> implements AutoCloseable {
    private static final CsvMapper CSV = CsvMapper.builder()
            .enable(CsvGenerator.Feature.STRICT_CHECK_FOR_QUOTING)
            .build();

    private final List<Column<R>> columns;
    private final SequenceWriter out;

    /** Makes the file, or empties it, and writes its head. */
    public CsvFile(Path file, List<Column<R>> columns) throws IOException {
        this(Files.newBufferedWriter(file), columns);
    }

    private CsvFile(Writer to, List<Column<R>> columns) throws IOException {
        this.columns = List.copyOf(columns);
        CsvSchema.Builder schema = CsvSchema.builder();
        columns.forEach(column -> schema.addColumn(column.heading().key()));
        this.out = CSV.writer(schema.build().withHeader()).writeValues(to);
    }

    /** Writes a whole file: all of it is there under its name, or none. */
    public static <R> void write(Path file, List<Column<R>> columns, Iterable<? extends R> rows) throws IOException {
        WholeFile.write(file, beside -> {
            try (CsvFile<R> csv = new CsvFile<>(beside, columns)) {
                for (R row : rows) {
                    csv.write(row);
                }
            }
        });
    }

    /** Writes a row. */
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
