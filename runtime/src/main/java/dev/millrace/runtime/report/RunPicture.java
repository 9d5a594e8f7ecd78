package dev.millrace.runtime.report;

import dev.millrace.report.Axis;
import dev.millrace.report.Chart;
import dev.millrace.report.Picture;
import dev.millrace.report.Report;
import dev.millrace.report.Series;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.function.ToDoubleFunction;

/** Chart of a run: reward, staleness at the step and ESS over steps. */
public final class RunPicture {
    private static final Axis STEP = Axis.of("optimiser step");

    private RunPicture() {}

    /**
     * Writes the chart as PNG atomically.
     *
     * @throws IOException if there is no step, the file cannot be written, or this machine cannot draw text (no fonts)
     */
    public static void write(List<StepRow> steps, String title, Path file) throws IOException {
        List<Chart> charts = List.of(
                Chart.of(title, STEP, Axis.share("mean reward"), List.of(line("reward", steps, StepRow::reward))),
                Chart.of(
                        "",
                        STEP,
                        Axis.of("staleness").in("versions"),
                        List.of(
                                line("staleness, mean", steps, StepRow::stalenessMean),
                                line("staleness, max", steps, StepRow::stalenessMax),
                                line("in queue, mean", steps, StepRow::stalenessInQueue))),
                Chart.of(
                        "",
                        STEP,
                        Axis.share("ESS ratio"),
                        List.of(
                                line("ESS ratio", steps, StepRow::essRatio),
                                line("of truncated weights", steps, StepRow::essRatioTruncated))));
        Picture.write(Report.of(title, List.of()), charts, 1, file);
    }

    private static Series line(String name, List<StepRow> steps, ToDoubleFunction<StepRow> value) {
        return Series.line(
                name,
                steps.stream().mapToDouble(StepRow::step).toArray(),
                steps.stream().mapToDouble(value).toArray());
    }
}
