package dev.millrace.cli.replay;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.replay.retrain.RetrainedStep;
import dev.millrace.replay.retrain.VariantStep;
import dev.millrace.runtime.RefusedRequestException;
import java.awt.Color;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.IntStream;
import org.knowm.xchart.BitmapEncoder;
import org.knowm.xchart.BitmapEncoder.BitmapFormat;
import org.knowm.xchart.XYChart;
import org.knowm.xchart.XYChartBuilder;
import org.knowm.xchart.style.Styler.LegendPosition;
import org.knowm.xchart.style.markers.SeriesMarkers;

/**
 * Writes what learning would have been to a folder: {@code counterfactual.json}, {@code counterfactual.html}, which holds the
 * same numbers and draws them without asking anybody, CSV files and pictures.
 */
final class CounterfactualReport {
    private final Path folder;
    private final List<String> said = new ArrayList<>();
    private final ArrayNode sections = JsonNodeFactory.instance.arrayNode();
    private final PrintWriter err;
    /** Of a re-train; null without one. */
    private String rollouts;

    CounterfactualReport(Path folder, PrintWriter err) {
        this.folder = folder;
        this.err = err;
    }

    /** Adds a re-train. */
    void add(RetrainSeeds found, List<String> text) throws IOException {
        CounterfactualCsv.write(folder, found);
        said.addAll(text);
        rollouts = found.live() ? "own" : "recorded";
        double[] versions =
                found.steps().stream().mapToDouble(RetrainedStep::version).toArray();
        String means = found.each().size() == 1 ? "" : ", mean over seeds";
        plot(
                "reward of the policy in the run's task" + means,
                "version",
                found.evaluatedAt(),
                found.names(),
                found::rewards);
        for (int seed = 0; seed < found.each().size() && found.each().size() > 1; seed++) {
            RetrainRecord one = found.each().get(seed);
            plot(
                    "reward of the policy in the run's task, seed " + (seed + 1),
                    "version",
                    found.evaluatedAt(),
                    found.names(),
                    c -> padded(one.rewards(c), found.evaluatedAt().length));
        }
        plot(
                "reward of the batch (recorded)",
                "version",
                versions,
                List.of("recorded"),
                c -> found.steps().stream()
                        .mapToDouble(RetrainedStep::recordedReward)
                        .toArray());
        plot(
                "staleness of the batch, versions (recorded)",
                "version",
                versions,
                List.of("recorded"),
                c -> found.steps().stream()
                        .mapToDouble(RetrainedStep::recordedStaleness)
                        .toArray());
        for (VariantFigure<VariantStep> figure : VariantFigure.STEP) {
            plot(figure.title() + means, "version", versions, found.names(), c -> found.curve(c, figure.of()));
        }
        List<XYChart> panels = new ArrayList<>();
        panels.add(chart(
                "reward in the task" + means,
                found.evaluatedAt(),
                found.names(),
                found::rewards,
                LegendPosition.InsideSW));
        panels.add(chart("ESS ratio", versions, found.names(), c -> found.curve(c, VariantStep::essRatio), null));
        panels.add(chart(
                "KL to the recorded policy",
                versions,
                found.names(),
                c -> found.curve(c, VariantStep::klToRecorded),
                null));
        panels.add(chart("gradient norm", versions, found.names(), c -> found.curve(c, VariantStep::gradNorm), null));
        picture(panels, "retrain.png");
    }

    /** Adds gradients. */
    void add(GradientRecord found, List<String> text) throws IOException {
        CounterfactualCsv.write(folder, found);
        said.addAll(text);
        for (var figure : VariantFigure.GRADIENT) {
            plot(
                    figure.title(),
                    "version that the step began with",
                    found.versions(),
                    found.names(),
                    c -> found.curve(c, figure.of()));
        }
        List<XYChart> panels = new ArrayList<>();
        for (var figure : VariantFigure.GRADIENT.subList(0, 4)) {
            panels.add(chart(
                    figure.title(),
                    found.versions(),
                    found.names(),
                    c -> found.curve(c, figure.of()),
                    panels.isEmpty() ? LegendPosition.InsideNE : null));
        }
        picture(panels, "gradients.png");
    }

    /** Writes page and JSON. */
    void write(String runId) throws IOException {
        ObjectNode tree = JsonNodeFactory.instance.objectNode().put("run", runId);
        if (rollouts != null) {
            tree.put("rollouts", rollouts);
        }
        said.forEach(tree.putArray("text")::add);
        tree.set("plots", sections);
        Files.writeString(folder.resolve("counterfactual.json"), tree.toPrettyString());
        ReportPage.write(folder.resolve("counterfactual.html"), "counterfactual.html", tree);
    }

    private interface Curve {
        double[] of(int variant);
    }

    /** A variant that ended early has no reward from there on. */
    private static double[] padded(double[] values, int length) {
        double[] padded = Arrays.copyOf(values, length);
        Arrays.fill(padded, values.length, length, Double.NaN);
        return padded;
    }

    private void plot(String title, String axis, double[] x, List<String> names, Curve curve) {
        ObjectNode plot = sections.addObject().put("title", title).put("axis", axis);
        ReplayReport.numbers(plot.putArray("x"), x);
        ArrayNode series = plot.putArray("series");
        for (int c = 0; c < names.size(); c++) {
            ObjectNode one = series.addObject().put("name", names.get(c));
            ReplayReport.numbers(one.putArray("values"), curve.of(c));
        }
    }

    /** @param legend where it is; null for none */
    private static XYChart chart(String title, double[] x, List<String> names, Curve curve, LegendPosition legend) {
        XYChart chart = new XYChartBuilder()
                .width(560)
                .height(320)
                .title(title)
                .xAxisTitle("version")
                .build();
        if (legend != null) {
            chart.getStyler().setLegendPosition(legend);
        }
        chart.getStyler()
                .setLegendVisible(legend != null)
                .setChartBackgroundColor(Color.WHITE)
                .setPlotBorderVisible(false)
                .setAntiAlias(true);
        chart.getStyler().setXAxisMaxLabelCount(8);
        for (int c = 0; c < names.size(); c++) {
            double[] y = curve.of(c);
            int[] there = IntStream.range(0, Math.min(x.length, y.length))
                    .filter(i -> Double.isFinite(y[i]))
                    .toArray();
            chart.addSeries(
                            names.get(c),
                            there.length == 0
                                    ? new double[] {0}
                                    : Arrays.stream(there)
                                            .mapToDouble(i -> x[i])
                                            .toArray(),
                            there.length == 0
                                    ? new double[] {0}
                                    : Arrays.stream(there)
                                            .mapToDouble(i -> y[i])
                                            .toArray())
                    .setMarker(SeriesMarkers.NONE);
        }
        return chart;
    }

    private void picture(List<XYChart> panels, String name) {
        try {
            BitmapEncoder.saveBitmap(
                    panels, panels.size() / 2, 2, folder.resolve(name).toString(), BitmapFormat.PNG);
        } catch (IOException e) {
            throw new RefusedRequestException("cannot write " + folder.resolve(name) + ": " + e.getMessage(), e);
        } catch (LinkageError | NullPointerException | IllegalStateException e) {
            err.println(
                    "there is no picture: this machine has no fonts that Java can draw with (" + e.getMessage() + ")");
        }
    }
}
