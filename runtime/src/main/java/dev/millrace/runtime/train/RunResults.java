package dev.millrace.runtime.train;

import dev.millrace.audit.ledger.Tally;
import dev.millrace.report.CsvFile;
import dev.millrace.report.WholeFile;
import dev.millrace.runtime.RefusedRequestException;
import dev.millrace.runtime.report.Rewards;
import dev.millrace.runtime.report.RunPicture;
import dev.millrace.runtime.report.RunSummary;
import dev.millrace.runtime.report.StepRow;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.stream.Collectors;

/** Writes what a run leaves in its folder, and prints the table at its end. */
final class RunResults {
    private final RunDirectory directory;

    RunResults(RunDirectory directory) {
        this.directory = directory;
    }

    /** steps.csv, as far as the run has come. */
    void writeSteps(List<StepRow> steps) {
        try {
            CsvFile.write(directory.steps(), StepRow.COLUMNS, steps);
        } catch (IOException e) {
            throw new RefusedRequestException("cannot write " + directory.steps() + ": " + RunDirectory.reason(e), e);
        }
    }

    /**
     * Everything at the end.
     *
     * @param err where a sentence goes if the picture cannot be drawn
     */
    void write(RunSummary summary, PrintWriter err) {
        writeSteps(summary.steps());
        directory.write(directory.summary(), summary.json().toPrettyString() + "\n");
        try {
            RunPicture.write(summary.steps(), "run " + summary.runId(), directory.picture());
        } catch (IOException e) {
            err.println("no picture was drawn: " + e.getMessage());
        }
    }

    /** The summary in another place as well. */
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
        boolean resumed = summary.newSteps() < summary.steps().size();
        row(
                out,
                "steps",
                summary.steps().size() + " to version " + summary.policyVersion()
                        + (resumed ? ", " + summary.newSteps() + " of them in these " : " in ")
                        + format("%.1f s", summary.secondsTotal())
                        + (Double.isNaN(summary.secondsToFirstStep())
                                ? ""
                                : format(", the first after %.1f s", summary.secondsToFirstStep())));
        row(
                out,
                "reward",
                format(
                        "%.3f first, %.3f best, %.3f last (means of %d steps)",
                        rewards.first(), rewards.best(), rewards.last(), Rewards.WINDOW));
        row(
                out,
                "staleness",
                format("%.2f versions on average, %d at most", summary.stalenessMean(), summary.stalenessMax()));
        row(out, "ESS ratio", format("%.3f median, %.3f least", summary.essMedian(), summary.essMin()));
        row(
                out,
                "tokens",
                format(
                        "%,d generated, %,d scored, %,d trained on",
                        summary.tokens().generated(),
                        summary.tokens().scored(),
                        summary.tokens().trained()));
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
                        "%,d generated %s %,d trained + %,d masked + %s",
                        all.generated(), balance.addsUp() ? "=" : "IS NOT", all.trained(), all.maskedInAll(), dropped));
        row(
                out,
                "",
                format("+ %,d dead-lettered + %,d in flight", all.deadLetteredInAll(), all.inFlight() + all.untold()));
        balance.contradictions().forEach(sentence -> row(out, "", sentence));
        row(
                out,
                "idle",
                summary.idle().entrySet().stream()
                        .map(e -> e.getKey() + " " + format("%.0f%%", 100 * e.getValue()))
                        .collect(Collectors.joining(", ")));
    }

    private static void row(PrintWriter out, String label, String text) {
        out.println("  " + label + " ".repeat(Math.max(1, 11 - label.length())) + text);
    }

    private static String format(String pattern, Object... values) {
        return String.format(Locale.ROOT, pattern, values);
    }
}
