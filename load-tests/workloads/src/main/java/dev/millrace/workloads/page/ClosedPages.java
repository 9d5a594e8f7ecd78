package dev.millrace.workloads.page;

import dev.millrace.workloads.closed.ClosedCurve;
import dev.millrace.workloads.closed.ClosedLoop;
import dev.millrace.workloads.closed.ClosedReport;
import dev.millrace.workloads.closed.ClosedRun;
import dev.millrace.workloads.closed.ClosedStep;
import dev.millrace.workloads.report.JsonFile;
import java.awt.Color;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.function.ToDoubleFunction;
import org.knowm.xchart.BitmapEncoder;
import org.knowm.xchart.BitmapEncoder.BitmapFormat;
import org.knowm.xchart.XYChart;
import org.knowm.xchart.XYChartBuilder;
import org.knowm.xchart.style.Styler.LegendPosition;
import org.knowm.xchart.style.markers.SeriesMarkers;

/** A closed loop as {@code report.json}, {@code report.html}, {@code runs.csv}, {@code steps.csv}, {@code report.png} and a table. */
public final class ClosedPages {
    private static final int WIDTH = 900;
    private static final int HEIGHT = 280;

    private ClosedPages() {}

    /**
     * Writes everything but the picture.
     *
     * @param directory made if it is not there
     */
    public static void write(ClosedReport report, Path directory) throws IOException {
        JsonFile.write(directory.resolve(ReportFiles.JSON), report);
        Files.writeString(directory.resolve("report.html"), Page.of("closed.html", report));
        Files.writeString(directory.resolve("runs.csv"), runs(report));
        Files.writeString(directory.resolve("steps.csv"), steps(report));
    }

    private static String runs(ClosedReport report) {
        StringBuilder csv = new StringBuilder(
                "curve,run,synchronous,steps,tokens,seconds,tokens_per_second,speed_up,seconds_to_reward,"
                        + "speed_up_to_reward,first_reward,last_reward,staleness,ess_ratio,generator_idle,scorer_idle,learner_idle,processor_load\n");
        each(
                report,
                (number, run) -> csv.append(String.format(
                        Locale.ROOT,
                        "%d,\"%s\",%b,%d,%d,%.3f,%.1f,%.4f,%.3f,%.4f,%.5f,%.5f,%.4f,%.5f,%.4f,%.4f,%.4f,%.4f%n",
                        number,
                        run.label().replace("\"", "\"\""),
                        run.synchronous(),
                        run.steps().size(),
                        run.tokens(),
                        run.seconds(),
                        run.tokensPerSecond(),
                        run.speedUp(),
                        run.secondsToReward(),
                        run.speedUpToReward(),
                        run.firstReward(),
                        run.lastReward(),
                        run.staleness(),
                        run.essRatio(),
                        run.idle().get("generator"),
                        run.idle().get("scorer"),
                        run.idle().get("learner"),
                        run.processorLoad())));
        return csv.toString();
    }

    private static String steps(ClosedReport report) {
        StringBuilder csv = new StringBuilder("curve,run,at_seconds,version,reward,staleness,ess_ratio,tokens\n");
        each(report, (number, run) -> {
            for (ClosedStep step : run.steps()) {
                csv.append(String.format(
                        Locale.ROOT,
                        "%d,\"%s\",%.3f,%d,%.5f,%.4f,%.5f,%d%n",
                        number,
                        run.label().replace("\"", "\"\""),
                        step.atSeconds(),
                        step.version(),
                        step.reward(),
                        step.staleness(),
                        step.essRatio(),
                        step.tokens()));
            }
        });
        return csv.toString();
    }

    private interface RunVisitor {
        void visit(int curve, ClosedRun run);
    }

    private static void each(ClosedReport report, RunVisitor visitor) {
        int number = 1;
        for (ClosedCurve curve : report.curves()) {
            for (ClosedRun run : curve.runs()) {
                visitor.visit(number, run);
            }
            number++;
        }
    }

    /** A table for a terminal; it is Markdown too. */
    public static void print(ClosedReport report, PrintWriter out) {
        out.printf(
                Locale.ROOT,
                "%s, %d processors, load average %.1f; %s; Kafka %s; commit %s; %s%n%s%n%n",
                report.origin().machine(),
                report.origin().processors(),
                report.origin().loadAverage(),
                report.origin().jvm(),
                report.origin().kafka(),
                report.origin().commit(),
                report.origin().startedAt(),
                report.origin().command());
        out.println(
                "| run | steps | seconds | tokens/s | of synchronous | seconds to the reward | of synchronous | reward first, last | versions behind | ESS | idle |");
        out.println("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |");
        each(
                report,
                (number, run) -> out.printf(
                        Locale.ROOT,
                        "| %s%s | %d | %.1f | %.0f | %.2f | %s | %s | %.3f, %.3f | %.2f | %.3f | %s |%n",
                        run.label(),
                        run.synchronous() ? " (synchronous)" : "",
                        run.steps().size(),
                        run.seconds(),
                        run.tokensPerSecond(),
                        run.speedUp(),
                        reached(run.secondsToReward(), "%.1f"),
                        reached(run.speedUpToReward(), "%.2f"),
                        run.firstReward(),
                        run.lastReward(),
                        run.staleness(),
                        run.essRatio(),
                        ClosedLoop.idle(run)));
        out.flush();
    }

    private static String reached(double value, String pattern) {
        return value < 0 ? "-" : String.format(Locale.ROOT, pattern, value);
    }

    /**
     * Writes the picture: reward and tokens over time.
     *
     * @throws IOException if the file cannot be written, or this machine cannot draw text (no fonts)
     */
    public static void picture(ClosedReport report, Path file) throws IOException {
        try {
            BitmapEncoder.saveBitmap(
                    List.of(
                            chart(report, report.name(), "reward", ClosedStep::reward, false),
                            chart(report, "", "tokens trained on", ClosedStep::tokens, true)),
                    2,
                    1,
                    file.toString(),
                    BitmapFormat.PNG);
        } catch (LinkageError | NullPointerException | IllegalStateException e) {
            // what AWT throws where there is no font to draw a label with
            throw new IOException("this machine has no fonts that Java can draw with (" + e.getMessage() + ")", e);
        }
    }

    private static XYChart chart(
            ClosedReport report, String title, String yAxis, ToDoubleFunction<ClosedStep> value, boolean total) {
        XYChart chart = new XYChartBuilder()
                .width(WIDTH)
                .height(HEIGHT)
                .title(title)
                .yAxisTitle(yAxis)
                .xAxisTitle("seconds")
                .build();
        chart.getStyler()
                .setLegendPosition(LegendPosition.OutsideE)
                .setChartBackgroundColor(Color.WHITE)
                .setPlotBorderVisible(false)
                .setChartTitleVisible(!title.isEmpty())
                .setAntiAlias(true);
        each(report, (number, run) -> {
            double[] x = run.steps().stream().mapToDouble(ClosedStep::atSeconds).toArray();
            double[] y = total ? sums(run.steps(), value) : runningMeans(run.steps(), value, run.overSteps());
            chart.addSeries(number + ": " + run.label(), x, y).setMarker(SeriesMarkers.NONE);
        });
        return chart;
    }

    private static double[] sums(List<ClosedStep> steps, ToDoubleFunction<ClosedStep> value) {
        double[] sums = new double[steps.size()];
        double sum = 0;
        for (int i = 0; i < sums.length; i++) {
            sum += value.applyAsDouble(steps.get(i));
            sums[i] = sum;
        }
        return sums;
    }

    private static double[] runningMeans(List<ClosedStep> steps, ToDoubleFunction<ClosedStep> value, int over) {
        double[] means = new double[steps.size()];
        for (int i = 0; i < means.length; i++) {
            List<ClosedStep> window = new ArrayList<>(steps.subList(Math.max(0, i + 1 - over), i + 1));
            means[i] = window.stream().mapToDouble(value).average().orElseThrow();
        }
        return means;
    }

    /**
     * Two reports side by side, by the gain over their own synchronous runs: the machine may have been busier at one time than
     * at the other.
     */
    public static void compare(ClosedReport old, ClosedReport now, PrintWriter out) {
        out.printf(
                Locale.ROOT,
                "old: %s, commit %s; new: %s, commit %s%n%n",
                old.origin().startedAt(),
                old.origin().commit(),
                now.origin().startedAt(),
                now.origin().commit());
        out.println("| run | tokens/s old, new | of synchronous old, new | last reward old, new | noise | |");
        out.println("| --- | --- | --- | --- | --- | --- |");
        double noise = noise(old, now);
        each(now, (number, run) -> {
            ClosedRun before = find(old, run);
            if (before != null) {
                double change = run.synchronous() ? 0 : run.speedUp() / before.speedUp() - 1;
                out.printf(
                        Locale.ROOT,
                        "| %s | %.0f, %.0f | %.2f, %.2f | %.3f, %.3f | %.0f %% | %s |%n",
                        run.label(),
                        before.tokensPerSecond(),
                        run.tokensPerSecond(),
                        before.speedUp(),
                        run.speedUp(),
                        before.lastReward(),
                        run.lastReward(),
                        100 * noise,
                        Math.abs(change) <= noise ? "within noise" : change > 0 ? "faster" : "SLOWER");
            }
        });
        Comparison.alone("old", missing(now, old), out);
        Comparison.alone("new", missing(old, now), out);
        out.flush();
    }

    /** Labels of the runs that one report has and the other has not. */
    private static List<String> missing(ClosedReport in, ClosedReport of) {
        List<String> labels = new ArrayList<>();
        each(of, (number, run) -> {
            if (find(in, run) == null) {
                labels.add(run.label());
            }
        });
        return labels;
    }

    /** How far the synchronous runs, which nothing should have changed, are apart; at least a tenth. */
    private static double noise(ClosedReport old, ClosedReport now) {
        double[] widest = {LEAST_NOISE};
        each(now, (number, run) -> {
            ClosedRun before = find(old, run);
            if (before != null && run.synchronous()) {
                widest[0] = Math.max(widest[0], Math.abs(Math.log(run.tokensPerSecond() / before.tokensPerSecond())));
            }
        });
        return widest[0];
    }

    private static final double LEAST_NOISE = 0.10;

    private static ClosedRun find(ClosedReport report, ClosedRun like) {
        return report.curves().stream()
                .flatMap(curve -> curve.runs().stream())
                .filter(run -> run.settings().equals(like.settings()) && run.synchronous() == like.synchronous())
                .findFirst()
                .orElse(null);
    }
}
