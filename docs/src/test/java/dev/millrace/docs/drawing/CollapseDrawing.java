package dev.millrace.docs.drawing;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.TreeMap;

/**
 * Draws a run that collapsed, and what other corrections made of it from the same version on, as SVG.
 *
 * <p>Left of the event: the run's reward, mean of ten steps. Right of it: the reward of each policy in the task, mean of
 * the seeds, with the least and the most of them as a band for the two that matter most. Labels are at the line ends;
 * the colours are Okabe and Ito's, and lines differ by dashes too.
 */
public final class CollapseDrawing {
    private static final int WIDTH = 980;
    private static final int HEIGHT = 480;
    private static final int LEFT = 64;
    private static final int RIGHT = 640;
    private static final int TOP = 78;
    private static final int BOTTOM = 426;
    private static final int LABEL_HEIGHT = 19;
    private static final int MEAN_OVER = 10;

    /** How a variant is drawn; {@code band} where the seeds are shown as well. */
    private record Style(String name, String label, String colour, String dashes, double width, boolean band) {}

    private static final List<Style> STYLES = List.of(
            new Style("recorded", "no correction, as recorded", "#D55E00", "", 3.5, true),
            new Style("token-tis-ess.yaml", "token TIS, √ESS steps", "#0072B2", "", 3.5, true),
            new Style("m2po-ess.yaml", "M2PO mask, token TIS, √ESS steps", "#009E73", "9 3", 2, false),
            new Style("decoupled-ppo-ess.yaml", "decoupled PPO, √ESS steps", "#56B4E9", "3 3", 2.5, false),
            new Style("token-tis.yaml", "token TIS alone", "#CC79A7", "12 3 3 3", 2, false),
            new Style("ppo-clip.yaml", "PPO clip", "#8A6D00", "6 6", 2, false));

    /** The value of one variant at one version, over the seeds. */
    private record Point(double version, double mean, double least, double most) {}

    private CollapseDrawing() {}

    /** @param arguments the run's {@code steps.csv}, the {@code evaluations.csv} of learning again, and the picture */
    public static void main(String[] arguments) throws IOException {
        Files.writeString(Path.of(arguments[2]), svg(Path.of(arguments[0]), Path.of(arguments[1])));
    }

    /**
     * The picture.
     *
     * @param steps every step of the run
     * @param evaluations reward in the task by seed, version and variant
     */
    static String svg(Path steps, Path evaluations) throws IOException {
        List<String[]> rows = rows(evaluations);
        double from = rows.stream()
                .mapToDouble(row -> Double.parseDouble(row[2]))
                .min()
                .orElseThrow();
        double to = rows.stream()
                .mapToDouble(row -> Double.parseDouble(row[2]))
                .max()
                .orElseThrow();
        StringBuilder svg = new StringBuilder("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 ")
                .append(WIDTH + " " + HEIGHT + "\" width=\"" + WIDTH + "\" height=\"" + HEIGHT)
                .append("\" role=\"img\" font-family=\"system-ui, Helvetica, Arial, sans-serif\" font-size=\"14\">\n")
                .append("<title>Reward of a run that collapses without a correction, and of the same run learnt again")
                .append(" under five corrections, from the same version on</title>\n")
                .append("<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n");
        text(
                svg,
                LEFT,
                26,
                "start",
                "#111111",
                17,
                "One recorded run, learnt again from version " + Math.round(from) + " under six settings");
        text(
                svg,
                LEFT,
                48,
                "start",
                "#444444",
                13,
                "reward in the task; mean of three seeds, shaded from the least to the most");
        axes(svg, to);
        event(svg, x(from, to));
        line(svg, onPolicy(steps, from), to, new Style("", "", "#444444", "", 2, false));
        List<Point> ends = new ArrayList<>();
        for (Style style : STYLES) {
            List<Point> points = points(rows, style.name());
            if (style.band()) {
                band(svg, points, to, style.colour());
            }
            ends.add(points.get(points.size() - 1));
        }
        for (Style style : STYLES) {
            line(svg, points(rows, style.name()), to, style);
        }
        labels(svg, ends);
        return svg.append("</svg>\n").toString();
    }

    private static void axes(StringBuilder svg, double to) {
        for (int tenth = 0; tenth <= 10; tenth += 2) {
            double height = y(tenth / 10.0);
            svg.append(String.format(
                    Locale.ROOT,
                    "<line x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\" stroke=\"#dddddd\"/>\n",
                    LEFT,
                    height,
                    RIGHT,
                    height));
            text(svg, LEFT - 10, height + 5, "end", "#444444", 14, tenth == 10 ? "1" : tenth == 0 ? "0" : "0." + tenth);
        }
        for (int step = 0; step <= to; step += 50) {
            text(svg, x(step, to), BOTTOM + 20, "middle", "#444444", 14, Integer.toString(step));
        }
        text(svg, (LEFT + RIGHT) / 2.0, BOTTOM + 42, "middle", "#444444", 14, "training step");
    }

    private static void event(StringBuilder svg, double at) {
        svg.append(String.format(
                Locale.ROOT,
                "<line x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%d\" stroke=\"#444444\" stroke-dasharray=\"2 3\"/>\n",
                at,
                TOP,
                at,
                BOTTOM));
        text(svg, at - 8, TOP + 14, "end", "#444444", 13, "on policy");
        text(svg, at + 8, TOP + 14, "start", "#444444", 13, "from here: rollouts up to 64 versions old");
    }

    private static void band(StringBuilder svg, List<Point> points, double to, String colour) {
        svg.append("<polygon fill=\"").append(colour).append("\" fill-opacity=\"0.16\" points=\"");
        points.forEach(point -> pair(svg, point.version(), point.most(), to));
        for (int i = points.size() - 1; i >= 0; i--) {
            pair(svg, points.get(i).version(), points.get(i).least(), to);
        }
        svg.append("\"/>\n");
    }

    private static void line(StringBuilder svg, List<Point> points, double to, Style style) {
        svg.append("<polyline fill=\"none\" stroke=\"")
                .append(style.colour())
                .append("\" stroke-width=\"")
                .append(style.width())
                .append("\" stroke-linejoin=\"round\"")
                .append(dashes(style))
                .append(" points=\"");
        points.forEach(point -> pair(svg, point.version(), point.mean(), to));
        svg.append("\"/>\n");
    }

    private static String dashes(Style style) {
        return style.dashes().isEmpty() ? "" : " stroke-dasharray=\"" + style.dashes() + "\"";
    }

    /** At the line ends, moved apart where they would lie on each other. */
    private static void labels(StringBuilder svg, List<Point> ends) {
        List<Integer> order = new ArrayList<>();
        for (int i = 0; i < STYLES.size(); i++) {
            order.add(i);
        }
        order.sort(Comparator.comparingDouble(i -> y(ends.get(i).mean())));
        double free = TOP;
        for (int i : order) {
            Style style = STYLES.get(i);
            double at = Math.max(y(ends.get(i).mean()) + 5, free);
            free = at + LABEL_HEIGHT;
            svg.append(String.format(
                    Locale.ROOT,
                    "<line x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\" stroke=\"%s\" stroke-width=\"%.1f\"%s/>\n",
                    RIGHT + 8,
                    at - 5,
                    RIGHT + 36,
                    at - 5,
                    style.colour(),
                    style.width(),
                    dashes(style)));
            String label = String.format(Locale.ROOT, "%.2f  %s", ends.get(i).mean(), style.label());
            text(svg, RIGHT + 42, at, "start", "#111111", 14, label);
        }
    }

    private static void text(
            StringBuilder svg, double x, double y, String anchor, String colour, int size, String text) {
        svg.append(String.format(
                Locale.ROOT,
                "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" fill=\"%s\" font-size=\"%d\">%s</text>\n",
                x,
                y,
                anchor,
                colour,
                size,
                text));
    }

    private static void pair(StringBuilder svg, double step, double reward, double to) {
        svg.append(String.format(Locale.ROOT, "%.1f,%.1f ", x(step, to), y(reward)));
    }

    private static double x(double step, double to) {
        return LEFT + (RIGHT - LEFT) * step / to;
    }

    private static double y(double reward) {
        return BOTTOM - (BOTTOM - TOP) * reward;
    }

    private static List<Point> points(List<String[]> rows, String variant) {
        TreeMap<Double, List<Double>> byVersion = new TreeMap<>();
        for (String[] row : rows) {
            if (row[3].equals(variant)) {
                byVersion
                        .computeIfAbsent(Double.valueOf(row[2]), version -> new ArrayList<>())
                        .add(Double.valueOf(row[4]));
            }
        }
        List<Point> points = new ArrayList<>();
        byVersion.forEach((version, rewards) -> points.add(point(version, rewards)));
        if (points.isEmpty()) {
            throw new IllegalArgumentException("the evaluations have no variant '" + variant + "'");
        }
        return points;
    }

    private static Point point(double version, List<Double> rewards) {
        double[] sorted =
                rewards.stream().mapToDouble(Double::doubleValue).sorted().toArray();
        return new Point(version, Arrays.stream(sorted).average().orElseThrow(), sorted[0], sorted[sorted.length - 1]);
    }

    /** The run's own reward before the event. */
    private static List<Point> onPolicy(Path steps, double until) throws IOException {
        List<double[]> before = new ArrayList<>();
        for (String[] row : rows(steps)) {
            if (Double.parseDouble(row[0]) <= until) {
                before.add(new double[] {Double.parseDouble(row[0]), Double.parseDouble(row[2])});
            }
        }
        List<Point> points = new ArrayList<>();
        for (int i = MEAN_OVER - 1; i < before.size(); i++) {
            double mean = before.subList(i + 1 - MEAN_OVER, i + 1).stream()
                    .mapToDouble(step -> step[1])
                    .average()
                    .orElseThrow();
            points.add(new Point(before.get(i)[0], mean, mean, mean));
        }
        return points;
    }

    private static List<String[]> rows(Path csv) throws IOException {
        return Files.readAllLines(csv).stream()
                .skip(1)
                .map(line -> line.split(","))
                .toList();
    }
}
