package dev.millrace.runtime.evaluation;

import dev.millrace.report.Column;
import dev.millrace.report.CsvFile;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** evaluations.csv of a run's folder: a row for each evaluation, by version, and an empty field where there is no number. */
public final class EvaluationFile {
    private static final List<Column<EvaluatedVersion>> COLUMNS = List.of(
            Column.count("version", EvaluatedVersion::version),
            Column.number("reward", 6, EvaluatedVersion::reward),
            Column.number("start_log_prob", 6, EvaluatedVersion::startLogProb),
            Column.count("responses", EvaluatedVersion::responses),
            Column.count("tokens", EvaluatedVersion::tokens));

    private final Path file;

    public EvaluationFile(Path file) {
        this.file = file;
    }

    /** Writes all of them, or leaves the file as it is. */
    public void write(List<EvaluatedVersion> evaluations) throws IOException {
        CsvFile.write(file, COLUMNS, evaluations);
    }

    /**
     * What was written; nothing where there is no file.
     *
     * @throws IOException if it cannot be read, or is not such a file
     */
    public List<EvaluatedVersion> read() throws IOException {
        List<EvaluatedVersion> evaluations = new ArrayList<>();
        if (Files.exists(file)) {
            List<String> lines = Files.readAllLines(file);
            for (String line : lines.subList(Math.min(1, lines.size()), lines.size())) {
                evaluations.add(row(line));
            }
        }
        return evaluations;
    }

    private EvaluatedVersion row(String line) throws IOException {
        String[] fields = line.split(",", -1);
        try {
            return new EvaluatedVersion(
                    Long.parseLong(fields[0]),
                    Double.parseDouble(fields[1]),
                    fields[2].isEmpty() ? Double.NaN : Double.parseDouble(fields[2]),
                    Integer.parseInt(fields[3]),
                    Long.parseLong(fields[4]));
        } catch (NumberFormatException | ArrayIndexOutOfBoundsException e) {
            throw new IOException("a line of it is no evaluation: '" + line + "'", e);
        }
    }
}
