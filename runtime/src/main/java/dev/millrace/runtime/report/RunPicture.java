package dev.millrace.runtime.report;

import java.awt.Color;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.function.ToDoubleFunction;
import org.knowm.xchart.BitmapEncoder;
import org.knowm.xchart.BitmapEncoder.BitmapFormat;
import org.knowm.xchart.XYChart;
import org.knowm.xchart.XYChartBuilder;
import org.knowm.xchart.style.Styler.LegendPosition;
import org.knowm.xchart.style.markers.SeriesMarkers;

/** The picture of a run: reward, staleness and ESS over steps, one above the other. */
public final class RunPicture {
    private static final int WIDTH = 900;
    private static final int HEIGHT = 260;

    private RunPicture() {}

    /**
     * Writes the picture as PNG.
     *
     * @throws IOException if the file cannot be written, or this machine cannot draw text (no fonts)
     */
    public static void write(List<StepRow> steps, String title, Path file) throws IOException {
        try {
            XYChart reward = chart(title, "mean reward");
            line(reward, "reward", steps, StepRow::reward, new Color(0x1f77b4));
            XYChart staleness = chart("", "staleness (versions)");
            line(staleness, "max", steps, StepRow::stalenessMax, new Color(0xf2b27a));
            line(staleness, "mean", steps, StepRow::stalenessMean, new Color(0xd9660a));
            XYChart ess = chart("", "ESS ratio");
            line(ess, "ESS ratio", steps, StepRow::essRatio, new Color(0x2ca02c));
            ess.getStyler().setYAxisMin(0.0).setYAxisMax(1.05);
            reward.getStyler().setYAxisMin(0.0).setYAxisMax(1.05);
            ess.setXAxisTitle("optimiser step");
            BitmapEncoder.saveBitmap(List.of(reward, staleness, ess), 3, 1, file.toString(), BitmapFormat.PNG);
        } catch (LinkageError | NullPointerException | IllegalStateException e) {
            // what AWT throws where there is no font to draw a label with
            throw new IOException("this machine has no fonts that Java can draw with (" + e.getMessage() + ")", e);
        }
    }

    private static XYChart chart(String title, String yAxis) {
        XYChart chart = new XYChartBuilder()
                .width(WIDTH)
                .height(HEIGHT)
                .title(title)
                .yAxisTitle(yAxis)
                .build();
        chart.getStyler()
                .setLegendPosition(LegendPosition.InsideSE)
                .setChartBackgroundColor(Color.WHITE)
                .setPlotBorderVisible(false)
                .setChartTitleVisible(!title.isEmpty())
                .setAntiAlias(true);
        return chart;
    }

    private static void line(
            XYChart chart, String name, List<StepRow> steps, ToDoubleFunction<StepRow> value, Color color) {
        double[] x = steps.isEmpty()
                ? new double[] {0}
                : steps.stream().mapToDouble(StepRow::step).toArray();
        double[] y = steps.isEmpty()
                ? new double[] {0}
                : steps.stream().mapToDouble(value).toArray();
        chart.addSeries(name, x, y).setMarker(SeriesMarkers.NONE).setLineColor(color);
    }
}
