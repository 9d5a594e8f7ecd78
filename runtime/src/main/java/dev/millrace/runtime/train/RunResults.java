package dev.millrace.runtime.train;

import dev.millrace.audit.ledger.Tally;
import dev.millrace.log.Evaluations;
import dev.millrace.report.Column;
import dev.millrace.report.CsvFile;
import dev.millrace.report.Lines;
import dev.millrace.report.WholeFile;
import dev.millrace.runtime.RefusedRequestException;
import dev.millrace.runtime.evaluation.EvaluationRecords;
import dev.millrace.runtime.evaluation.EvaluationText;
import dev.millrace.runtime.report.Rewards;
import dev.millrace.runtime.report.RunPicture;
import dev.millrace.runtime.report.RunSummary;
import dev.millrace.runtime.report.StepColumns;
import dev.millrace.runtime.report.StepFiguresSummary;
import dev.millrace.runtime.report.StepRow;
import dev.millrace.schemas.VersionEvaluation;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/** Writes a run's result files into its folder, and prints the final table. */
final class RunResults {
    /** A row per evaluation, by version, with an empty field for a missing number. */
    private static final List<Column<VersionEvaluation>> EVALUATIONS = List.of(
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

    private final RunDirectory directory;
    private List<Column<StepRow>> columns = List.of();
    private int written;

    RunResults(RunDirectory directory) {
        this.directory = directory;
    }

    /**
     * Writes steps.csv up to the newest step: appends the rows since the last call, or writes all of them if a new row has
     * another metric or somebody removed the file.
     */
    void writeSteps(List<StepRow> steps) {
        List<StepRow> added = steps.subList(written, steps.size());
        try {
            if (Files.exists(directory.steps()) && written > 0 && StepColumns.cover(columns, added)) {
                CsvFile.append(directory.steps(), columns, added);
            } else {
                columns = StepColumns.of(steps);
                CsvFile.write(directory.steps(), columns, steps);
            }
            written = steps.size();
        } catch (IOException e) {
            throw new RefusedRequestException("cannot write " + directory.steps() + ": " + RunDirectory.reason(e), e);
        }
    }

    /** Writes evaluations.csv up to the newest evaluation; no file without evaluations. */
    void writeEvaluations(Evaluations evaluations) {
        if (evaluations.isEmpty()) {
            return;
        }
        try {
            CsvFile.write(directory.evaluations(), EVALUATIONS, evaluations.onSamePrompts());
        } catch (IOException e) {
            throw new RefusedRequestException(
                    "cannot write " + directory.evaluations() + ": " + RunDirectory.reason(e), e);
        }
    }

    /**
     * Everything at the end.
     *
     * @param err where a sentence goes if the picture cannot be drawn
     */
    void write(RunSummary summary, PrintWriter err) {
        writeSteps(summary.steps());
        writeEvaluations(summary.evaluations());
        directory.write(directory.summary(), summary.json().toPrettyString() + "\n");
        try {
            RunPicture.write(summary.steps(), "run " + summary.runId(), directory.picture());
        } catch (IOException e) {
            err.println("no picture was drawn: " + e.getMessage());
        }
    }

    void writeCopy(RunSummary summary, Path copy) {
        try {
            WholeFile.write(copy, summary.json().toPrettyString() + "\n");
        } catch (IOException e) {
            throw new RefusedRequestException(
                    "cannot write the summary to " + copy + " (" + RunDirectory.reason(e) + "); it is in "
                            + directory.summary(),
                    e);
        }
    }

    /** The table at the end of a run. */
    static void print(RunSummary summary, PrintWriter out) {
        Rewards rewards = Rewards.over(summary.steps());
        boolean resumed = summary.invocation().newSteps() < summary.steps().size();
        row(
                out,
                "steps",
                summary.steps().size() + " to version " + summary.policyVersion()
                        + (resumed ? ", " + summary.invocation().newSteps() + " of them in these " : " in ")
                        + format("%.1f s", summary.invocation().secondsTotal())
                        + (Double.isNaN(summary.invocation().secondsToFirstStep())
                                ? ""
                                : format(
                                        ", the first after %.1f s",
                                        summary.invocation().secondsToFirstStep())));
        row(
                out,
                "reward",
                summary.steps().isEmpty()
                        ? "-"
                        : format(
                                "%.3f first, %.3f best, %.3f last (means of %d steps)",
                                rewards.first(),
                                rewards.best(),
                                rewards.last(),
                                Math.min(Rewards.WINDOW, summary.steps().size())));
        if (!summary.evaluations().isEmpty()) {
            row(out, "held out", EvaluationText.summary(summary.evaluations()));
        }
        StepFiguresSummary figures = summary.figures();
        row(
                out,
                "staleness",
                figures.staleness()
                        .map(staleness -> format(
                                "%.2f versions on average (%.2f in flight, %.2f in queue), %d at most",
                                staleness.mean(), staleness.inFlight(), staleness.inQueue(), staleness.max()))
                        .orElse("-"));
        row(
                out,
                "ESS ratio",
                figures.ess()
                        .map(ess -> format(
                                "%.3f median, %.3f least; truncated %s",
                                ess.median(), ess.least(), known("%.3f", ess.truncatedMedian())))
                        .orElse("-"));
        row(
                out,
                "off policy",
                format(
                        "second moment %s, of what was trained on %s; KL %s (medians)",
                        known("%.4f", figures.secondMoment()),
                        known("%.4f", figures.secondMomentTrained()),
                        known("%.4f", figures.kl())));
        if (figures.starvedSteps() > 0) {
            row(
                    out,
                    "starved",
                    format(
                            "%,d of %,d batches had no token left to train on",
                            figures.starvedSteps(), summary.steps().size()));
        }
        summary.idleStages().forEach(stage -> row(out, "no effect", stage.sentence()));
        row(
                out,
                "tokens",
                format(
                        "%,d generated, %,d scored, %,d trained on%s",
                        summary.tokens().generated(),
                        summary.tokens().scored(),
                        summary.tokens().trained(),
                        Double.isNaN(figures.trainedShare())
                                ? ""
                                : format(", %.1f %% of those batched", 100 * figures.trainedShare())));
        var balance = summary.balance();
        Tally all = balance.all();
        String dropped = all.dropped().isEmpty()
                ? "0 dropped"
                : all.droppedInAll() + " dropped ("
                        + all.dropped().entrySet().stream()
                                .map(e -> e.getKey() + " " + e.getValue())
                                .collect(Collectors.joining(", "))
                        + ")";
        row(
                out,
                "rollouts",
                format(
                                "%,d generated %s %,d trained + %,d masked + %s + %,d dead-lettered + %,d in flight",
                                all.generated(),
                                balance.addsUp() ? "=" : "IS NOT",
                                all.trained(),
                                all.maskedInAll(),
                                dropped,
                                all.deadLetteredInAll(),
                                all.inFlight() + all.unfinished().expired())
                        + (all.unfinished().superseded() == 0
                                ? ""
                                : format(" + %,d superseded", all.unfinished().superseded())));
        balance.contradictions().forEach(sentence -> row(out, "", sentence));
        summary.invocation().alarms().forEach(alarm -> row(out, "alarm", alarm.text()));
        row(
                out,
                "idle",
                summary.invocation().idle().entrySet().stream()
                        .map(e -> e.getKey() + " " + format("%.0f%%", 100 * e.getValue()))
                        .collect(Collectors.joining(", ")));
    }

    private static double number(@Nullable Double value) {
        return value == null ? Double.NaN : value;
    }

    private static void row(PrintWriter out, String label, String text) {
        Lines.labelled(label, text).forEach(out::println);
    }

    private static String known(String pattern, double value) {
        return Double.isNaN(value) ? "-" : format(pattern, value);
    }

    private static String format(String pattern, Object... values) {
        return String.format(Locale.ROOT, pattern, values);
    }
}
