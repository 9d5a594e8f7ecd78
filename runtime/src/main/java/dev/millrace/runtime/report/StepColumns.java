package dev.millrace.runtime.report;

import dev.millrace.report.Column;
import dev.millrace.report.Format;
import dev.millrace.report.Heading;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;

/** The columns of steps.csv: everything that the training log has of the steps, whoever wrote it. */
public final class StepColumns {
    /** Metrics that have a column of their own. */
    private static final Set<String> NAMED = Set.of("loss", "grad_norm", "entropy", "approx_kl_behavior");

    private static final List<Column<StepRow>> FIXED = List.of(
            Column.count("step", StepRow::step),
            Column.count("version", StepRow::version),
            Column.number("reward", 6, StepRow::reward),
            Column.number("staleness_mean", 6, StepRow::stalenessMean),
            Column.text("staleness_max", StepColumns::stalenessMax),
            Column.number("staleness_in_flight_mean", 6, StepRow::stalenessInFlight),
            Column.number("staleness_in_queue_mean", 6, StepRow::stalenessInQueue),
            Column.number("ess_ratio", 6, StepRow::essRatio),
            Column.number("ess_ratio_truncated", 6, StepRow::essRatioTruncated),
            Column.number("second_moment", 6, StepRow::secondMoment),
            Column.number("second_moment_trained", 6, StepRow::secondMomentTrained),
            Column.number("approx_kl_behavior", 6, StepRow::kl),
            Column.number("learning_rate", 8, StepRow::learningRate),
            Column.number("loss", 6, StepRow::loss),
            Column.number("grad_norm", 6, StepRow::gradientNorm),
            Column.number("entropy", 6, StepRow::entropy),
            Column.count("rollouts_trained", StepRow::rolloutsTrained),
            Column.count("rollouts_masked", StepRow::rolloutsMasked),
            Column.count("rollouts_consumed", StepRow::rolloutsConsumed),
            Column.count("tokens_trainable", StepRow::tokensTrainable),
            Column.count("tokens_trained", StepRow::tokensTrained),
            Column.number("trained_share", 6, StepRow::trainedShare),
            Column.text("starved", StepRow::starved),
            Column.count("started_at_ms", StepRow::startedAtMs),
            Column.count("finished_at_ms", StepRow::finishedAtMs),
            Column.text("weights_sha256", StepRow::weightsSha256));

    private StepColumns() {}

    /** Those that these rows need: the ones that every run has, then one for each metric by its name in the log. */
    public static List<Column<StepRow>> of(List<StepRow> rows) {
        Set<String> metrics = new TreeSet<>();
        rows.forEach(row -> metrics.addAll(row.metrics().keySet()));
        metrics.removeAll(NAMED);
        List<Column<StepRow>> columns = new ArrayList<>(FIXED);
        metrics.forEach(name -> columns.add(new Column<>(
                new Heading(name, name, "", new Format(Format.Kind.DECIMALS, 6)),
                row -> row.metrics().get(name))));
        return columns;
    }

    private static @Nullable Long stalenessMax(StepRow row) {
        return Double.isNaN(row.stalenessMax()) ? null : (long) row.stalenessMax();
    }
}
