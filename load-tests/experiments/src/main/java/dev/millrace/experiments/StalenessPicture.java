package dev.millrace.experiments;

import java.awt.Color;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.OptionalDouble;
import java.util.TreeSet;
import org.knowm.xchart.BitmapEncoder;
import org.knowm.xchart.BitmapEncoder.BitmapFormat;
import org.knowm.xchart.XYChart;
import org.knowm.xchart.XYChartBuilder;
import org.knowm.xchart.XYSeries;
import org.knowm.xchart.style.Styler.LegendPosition;
import org.knowm.xchart.style.markers.SeriesMarkers;

/** The picture of an experiment: reward over steps, a panel per lag, a line per correction (mean of the seeds). */
final class StalenessPicture {
    private static final int WIDTH = 520;
    private static final int HEIGHT = 300;
    private static final int COLUMNS = 2;
    private static final Color[] COLORS = {
        new Color(0x000000),
        new Color(0xd62728),
        new Color(0x1f77b4),
        new Color(0x17becf),
        new Color(0x9467bd),
        new Color(0x2ca02c),
        new Color(0xff7f0e),
        new Color(0x8c564b)
    };

    private StalenessPicture() {}

    /** @throws IOException if the file cannot be written, or this machine cannot draw text (no fonts) */
    static void write(StalenessReport report, Path file) throws IOException {
        try {
            List<XYChart> panels = new ArrayList<>();
            for (int lag : report.grid().lags()) {
                panels.add(panel(report, lag, panels.isEmpty()));
            }
            while (panels.size() % COLUMNS != 0) {
                panels.add(drift(report));
            }
            BitmapEncoder.saveBitmap(panels, panels.size() / COLUMNS, COLUMNS, file.toString(), BitmapFormat.PNG);
        } catch (LinkageError | NullPointerException | IllegalStateException e) {
            // what AWT throws where there is no font to draw a label with
            throw new IOException("this machine has no fonts that Java can draw with (" + e.getMessage() + ")", e);
        }
    }

    private static XYChart panel(StalenessReport report, int lag, boolean legend) {
        XYChart chart = chart("lag " + lag, "step after the warm start", "reward", legend);
        chart.getStyler().setYAxisMin(0.0).setYAxisMax(1.05);
        for (Correction correction : report.grid().corrections()) {
            List<RunResult> seeds = report.runs().stream()
                    .filter(run -> run.key().lag() == lag && run.key().correction() == correction)
                    .toList();
            TreeSet<Long> steps = new TreeSet<>();
            seeds.forEach(run -> run.evaluations().forEach(evaluation -> steps.add(evaluation.step())));
            if (steps.isEmpty()) {
                continue;
            }
            double[] x = steps.stream().mapToDouble(Long::doubleValue).toArray();
            double[] y = steps.stream()
                    .mapToDouble(step -> seeds.stream()
                            .map(run -> at(run, step))
                            .filter(OptionalDouble::isPresent)
                            .mapToDouble(OptionalDouble::getAsDouble)
                            .average()
                            .orElseThrow())
                    .toArray();
            line(chart, correction, x, y);
        }
        return chart;
    }

    /** A run that ended early has no reward from there on. */
    private static OptionalDouble at(RunResult run, long step) {
        return run.evaluations().stream()
                .filter(e -> e.step() == step)
                .mapToDouble(Evaluation::reward)
                .findFirst();
    }

    private static XYChart drift(StalenessReport report) {
        XYChart chart = chart("ESS ratio before collapse or success", "lag", "ESS ratio", false);
        chart.getStyler().setYAxisMin(0.0).setYAxisMax(1.05);
        for (Correction correction : report.grid().corrections()) {
            List<Integer> lags = report.grid().lags().stream()
                    .filter(lag ->
                            report.rows().stream().anyMatch(row -> row.lag() == lag && row.correction() == correction))
                    .sorted()
                    .toList();
            if (lags.isEmpty()) {
                continue;
            }
            double[] x = lags.stream()
                    .mapToDouble(lag -> Math.log(1 + lag) / Math.log(2))
                    .toArray();
            double[] y = lags.stream()
                    .mapToDouble(lag -> report.rows().stream()
                            .filter(row -> row.lag() == lag && row.correction() == correction)
                            .mapToDouble(RunRow::essRatio)
                            .average()
                            .orElseThrow())
                    .toArray();
            line(chart, correction, x, y);
        }
        chart.setXAxisTitle("log2(1 + lag)");
        return chart;
    }

    private static XYChart chart(String title, String xAxis, String yAxis, boolean legend) {
        XYChart chart = new XYChartBuilder()
                .width(WIDTH)
                .height(HEIGHT)
                .title(title)
                .xAxisTitle(xAxis)
                .yAxisTitle(yAxis)
                .build();
        chart.getStyler()
                .setLegendPosition(LegendPosition.InsideSE)
                .setLegendVisible(legend)
                .setChartBackgroundColor(Color.WHITE)
                .setPlotBorderVisible(false)
                .setAntiAlias(true);
        return chart;
    }

    private static void line(XYChart chart, Correction correction, double[] x, double[] y) {
        XYSeries series = chart.addSeries(correction.title(), x, y);
        series.setMarker(SeriesMarkers.NONE)
                .setLineColor(COLORS[correction.ordinal()])
                .setLineWidth(1.6f);
    }
}
