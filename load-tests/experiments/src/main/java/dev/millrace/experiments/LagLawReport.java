package dev.millrace.experiments;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.experiments.RunRow.Outcome;
import java.awt.Color;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.OptionalInt;
import org.knowm.xchart.BitmapEncoder;
import org.knowm.xchart.BitmapEncoder.BitmapFormat;
import org.knowm.xchart.XYChart;
import org.knowm.xchart.XYChartBuilder;
import org.knowm.xchart.XYSeries;
import org.knowm.xchart.XYSeries.XYSeriesRenderStyle;
import org.knowm.xchart.style.Styler.LegendPosition;
import org.knowm.xchart.style.markers.SeriesMarkers;

/** The lag law of one correction: the runs it was fitted to, the fit, a table and a picture. A function of the runs. */
public record LagLawReport(Grid grid, List<RunRow> rows, LagLaw law) {
    private static final int WIDTH = 800;
    private static final int HEIGHT = 480;

    /** @param rows of a grid with one correction; those at lag 0 are what the others are held against, and no part of the fit */
    public static LagLawReport of(Grid grid, List<RunRow> rows) {
        return new LagLawReport(
                grid,
                List.copyOf(rows),
                LagLaw.fit(rows.stream()
                        .filter(row -> row.lag() > 0)
                        .map(row -> new LagLaw.Point(row.lag(), row.essRatio(), row.outcome() == Outcome.KEEPS_UP))
                        .toList()));
    }

    private List<Integer> lags() {
        return grid.lags().stream()
                .filter(lag -> rows.stream().anyMatch(row -> row.lag() == lag))
                .toList();
    }

    private List<RunRow> at(int lag) {
        return rows.stream().filter(row -> row.lag() == lag).toList();
    }

    /** The greatest lag of at least 1 at which every seed keeps up; empty if there is none. */
    private OptionalInt greatestThatKeepsUp() {
        return lags().stream()
                .filter(lag -> lag > 0 && at(lag).stream().allMatch(row -> row.outcome() == Outcome.KEEPS_UP))
                .mapToInt(Integer::intValue)
                .max();
    }

    /** The table and the fit, as Markdown. */
    public String markdown() {
        StringBuilder text = new StringBuilder(
                "| lag | ESS ratio by seed | second moment | last reward by seed | outcome | lag that the law gives |\n"
                        + "| --- | --- | --- | --- | --- | --- |\n");
        for (int lag : lags()) {
            List<RunRow> seeds = at(lag);
            double ess = Math.exp(seeds.stream()
                    .mapToDouble(row -> Math.log(row.essRatio()))
                    .average()
                    .orElseThrow());
            text.append(String.format(
                    Locale.ROOT,
                    "| %d | %s | %.2g | %s | %s | %s |%n",
                    lag,
                    String.join(
                            " / ",
                            seeds.stream()
                                    .map(row -> format("%.3f", row.essRatio()))
                                    .toList()),
                    seeds.stream().mapToDouble(RunRow::secondMoment).average().orElseThrow(),
                    String.join(
                            " / ",
                            seeds.stream()
                                    .map(row -> format("%.3f", row.lastReward()))
                                    .toList()),
                    String.join(
                            " / ",
                            seeds.stream()
                                    .map(row -> row.outcome()
                                            .name()
                                            .toLowerCase(Locale.ROOT)
                                            .replace('_', ' '))
                                    .distinct()
                                    .toList()),
                    lag == 0 ? "" : format("%.0f", law.lagAt(ess))));
        }
        return text + sentences();
    }

    private String sentences() {
        OptionalInt greatest = greatestThatKeepsUp();
        return String.format(
                Locale.ROOT,
                "%nL = c ESS^alpha: c = %.3g (%.3g to %.3g), alpha = %.3g (%.3g to %.3g), 95 %% of %d resampled fits to %d runs."
                        + "%nR^2 of log ESS: %.3f; of an exponential in the lag: %.3f.%nNo run that keeps up lies above %.3g ESS^alpha; %s.%n%s.%n",
                law.c().value(),
                law.c().low(),
                law.c().high(),
                law.alpha().value(),
                law.alpha().low(),
                law.alpha().high(),
                LagLaw.RESAMPLES,
                law.runs(),
                law.rSquared(),
                law.exponentialRSquared(),
                law.bound(),
                greatest.isPresent()
                        ? "every seed keeps up to a lag of " + greatest.getAsInt()
                        : "at no lag does every seed keep up",
                capital(law.verdict()));
    }

    private static String capital(String sentence) {
        return Character.toUpperCase(sentence.charAt(0)) + sentence.substring(1);
    }

    private static String format(String pattern, double value) {
        return String.format(Locale.ROOT, pattern, value);
    }

    /** Writes lag-law.json, lag-law.md and lag-law.png. */
    public void write(Path directory) throws IOException {
        Files.createDirectories(directory);
        ObjectMapper json = new ObjectMapper();
        ObjectNode all = json.createObjectNode();
        all.put("java", System.getProperty("java.vm.name") + " " + System.getProperty("java.version"));
        all.put("platform", System.getProperty("os.name") + " " + System.getProperty("os.arch"));
        all.set("settings", json.valueToTree(grid.settings()));
        all.set("law", json.valueToTree(law));
        all.put("supported", law.isSupported());
        all.put("verdict", law.verdict());
        all.set("runs", json.valueToTree(rows));
        json.writerWithDefaultPrettyPrinter()
                .writeValue(directory.resolve("lag-law.json").toFile(), all);
        Files.writeString(directory.resolve("lag-law.md"), markdown());
        picture(directory.resolve("lag-law.png"));
    }

    /** @throws IOException if the file cannot be written, or this machine cannot draw text (no fonts) */
    private void picture(Path file) throws IOException {
        try {
            XYChart chart = new XYChartBuilder()
                    .width(WIDTH)
                    .height(HEIGHT)
                    .title(grid.corrections().get(0).title() + ": ESS over lag")
                    .xAxisTitle("lag (versions)")
                    .yAxisTitle("ESS ratio")
                    .build();
            chart.getStyler()
                    .setXAxisLogarithmic(true)
                    .setYAxisLogarithmic(true)
                    .setLegendPosition(LegendPosition.InsideSW)
                    .setChartBackgroundColor(Color.WHITE)
                    .setPlotBorderVisible(false)
                    .setAntiAlias(true);
            for (long seed : grid.seeds()) {
                List<RunRow> ofSeed = rows.stream()
                        .filter(row -> row.seed() == seed && row.lag() > 0)
                        .toList();
                if (!ofSeed.isEmpty()) {
                    chart.addSeries(
                                    "seed " + seed,
                                    ofSeed.stream().mapToDouble(RunRow::lag).toArray(),
                                    ofSeed.stream()
                                            .mapToDouble(RunRow::essRatio)
                                            .toArray())
                            .setXYSeriesRenderStyle(XYSeriesRenderStyle.Scatter);
                }
            }
            double[] lags = lags().stream()
                    .filter(lag -> lag > 0)
                    .mapToDouble(Integer::doubleValue)
                    .sorted()
                    .toArray();
            double[] fitted = new double[lags.length];
            for (int i = 0; i < lags.length; i++) {
                fitted[i] = Math.min(
                        1, Math.pow(lags[i] / law.c().value(), 1 / law.alpha().value()));
            }
            XYSeries line = chart.addSeries(
                    format("L = %.3g ", law.c().value())
                            + format("ESS^%.3g", law.alpha().value()),
                    lags,
                    fitted);
            line.setXYSeriesRenderStyle(XYSeriesRenderStyle.Line).setMarker(SeriesMarkers.NONE);
            BitmapEncoder.saveBitmap(List.of(chart), 1, 1, file.toString(), BitmapFormat.PNG);
        } catch (LinkageError | NullPointerException | IllegalStateException e) {
            // what AWT throws where there is no font to draw a label with
            throw new IOException("this machine has no fonts that Java can draw with (" + e.getMessage() + ")", e);
        }
    }
}
