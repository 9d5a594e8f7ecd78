package dev.millrace.workloads.page;

import dev.millrace.workloads.point.PointResult;
import dev.millrace.workloads.sweep.Curve;
import dev.millrace.workloads.sweep.LoadReport;
import java.awt.Color;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.List;
import java.util.function.ToDoubleFunction;
import org.knowm.xchart.BitmapEncoder;
import org.knowm.xchart.BitmapEncoder.BitmapFormat;
import org.knowm.xchart.XYChart;
import org.knowm.xchart.XYChartBuilder;
import org.knowm.xchart.style.Styler.LegendPosition;

/** The curves of a report as one PNG: throughput, latency and staleness against the offered rate. */
public final class ReportPicture {
    private static final int WIDTH = 900;
    private static final int HEIGHT = 300;

    private ReportPicture() {}

    /**
     * Writes the picture.
     *
     * @throws IOException if the file cannot be written, or this machine cannot draw text (no fonts)
     */
    public static void write(LoadReport report, Path file) throws IOException {
        try {
            BitmapEncoder.saveBitmap(
                    List.of(
                            chart(report, report.name(), "rollouts/s into batches", PointResult::achieved),
                            chart(
                                    report,
                                    "",
                                    "end to end p99 (ms)",
                                    p -> p.endToEnd().p99()),
                            chart(report, "", "versions behind", PointResult::stalenessMean)),
                    3,
                    1,
                    file.toString(),
                    BitmapFormat.PNG);
        } catch (LinkageError | NullPointerException | IllegalStateException e) {
            // what AWT throws where there is no font to draw a label with
            throw new IOException("this machine has no fonts that Java can draw with (" + e.getMessage() + ")", e);
        }
    }

    private static XYChart chart(LoadReport report, String title, String yAxis, ToDoubleFunction<PointResult> value) {
        XYChart chart = new XYChartBuilder()
                .width(WIDTH)
                .height(HEIGHT)
                .title(title)
                .yAxisTitle(yAxis)
                .xAxisTitle("rollouts/s offered")
                .build();
        chart.getStyler()
                .setLegendPosition(LegendPosition.InsideNW)
                .setChartBackgroundColor(Color.WHITE)
                .setPlotBorderVisible(false)
                .setChartTitleVisible(!title.isEmpty())
                .setAntiAlias(true);
        int number = 1;
        for (Curve curve : report.curves()) {
            List<PointResult> points = curve.points().stream()
                    .sorted(Comparator.comparingDouble(PointResult::offered))
                    .toList();
            chart.addSeries(
                    number++ + ": " + curve.label(),
                    points.stream().mapToDouble(PointResult::offered).toArray(),
                    points.stream().mapToDouble(value).toArray());
        }
        return chart;
    }
}
