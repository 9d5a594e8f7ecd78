package dev.millrace.experiments;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.experiments.RunRow.Outcome;
import dev.millrace.report.Axis;
import dev.millrace.report.Chart;
import dev.millrace.report.Column;
import dev.millrace.report.Conclusion;
import dev.millrace.report.Conclusion.Health;
import dev.millrace.report.Report;
import dev.millrace.report.ReportFolder;
import dev.millrace.report.ReportPage;
import dev.millrace.report.ReportText;
import dev.millrace.report.Section;
import dev.millrace.report.Series;
import dev.millrace.report.Table;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.OptionalInt;
import java.util.SplittableRandom;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.stream.Collectors;
import java.util.stream.DoubleStream;

/** Lag law of one correction: runs, fit, table and chart. */
public record LagLawReport(Grid grid, List<RunRow> rows, LagLaw law) {
    private static final List<String> FILES = List.of("lag-law.html", "lag-law.json", "lag-law.md", "lag-law.png");

    /** @param rows of one correction; those at lag 0 are the baseline and not fitted */
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

    /** Greatest lag of at least 1 at which every seed keeps up. */
    private OptionalInt greatestThatKeepsUp() {
        return lags().stream()
                .filter(lag -> lag > 0 && at(lag).stream().allMatch(row -> row.outcome() == Outcome.KEEPS_UP))
                .mapToInt(Integer::intValue)
                .max();
    }

    public Report report() {
        return Report.of(grid.corrections().get(0).title() + ": ESS over lag", List.of(capital(law.verdict()) + "."))
                .concluding(Conclusion.of(
                                "How does the effective sample size fall with the lag?",
                                law.verdict(),
                                law.isSupported() ? Health.OK : Health.LOOK)
                        .resting(
                                "alpha of L = c ESS^alpha",
                                String.format(
                                        Locale.ROOT,
                                        "%.3g (%.3g to %.3g)",
                                        law.alpha().value(),
                                        law.alpha().low(),
                                        law.alpha().high()))
                        .sure("95 % of " + LagLaw.RESAMPLES + " resampled fits to " + law.runs() + " runs"))
                .with(Section.of("").with(Table.of("", columns(), lags())).noting(sentences()))
                .with(Section.of("ESS over lag").with(List.of(chart())));
    }

    private List<Column<Integer>> columns() {
        return List.of(
                Column.count("lag", lag -> lag),
                Column.text("ESS ratio by seed", lag -> bySeed(lag, row -> format("%.3f", row.essRatio()))),
                Column.significant(
                        "second moment",
                        2,
                        lag -> at(lag).stream()
                                .mapToDouble(RunRow::secondMoment)
                                .average()
                                .orElseThrow()),
                Column.text("last reward by seed", lag -> bySeed(lag, row -> format("%.3f", row.lastReward()))),
                Column.text(
                        "outcome",
                        lag -> at(lag).stream()
                                .map(row -> row.outcome()
                                        .name()
                                        .toLowerCase(Locale.ROOT)
                                        .replace('_', ' '))
                                .distinct()
                                .collect(Collectors.joining(" / "))),
                Column.number("lag that the law gives", 0, lag -> lag == 0 ? Double.NaN : law.lagAt(essAt(lag))));
    }

    private String bySeed(int lag, Function<RunRow, String> value) {
        return at(lag).stream().map(value).collect(Collectors.joining(" / "));
    }

    private double essAt(int lag) {
        return Math.exp(at(lag).stream()
                .mapToDouble(row -> Math.log(row.essRatio()))
                .average()
                .orElseThrow());
    }

    private List<String> sentences() {
        OptionalInt greatest = greatestThatKeepsUp();
        return List.of(
                String.format(
                        Locale.ROOT,
                        "L = c ESS^alpha: c = %.3g (%.3g to %.3g), alpha = %.3g (%.3g to %.3g), 95 %% of %d resampled fits to %d"
                                + " runs.",
                        law.c().value(),
                        law.c().low(),
                        law.c().high(),
                        law.alpha().value(),
                        law.alpha().low(),
                        law.alpha().high(),
                        LagLaw.RESAMPLES,
                        law.runs()),
                String.format(
                        Locale.ROOT,
                        "R^2 of log ESS: %.3f; of an exponential in the lag: %.3f.",
                        law.rSquared(),
                        law.exponentialRSquared()),
                String.format(
                        Locale.ROOT,
                        "No run that keeps up lies above %.3g ESS^alpha; %s.",
                        law.bound(),
                        greatest.isPresent()
                                ? "every seed keeps up to a lag of " + greatest.getAsInt()
                                : "at no lag does every seed keep up"));
    }

    private static String capital(String sentence) {
        return Character.toUpperCase(sentence.charAt(0)) + sentence.substring(1);
    }

    private static String format(String pattern, double value) {
        return String.format(Locale.ROOT, pattern, value);
    }

    /** @param said receives a line if there can be no picture */
    public void write(Path directory, Consumer<String> said) throws IOException {
        ObjectNode all = StalenessReport.summary(grid, rows);
        all.set("law", new ObjectMapper().valueToTree(law));
        all.put("supported", law.isSupported());
        all.put("verdict", law.verdict());
        Report report = report();
        try (ReportFolder files = ReportFolder.begin(directory, FILES)) {
            files.write("lag-law.html", ReportPage.of(report));
            files.write("lag-law.json", all.toPrettyString());
            files.write("lag-law.md", ReportText.markdown(report));
            files.draw("lag-law.png", report, List.of(chart()), 1, said);
            files.finish();
        }
    }

    private Chart chart() {
        List<Series> series = new ArrayList<>();
        for (long seed : grid.seeds()) {
            List<RunRow> ofSeed = rows.stream()
                    .filter(row -> row.seed() == seed && row.lag() > 0)
                    .toList();
            series.add(Series.points(
                    "seed " + seed,
                    ofSeed.stream().mapToDouble(RunRow::lag).toArray(),
                    ofSeed.stream().mapToDouble(RunRow::essRatio).toArray()));
        }
        double[] lags = lags().stream()
                .filter(lag -> lag > 0)
                .mapToDouble(Integer::doubleValue)
                .sorted()
                .toArray();
        series.add(Series.line(
                format("L = %.3g ", law.c().value())
                        + format("ESS^%.3g", law.alpha().value()),
                lags,
                DoubleStream.of(lags)
                        .map(lag -> Math.min(
                                1,
                                Math.pow(lag / law.c().value(), 1 / law.alpha().value())))
                        .toArray()));
        return Chart.of(
                grid.corrections().get(0).title() + ": ESS over lag",
                Axis.of("lag").in("versions").logarithmic(),
                Axis.of("ESS ratio").logarithmic(),
                series);
    }

    /**
     * The law {@code L = c · ESS^alpha} between lag and ESS ratio {@code (Σ w)² / (n Σ w²)} of raw sequence weights.
     *
     * <p>Lag is set and ESS scatters, so {@code log ESS = a + b log L} is fitted by least squares, with {@code alpha =
     * 1/b} and {@code c = exp(-a/b)}. Intervals are percentiles of {@value #RESAMPLES} bootstrap fits. The alternative
     * is {@code log ESS = a + b L}.
     *
     * @param rSquared share of the variance of log ESS that the power law explains
     * @param bound least constant with no run that keeps up above {@code bound · ESS^alpha}; NaN if none does
     */
    record LagLaw(Interval c, Interval alpha, double rSquared, double exponentialRSquared, double bound, int runs) {
        static final int RESAMPLES = 2000;
        private static final double TAIL = 0.025;
        private static final double GOOD = 0.8;
        private static final long SEED = 20_260_101;
        private static final int LEAST_LAGS = 3;

        /** 95 % interval of the resampled values. */
        public record Interval(double value, double low, double high) {}

        /** Lag at least 1, ratio in (0, 1]. */
        public record Point(double lag, double ess, boolean keepsUp) {
            public Point {
                if (!(lag >= 1 && ess > 0 && ess <= 1.000001)) {
                    throw new IllegalArgumentException(
                            "a lag of at least 1 and an ESS ratio in (0, 1] are needed: lag=" + lag + ", ess=" + ess);
                }
            }
        }

        private record Line(double a, double b, double rSquared) {
            double alpha() {
                return 1 / b;
            }

            double c() {
                return Math.exp(-a / b);
            }
        }

        /** @throws IllegalArgumentException with fewer than three different lags */
        static LagLaw fit(List<Point> points) {
            if (points.stream().mapToDouble(Point::lag).distinct().count() < LEAST_LAGS) {
                throw new IllegalArgumentException("a law needs runs at " + LEAST_LAGS + " lags of at least 1 or more");
            }
            Line line = line(points, true);
            List<Line> resampled = new ArrayList<>();
            SplittableRandom random = new SplittableRandom(SEED);
            while (resampled.size() < RESAMPLES) {
                List<Point> drawn = random.ints(points.size(), 0, points.size())
                        .mapToObj(points::get)
                        .toList();
                if (drawn.stream().mapToDouble(Point::lag).distinct().count() >= 2) {
                    resampled.add(line(drawn, true));
                }
            }
            double bound = points.stream()
                    .filter(Point::keepsUp)
                    .mapToDouble(p -> p.lag() / Math.pow(p.ess(), line.alpha()))
                    .max()
                    .orElse(Double.NaN);
            return new LagLaw(
                    interval(line.c(), resampled.stream().mapToDouble(Line::c).toArray()),
                    interval(
                            line.alpha(),
                            resampled.stream().mapToDouble(Line::alpha).toArray()),
                    line.rSquared(),
                    line(points, false).rSquared(),
                    bound,
                    points.size());
        }

        private static Line line(List<Point> points, boolean power) {
            double[] x = points.stream()
                    .mapToDouble(p -> power ? Math.log(p.lag()) : p.lag())
                    .toArray();
            double[] y = points.stream().mapToDouble(p -> Math.log(p.ess())).toArray();
            double meanX = Arrays.stream(x).average().orElseThrow();
            double meanY = Arrays.stream(y).average().orElseThrow();
            double sxx = 0;
            double sxy = 0;
            double syy = 0;
            for (int i = 0; i < x.length; i++) {
                sxx += (x[i] - meanX) * (x[i] - meanX);
                sxy += (x[i] - meanX) * (y[i] - meanY);
                syy += (y[i] - meanY) * (y[i] - meanY);
            }
            double b = sxy / sxx;
            return new Line(meanY - b * meanX, b, syy == 0 ? 1 : sxy * sxy / (sxx * syy));
        }

        private static Interval interval(double value, double[] resampled) {
            Arrays.sort(resampled);
            return new Interval(
                    value,
                    resampled[(int) (TAIL * resampled.length)],
                    resampled[(int) ((1 - TAIL) * resampled.length)]);
        }

        double lagAt(double ess) {
            return c.value() * Math.pow(ess, alpha.value());
        }

        /**
         * True if the power law explains most of the variance, alpha is negative in almost all fits, and an
         * exponential no longer explains.
         */
        boolean isSupported() {
            return rSquared >= GOOD && alpha.high() < 0 && alpha.low() < 0 && rSquared >= exponentialRSquared;
        }

        String verdict() {
            String reason = rSquared < GOOD
                    ? "the power law explains less than " + GOOD + " of the variance of log ESS"
                    : alpha.high() >= 0 || alpha.low() >= 0
                            ? "the interval of alpha holds both signs"
                            : rSquared < exponentialRSquared ? "an exponential in the lag explains more" : "";
            return reason.isEmpty() ? "the runs support the law" : "the runs do not support the law: " + reason;
        }
    }
}
