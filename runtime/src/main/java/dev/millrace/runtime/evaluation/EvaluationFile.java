package dev.millrace.runtime.evaluation;

import dev.millrace.log.Evaluations;
import dev.millrace.report.Column;
import dev.millrace.report.CsvFile;
import dev.millrace.schemas.VersionEvaluation;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** evaluations.csv of a run's folder: a row per evaluation, by version, with an empty field for a missing number. */
public final class EvaluationFile {
    private static final List<Column<VersionEvaluation>> COLUMNS = List.of(
            Column.count("version", VersionEvaluation::getVersion),
            Column.number("reward", 6, VersionEvaluation::getRewardMean),
            Column.number("reward_low", 6, row -> number(row.getRewardLow())),
            Column.number("reward_high", 6, row -> number(row.getRewardHigh())),
            Column.number(
                    "pass_at_1",
                    6,
                    row -> number(EvaluationRecords.passAt(row, 1).getUnbiased())),
            Column.number("truncated_share", 6, VersionEvaluation::getTruncatedShare),
            Column.number("start_log_prob", 6, row -> number(row.getStartLogProb())),
            Column.count("prompts", row -> row.getPrompts().size()),
            Column.count("responses", EvaluationRecords::responses),
            Column.count("tokens", EvaluationRecords::tokens));

    private final Path file;

    public EvaluationFile(Path file) {
        this.file = file;
    }

    /** Writes all of them, or leaves the file unchanged. */
    public void write(Evaluations evaluations) throws IOException {
        CsvFile.write(file, COLUMNS, evaluations.onSamePrompts());
    }

    private static double number(@Nullable Double value) {
        return value == null ? Double.NaN : value;
    }
}
