package dev.millrace.cli.replay;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.cli.replay.ReplayTotals.Total;
import dev.millrace.replay.MaskedShare;
import dev.millrace.runtime.RefusedRequestException;
import java.awt.Color;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.knowm.xchart.BitmapEncoder;
import org.knowm.xchart.BitmapEncoder.BitmapFormat;
import org.knowm.xchart.XYChart;
import org.knowm.xchart.XYChartBuilder;
import org.knowm.xchart.style.Styler.LegendPosition;
import org.knowm.xchart.style.markers.SeriesMarkers;

/**
 * Writes a replay to a folder: {@code report.json}, {@code report.html}, which holds the same numbers and draws them
 * without asking anybody, and pictures.
 */
final class ReplayReport {
    static final String STEPS = "steps.csv";
    private static final List<Integer> PICTURED = List.of(0, 2, 5, 10);

    private ReplayReport() {}

    /**
     * Makes the folder, and deletes what an earlier replay wrote there: one that is interrupted must not leave its steps beside
     * the page of another.
     */
    static void begin(Path folder) {
        try {
            Files.createDirectories(folder);
            for (String name : List.of("report.html", "report.json", STEPS)) {
                Files.deleteIfExists(folder.resolve(name));
            }
            for (int figure : PICTURED) {
                Files.deleteIfExists(picture(folder, figure));
            }
        } catch (IOException e) {
            throw new RefusedRequestException("cannot begin a report in " + folder + ": " + e.getMessage(), e);
        }
    }

    static void write(Path folder, String runId, ReplayTotals totals, PrintWriter err) {
        ObjectNode tree = tree(runId, totals);
        try {
            Files.writeString(folder.resolve("report.json"), tree.toPrettyString());
            ReportPage.write(folder.resolve("report.html"), "report.html", tree);
        } catch (IOException e) {
            throw new RefusedRequestException("cannot write the report to " + folder + ": " + e.getMessage(), e);
        }
        try {
            for (int figure : PICTURED) {
                picture(folder, totals, figure);
            }
        } catch (IOException | LinkageError | NullPointerException | IllegalStateException e) {
            err.println("there are no pictures: this machine has no fonts that Java can draw with (" + e.getMessage()
                    + ")");
        }
    }

    private static ObjectNode tree(String runId, ReplayTotals totals) {
        ObjectNode tree = JsonNodeFactory.instance.objectNode();
        tree.put("run", runId)
                .put("steps", totals.steps())
                .put("steps_not_as_recorded", totals.notAsRecorded())
                .put("steps_per_point", totals.stride());
        if (totals.agreement().computed() > 0) {
            tree.putObject("rescored")
                    .put("vectors", totals.agreement().computed())
                    .put("vectors_as_recorded", totals.agreement().same())
                    .put("vectors_not_as_recorded", totals.agreement().different())
                    .put("largest_difference", totals.agreement().largest())
                    .put("steps_as_trained", totals.asTrained())
                    .put("steps_not_as_trained", totals.notAsTrained());
        }
        numbers(tree.putArray("batch"), totals.batches());
        numbers(tree.putArray("version"), totals.versions());
        numbers(tree.putArray("reward"), totals.rewards());
        numbers(tree.putArray("staleness"), totals.staleness());
        ArrayNode figures = tree.putArray("figures");
        Figure.ALL.forEach(
                figure -> figures.addObject().put("key", figure.key()).put("title", figure.title()));
        ArrayNode alternatives = tree.putArray("alternatives");
        for (int a = 0; a < totals.names().size(); a++) {
            alternatives.add(alternative(totals, a));
        }
        return tree;
    }

    private static ObjectNode alternative(ReplayTotals totals, int a) {
        Total total = totals.total(a);
        ObjectNode one = JsonNodeFactory.instance.objectNode();
        one.put("name", totals.names().get(a)).put("least_ess_ratio", total.leastEss());
        one.put("first_alarm", total.firstAlarm().orElse(""));
        ObjectNode causes = one.putObject("steps_by_diagnosis");
        total.causes().forEach((cause, steps) -> causes.put(String.valueOf(cause.letter()), steps));
        ObjectNode means = one.putObject("means");
        ObjectNode curves = one.putObject("curves");
        for (int f = 0; f < Figure.ALL.size(); f++) {
            means.put(Figure.ALL.get(f).key(), total.mean(f, totals.steps()));
            numbers(curves.putArray(Figure.ALL.get(f).key()), totals.curve(a, f));
        }
        shares(one.putArray("tokens_by_lag"), total.breakdown().tokensByLag());
        shares(one.putArray("sequences_by_length"), total.breakdown().sequencesByLength());
        shares(one.putArray("sequences_by_advantage_sign"), total.breakdown().sequencesBySign());
        return one;
    }

    private static void shares(ArrayNode into, Map<Long, MaskedShare> shares) {
        shares.forEach((least, share) ->
                into.addObject().put("from", least).put("of", share.of()).put("masked", share.masked()));
    }

    /** What is not finite becomes null. */
    static void numbers(ArrayNode into, double... values) {
        for (double value : values) {
            if (Double.isFinite(value)) {
                into.add(value);
            } else {
                into.addNull();
            }
        }
    }

    private static void picture(Path folder, ReplayTotals totals, int figure) throws IOException {
        XYChart chart = new XYChartBuilder()
                .width(900)
                .height(320)
                .title(Figure.ALL.get(figure).title())
                .xAxisTitle("batch")
                .build();
        chart.getStyler()
                .setLegendPosition(LegendPosition.OutsideE)
                .setChartBackgroundColor(Color.WHITE)
                .setPlotBorderVisible(false)
                .setAntiAlias(true);
        double[] x = totals.steps() == 0 ? new double[] {0} : totals.batches();
        for (int a = 0; a < totals.names().size(); a++) {
            double[] y = totals.steps() == 0 ? new double[] {0} : totals.curve(a, figure);
            chart.addSeries(totals.names().get(a), x, y).setMarker(SeriesMarkers.NONE);
        }
        BitmapEncoder.saveBitmap(List.of(chart), 1, 1, picture(folder, figure).toString(), BitmapFormat.PNG);
    }

    private static Path picture(Path folder, int figure) {
        return folder.resolve(Figure.ALL.get(figure).key() + ".png");
    }
}
