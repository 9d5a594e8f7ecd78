package dev.millrace.report;

import dev.millrace.report.Series.Style;
import java.awt.BasicStroke;
import java.awt.Color;
import java.awt.Font;
import java.awt.FontMetrics;
import java.awt.Graphics2D;
import java.awt.RenderingHints;
import java.awt.geom.Line2D;
import java.awt.image.BufferedImage;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import javax.imageio.ImageIO;
import org.knowm.xchart.AnnotationLine;
import org.knowm.xchart.BitmapEncoder;
import org.knowm.xchart.XYChart;
import org.knowm.xchart.XYChartBuilder;
import org.knowm.xchart.XYSeries;
import org.knowm.xchart.XYSeries.XYSeriesRenderStyle;
import org.knowm.xchart.style.markers.Marker;
import org.knowm.xchart.style.markers.SeriesMarkers;

/** Charts as one PNG, in the page's colours, with one key below all panels. Omits charts without values. */
public final class Picture {
    /** Okabe and Ito's colour-blind safe palette, as in the page's script. */
    private static final Color[] COLOURS = {
        new Color(0x0072b2),
        new Color(0xd55e00),
        new Color(0x009e73),
        new Color(0xcc79a7),
        new Color(0xe69f00),
        new Color(0x56b4e9),
        Color.BLACK,
        new Color(0x8c1d18)
    };

    private static final float[][] DASHES = {{1}, {7, 4}, {2, 3}, {9, 3, 2, 3}};
    private static final Marker[] MARKERS = {
        SeriesMarkers.CIRCLE,
        SeriesMarkers.SQUARE,
        SeriesMarkers.TRIANGLE_UP,
        SeriesMarkers.DIAMOND,
        SeriesMarkers.CROSS
    };
    private static final int MARKED_POINTS = 40;
    /** Fixed, so that panels align. */
    private static final int AXIS_WIDTH = 72;

    private static final int WIDTH = 900;
    private static final int HALF_WIDTH = 600;
    private static final int HEIGHT = 340;

    private Picture() {}

    /**
     * Writes charts, one or two per row.
     *
     * @throws IOException if the file cannot be written, no chart has a value, or there are no fonts
     */
    public static void write(Report report, List<Chart> charts, int columns, Path file) throws IOException {
        List<Chart> drawn =
                few(charts.stream().filter(chart -> !chart.isEmpty()).toList());
        if (drawn.isEmpty()) {
            throw new IOException("there is nothing to draw: no chart has a value");
        }
        try {
            List<String> names = names(report, drawn);
            int width = columns == 1 ? WIDTH : HALF_WIDTH;
            int rows = (drawn.size() + columns - 1) / columns;
            PictureKey key = new PictureKey(entries(drawn, names), width * columns);
            BufferedImage image =
                    new BufferedImage(width * columns, HEIGHT * rows + key.height(), BufferedImage.TYPE_INT_RGB);
            Graphics2D paper = image.createGraphics();
            paper.setColor(Color.WHITE);
            paper.fillRect(0, 0, image.getWidth(), image.getHeight());
            for (int i = 0; i < drawn.size(); i++) {
                BufferedImage panel = BitmapEncoder.getBufferedImage(panel(drawn.get(i), names, width));
                paper.drawImage(panel, i % columns * width, i / columns * HEIGHT, null);
            }
            key.draw(paper, HEIGHT * rows);
            paper.dispose();
            WholeFile.write(file, beside -> {
                try (OutputStream out = Files.newOutputStream(beside)) {
                    ImageIO.write(image, "png", out);
                }
            });
        } catch (LinkageError | NullPointerException | IllegalStateException e) {
            // what AWT throws where there is no font to draw a label with
            throw new IOException("this machine has no fonts that Java can draw with (" + e.getMessage() + ")", e);
        }
    }

    /** Names in colour order: the report's, unless two would share a colour. */
    static List<String> names(Report report, List<Chart> drawn) {
        List<String> all = Stream.concat(report.seriesNames().stream(), Report.seriesNames(drawn))
                .distinct()
                .toList();
        return all.size() <= COLOURS.length
                ? all
                : Report.seriesNames(drawn).distinct().toList();
    }

    /**
     * With more curves than colours, keeps one per colour in all charts: the recorded ones, and of the others the highest, the
     * lowest and evenly many ranks between them.
     */
    static List<Chart> few(List<Chart> charts) {
        Optional<Chart> crowded = charts.stream()
                .filter(chart -> own(chart).count() > COLOURS.length)
                .findFirst();
        if (crowded.isEmpty()) {
            return charts;
        }
        List<String> ranked = own(crowded.get())
                .sorted(Comparator.comparingDouble(Picture::mean))
                .map(Series::name)
                .toList();
        Set<String> kept =
                ranked.stream().filter(name -> name.startsWith("recorded")).collect(Collectors.toSet());
        List<String> others =
                ranked.stream().filter(name -> !kept.contains(name)).toList();
        int places = Math.min(others.size(), Math.max(2, COLOURS.length - kept.size()));
        for (int i = 0; i < places; i++) {
            kept.add(others.get(Math.round(i * (others.size() - 1f) / Math.max(1, places - 1))));
        }
        return charts.stream()
                .map(chart -> {
                    List<Series> few = chart.series().stream()
                            .filter(series -> series.style() == Style.REFERENCE || kept.contains(series.name()))
                            .toList();
                    long left = own(chart)
                            .filter(series -> !kept.contains(series.name()))
                            .count();
                    long all = own(chart).count();
                    String title =
                            left == 0 ? chart.title() : chart.title() + " (" + (all - left) + " of " + all + " drawn)";
                    return new Chart(title, chart.x(), chart.y(), few, chart.marks());
                })
                .filter(chart -> !chart.isEmpty())
                .toList();
    }

    private static Stream<Series> own(Chart of) {
        return of.series().stream().filter(series -> series.style() != Style.REFERENCE && of.draws(series));
    }

    private static double mean(Series of) {
        return of.y().stream()
                .filter(Objects::nonNull)
                .mapToDouble(Double::doubleValue)
                .filter(Double::isFinite)
                .average()
                .orElse(0);
    }

    /** One entry per name; none if the panels' titles name the only curves. */
    private static List<PictureKey.Entry> entries(List<Chart> drawn, List<String> names) {
        if (drawn.stream().allMatch(chart -> chart.series().size() < 2)) {
            return List.of();
        }
        Map<String, PictureKey.Entry> entries = new LinkedHashMap<>();
        for (Chart chart : drawn) {
            for (Series series : chart.series()) {
                if (chart.draws(series)) {
                    entries.putIfAbsent(series.name(), entry(series, names.indexOf(series.name())));
                }
            }
        }
        return List.copyOf(entries.values());
    }

    private static PictureKey.Entry entry(Series of, int index) {
        return of.style() == Style.REFERENCE
                ? new PictureKey.Entry(of.name(), Color.GRAY, stroke(1f, DASHES[1]), Optional.empty())
                : new PictureKey.Entry(
                        of.name(),
                        COLOURS[index % COLOURS.length],
                        stroke(1.8f, DASHES[index % DASHES.length]),
                        Optional.of(MARKERS[index % MARKERS.length]));
    }

    static XYChart panel(Chart of, List<String> names, int width) {
        AxisScale across = AxisScale.ofPlaces(values(of, true), of.x());
        AxisScale up = AxisScale.ofValues(values(of, false), of.y());
        XYChart chart = new XYChartBuilder()
                .width(width)
                .height(HEIGHT)
                .title(of.title())
                .xAxisTitle(xTitle(of))
                .yAxisTitle(of.y().title())
                .build();
        chart.getStyler()
                .setLegendVisible(false)
                .setChartBackgroundColor(Color.WHITE)
                .setPlotBorderVisible(false)
                .setChartTitleVisible(!of.title().isEmpty())
                .setAntiAlias(true);
        chart.getStyler()
                .setXAxisLogarithmic(of.x().log())
                .setYAxisLogarithmic(of.y().log())
                .setXAxisTitleVisible(!xTitle(of).isEmpty())
                .setYAxisTitleVisible(!of.y().title().isEmpty())
                .setXAxisMaxLabelCount(8)
                .setPlotGridVerticalLinesVisible(false)
                .setXAxisMin(across.from())
                .setXAxisMax(across.to())
                .setYAxisMin(up.from())
                .setYAxisMax(up.to());
        chart.getStyler().setXAxisTickLabelsFormattingFunction(across::label);
        chart.getStyler().setYAxisTickLabelsFormattingFunction(up::label);
        chart.getStyler().setYAxisLeftWidthHint(AXIS_WIDTH);
        chart.getStyler().setAnnotationLineColor(Color.GRAY).setAnnotationLineStroke(stroke(1.4f, DASHES[2]));
        of.marks().forEach(mark -> chart.addAnnotation(new AnnotationLine(mark.at(), true, false)));
        of.series().stream().filter(of::draws).forEach(series -> draw(chart, series, names.indexOf(series.name()), of));
        return chart;
    }

    private static String xTitle(Chart of) {
        String marks = of.marks().stream()
                .map(mark -> AxisScale.ofPlaces(List.of(mark.at()), of.x()).label(mark.at()) + " "
                        + of.x().unit() + ": " + mark.what())
                .collect(Collectors.joining(", "));
        return marks.isEmpty() ? of.x().title() : of.x().title() + "   (dotted at " + marks + ")";
    }

    private static List<Double> values(Chart of, boolean across) {
        List<Double> values = new ArrayList<>();
        for (Series series : of.series()) {
            for (int i = 0; i < series.x().size(); i++) {
                Double x = series.x().get(i);
                Double y = series.y().get(i);
                if (x != null && y != null && of.x().holds(x) && of.y().holds(y)) {
                    values.add(across ? x : y);
                }
            }
        }
        return values;
    }

    private static void draw(XYChart chart, Series of, int index, Chart in) {
        int[] places = IntStream.range(0, of.x().size())
                .filter(i -> in.x().holds(of.x().get(i)))
                .toArray();
        XYSeries drawn = chart.addSeries(
                of.name(),
                IntStream.of(places).mapToDouble(i -> of.x().get(i)).toArray(),
                IntStream.of(places)
                        .mapToDouble(i -> {
                            Double y = of.y().get(i);
                            return in.y().holds(y) ? y : Double.NaN;
                        })
                        .toArray());
        PictureKey.Entry shown = entry(of, index);
        drawn.setLineColor(shown.colour());
        drawn.setLineStyle(shown.stroke());
        drawn.setMarkerColor(shown.colour());
        boolean alone = of.style() == Style.POINTS;
        drawn.setXYSeriesRenderStyle(alone ? XYSeriesRenderStyle.Scatter : XYSeriesRenderStyle.Line);
        drawn.setMarker(shown.marker()
                .filter(any -> alone || places.length <= MARKED_POINTS)
                .orElse(SeriesMarkers.NONE));
    }

    private static BasicStroke stroke(float width, float[] dash) {
        return dash.length == 1
                ? new BasicStroke(width)
                : new BasicStroke(width, BasicStroke.CAP_BUTT, BasicStroke.JOIN_ROUND, 10, dash, 0);
    }

    /** Key of a picture, in rows below all panels. */
    static final class PictureKey {
        private static final Font FONT = new Font(Font.SANS_SERIF, Font.PLAIN, 13);
        private static final int ROW = 24;
        private static final int MARGIN = 20;
        private static final int LINE = 34;
        private static final int GAP = 8;
        private static final int BETWEEN = 26;
        private static final int MARKER = 8;

        /** A curve without a marker is a reference. */
        record Entry(String name, Color colour, BasicStroke stroke, Optional<Marker> marker) {}

        private record Placed(Entry entry, int x, int row) {}

        private final List<Placed> placed = new ArrayList<>();
        private final int height;

        PictureKey(List<Entry> entries, int width) {
            Graphics2D paper = new BufferedImage(1, 1, BufferedImage.TYPE_INT_RGB).createGraphics();
            FontMetrics metrics = paper.getFontMetrics(FONT);
            int x = MARGIN;
            int row = 0;
            for (Entry entry : entries) {
                int wide = LINE + GAP + metrics.stringWidth(entry.name());
                if (x > MARGIN && x + wide > width - MARGIN) {
                    x = MARGIN;
                    row++;
                }
                placed.add(new Placed(entry, x, row));
                x += wide + BETWEEN;
            }
            paper.dispose();
            this.height = entries.isEmpty() ? 0 : (row + 1) * ROW + GAP;
        }

        /** 0 without entries. */
        int height() {
            return height;
        }

        void draw(Graphics2D paper, int top) {
            paper.setFont(FONT);
            paper.setRenderingHint(RenderingHints.KEY_ANTIALIASING, RenderingHints.VALUE_ANTIALIAS_ON);
            paper.setRenderingHint(RenderingHints.KEY_TEXT_ANTIALIASING, RenderingHints.VALUE_TEXT_ANTIALIAS_ON);
            for (Placed each : placed) {
                int y = top + each.row() * ROW + ROW / 2;
                paper.setColor(each.entry().colour());
                paper.setStroke(each.entry().stroke());
                paper.draw(new Line2D.Double(each.x(), y, each.x() + LINE, y));
                each.entry().marker().ifPresent(marker -> marker.paint(paper, each.x() + LINE / 2.0, y, MARKER));
                paper.setColor(Color.BLACK);
                paper.drawString(each.entry().name(), each.x() + LINE + GAP, y + 5);
            }
        }
    }

    /**
     * Range and tick labels of an axis, at round values with the fewest distinguishing digits; the page's script does
     * the same.
     *
     * @param to above {@code from}
     */
    record AxisScale(double from, double to) {
        private static final int TICKS = 5;
        /** Least covered share of the larger end, so that small differences look small. */
        private static final double LEAST_SHARE = 0.1;

        private static final double ROUNDING = 1e-9;

        /** An x axis need not begin at a round value. */
        static AxisScale ofPlaces(List<Double> values, Axis axis) {
            AxisScale data = of(values, axis);
            if (axis.log()) {
                return decades(data);
            }
            return data.to > data.from ? data : new AxisScale(data.from - 0.5, data.to + 0.5);
        }

        /** @param values at least one */
        static AxisScale ofValues(List<Double> values, Axis axis) {
            AxisScale data = of(values, axis);
            if (axis.log()) {
                return decades(data);
            }
            double low = data.from;
            double high = data.to;
            boolean isFree = axis.from() == null;
            if (isFree && low > 0 && low < high / 2) {
                low = 0;
            }
            double least = Math.max(Math.abs(high), Math.abs(low)) * LEAST_SHARE;
            least = least == 0 ? 1 : least;
            if (isFree && high - low < least) {
                double middle = (high + low) / 2;
                low = middle - least / 2;
                high = middle + least / 2;
            }
            if (high <= low) {
                high = low + least;
            }
            double step = step(high - low);
            Double end = axis.to();
            return new AxisScale(
                    isFree ? Math.floor(low / step + ROUNDING) * step : low,
                    end != null && end >= high ? end : Math.ceil(high / step - ROUNDING) * step);
        }

        private static AxisScale of(List<Double> values, Axis axis) {
            Double from = axis.from();
            Double to = axis.to();
            double low = values.stream().mapToDouble(Double::doubleValue).min().orElseThrow();
            double high = values.stream().mapToDouble(Double::doubleValue).max().orElseThrow();
            return new AxisScale(from == null ? low : Math.min(from, low), to == null ? high : Math.max(to, high));
        }

        /** Whole decades, so that there are at least two labels. */
        private static AxisScale decades(AxisScale data) {
            double low = Math.pow(10, Math.floor(Math.log10(data.from) + ROUNDING));
            double high = Math.pow(10, Math.ceil(Math.log10(data.to) - ROUNDING));
            return new AxisScale(low, high > low ? high : 10 * low);
        }

        private static double step(double extent) {
            double rough = extent / TICKS;
            double power = Math.pow(10, Math.floor(Math.log10(rough)));
            for (double factor : new double[] {1, 2, 5}) {
                if (factor * power >= rough * (1 - ROUNDING)) {
                    return factor * power;
                }
            }
            return 10 * power;
        }

        /** Such as 0, 0.25, 150, 12.8k, 2M. */
        String label(double value) {
            double size = Math.max(Math.abs(from), Math.abs(to));
            if (Math.abs(value) < size * ROUNDING) {
                return "0";
            }
            if (size >= 1e9 || size < 1e-4) {
                return String.format(Locale.ROOT, "%.2g", value);
            }
            double unit = Math.abs(value) >= 1e6 ? 1e6 : Math.abs(value) >= 1e4 ? 1e3 : 1;
            String digits = String.format(Locale.ROOT, "%.4g", value / unit);
            String number = digits.contains("e")
                    ? digits
                    : digits.replaceAll("(\\.\\d*?)0+$", "$1").replaceAll("\\.$", "");
            return number + (unit == 1e6 ? "M" : unit == 1e3 ? "k" : "");
        }
    }
}
