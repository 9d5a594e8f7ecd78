package dev.millrace.experiments;

import com.fasterxml.jackson.databind.JsonNode;
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
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.OptionalInt;
import java.util.SplittableRandom;
import java.util.function.Consumer;
import java.util.function.DoubleUnaryOperator;
import java.util.function.Function;
import java.util.function.ToDoubleFunction;
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
                        .filter(row -> row.key().lag() > 0)
                        .map(row -> new LagLaw.Point(
                                row.key().lag(), row.drift().essRatio(), row.outcome() == Outcome.KEEPS_UP))
                        .toList()));
    }

    /**
     * The runs of a written report.
     *
     * @param json a {@code lag-law.json}
     */
    public static LagLawReport read(Path json) throws IOException {
        JsonNode tree = RunFiles.JSON.readTree(json.toFile());
        tree.withObject("/settings")
                .set("model", RunFiles.JSON.valueToTree(StalenessSettings.SMALL_MODEL)); // of every lag law
        List<RunRow> rows = List.of(RunFiles.JSON.treeToValue(tree.path("runs"), RunRow[].class));
        Grid grid = new Grid(
                rows.stream().map(row -> row.key().lag()).distinct().toList(),
                rows.stream().map(row -> row.key().correction()).distinct().toList(),
                rows.stream().map(row -> row.key().seed()).distinct().toList(),
                RunFiles.JSON.treeToValue(tree.path("settings"), StalenessSettings.class));
        return of(grid, rows);
    }

    private List<Integer> lags() {
        return grid.lags().stream()
                .filter(lag -> rows.stream().anyMatch(row -> row.key().lag() == lag))
                .toList();
    }

    private List<RunRow> at(int lag) {
        return rows.stream().filter(row -> row.key().lag() == lag).toList();
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
                .with(Section.of("Laws of log ESS on the same runs, each fitted by least squares")
                        .with(Table.of("", fitColumns(), fits())))
                .with(Section.of("Published conditions of stability: how many runs they judge as they came out")
                        .with(Table.of("", CONDITION_COLUMNS, conditions())))
                .with(StalenessReport.quadrants(rows))
                .with(Section.of("ESS over lag").with(List.of(chart())));
    }

    private List<Column<Integer>> columns() {
        return List.of(
                Column.count("lag", lag -> lag),
                Column.text(
                        "ESS ratio by seed",
                        lag -> bySeed(lag, row -> format("%.3f", row.drift().essRatio()))),
                Column.significant("second moment", 2, this::secondMomentAt),
                Column.number("drift exponent", 2, this::driftExponent),
                Column.text(
                        "last reward by seed",
                        lag -> bySeed(lag, row -> format("%.3f", row.learning().lastReward()))),
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

    /** A law of log ESS over the lag. */
    record Fit(String law, String parameters, double rSquared, double rms, List<Double> residuals) {

        /** @param residuals observed less fitted log ESS, mean of the seeds at each lag */
        static Fit of(
                String law, String parameters, List<RunRow> stale, List<Integer> lags, DoubleUnaryOperator logEss) {
            ToDoubleFunction<RunRow> residual = row -> Math.log(row.drift().essRatio())
                    - logEss.applyAsDouble(row.key().lag());
            double mean = RunRow.mean(stale, row -> Math.log(row.drift().essRatio()));
            double squares = RunRow.mean(stale, row -> Math.pow(residual.applyAsDouble(row), 2));
            double variance =
                    RunRow.mean(stale, row -> Math.pow(Math.log(row.drift().essRatio()) - mean, 2));
            return new Fit(
                    law,
                    parameters,
                    1 - squares / variance,
                    Math.sqrt(squares),
                    lags.stream()
                            .map(lag -> stale.stream()
                                    .filter(row -> row.key().lag() == lag)
                                    .mapToDouble(residual)
                                    .average()
                                    .orElseThrow())
                            .toList());
        }
    }

    private List<RunRow> stale() {
        return rows.stream().filter(row -> row.key().lag() > 0).toList();
    }

    private List<Integer> staleLags() {
        return lags().stream().filter(lag -> lag > 0).toList();
    }

    List<Fit> fits() {
        List<RunRow> stale = stale();
        List<Integer> lags = staleLags();
        double[][] points = stale.stream()
                .map(row -> new double[] {row.key().lag(), Math.log(row.drift().essRatio())})
                .toArray(double[][]::new);
        double meanLag = Arrays.stream(points).mapToDouble(p -> p[0]).average().orElseThrow();
        double mean = Arrays.stream(points).mapToDouble(p -> p[1]).average().orElseThrow();
        double slope = Arrays.stream(points)
                        .mapToDouble(p -> (p[0] - meanLag) * (p[1] - mean))
                        .sum()
                / Arrays.stream(points)
                        .mapToDouble(p -> Math.pow(p[0] - meanLag, 2))
                        .sum();
        double eta = grid.settings().learningRate();
        double kappa = Arrays.stream(points)
                        .mapToDouble(p -> -p[1] * Math.pow(eta * p[0], 2))
                        .sum()
                / Arrays.stream(points)
                        .mapToDouble(p -> Math.pow(eta * p[0], 4))
                        .sum();
        double c = Math.exp(Arrays.stream(points)
                .mapToDouble(p -> Math.log(p[0]) - p[1])
                .average()
                .orElseThrow());
        return List.of(
                Fit.of(
                        "L = c ESS^alpha",
                        format("c %.3g", law.c().value())
                                + format(", alpha %.3g", law.alpha().value()),
                        stale,
                        lags,
                        lag -> Math.log(lag / law.c().value()) / law.alpha().value()),
                Fit.of(
                        "ESS = a exp(-b L)",
                        format("a %.3g", Math.exp(mean - slope * meanLag)) + format(", b %.3g", -slope),
                        stale,
                        lags,
                        lag -> mean + slope * (lag - meanLag)),
                Fit.of(
                        "L = c ESS, conjecture 5 of the survey at equality",
                        format("c %.3g", c),
                        stale,
                        lags,
                        lag -> Math.log(lag / c)),
                Fit.of(
                        "-log ESS = k (eta L)^2, from the bias of order eta L of arXiv 2607.01083",
                        format("k %.3g", kappa),
                        stale,
                        lags,
                        lag -> -kappa * Math.pow(eta * lag, 2)));
    }

    private List<Column<Fit>> fitColumns() {
        List<Column<Fit>> columns = new ArrayList<>(List.of(
                Column.text("law", Fit::law),
                Column.text("parameters", Fit::parameters),
                Column.number("R^2", 2, Fit::rSquared),
                Column.number("RMS residual", 2, Fit::rms)));
        for (int i = 0; i < staleLags().size(); i++) {
            int at = i;
            columns.add(Column.number(
                    "residual at " + staleLags().get(i),
                    2,
                    fit -> fit.residuals().get(at)));
        }
        return columns;
    }

    /**
     * A condition {@code value <= bound} for a run to keep up.
     *
     * @param right runs that it judges as they came out, at the bound
     */
    record Condition(String name, String bound, long right, int runs) {

        static Condition at(String name, double bound, List<RunRow> stale, ToDoubleFunction<RunRow> value) {
            return new Condition(name, format("%.3g", bound), right(bound, stale, value), stale.size());
        }

        /** At the best bound: the greatest value of a run such that most runs are judged rightly. */
        static Condition best(String name, List<RunRow> stale, ToDoubleFunction<RunRow> value) {
            double bound = stale.stream()
                    .mapToDouble(value)
                    .boxed()
                    .max(Comparator.<Double>comparingLong(at -> right(at, stale, value))
                            .thenComparing(at -> -at))
                    .orElseThrow();
            double next = stale.stream()
                    .mapToDouble(value)
                    .filter(at -> at > bound)
                    .min()
                    .orElse(Double.POSITIVE_INFINITY);
            return new Condition(
                    name,
                    format("%.3g", bound) + format(" to %.3g, fitted", next),
                    right(bound, stale, value),
                    stale.size());
        }

        private static long right(double bound, List<RunRow> stale, ToDoubleFunction<RunRow> value) {
            return stale.stream()
                    .filter(row -> (value.applyAsDouble(row) <= bound) == (row.outcome() == Outcome.KEEPS_UP))
                    .count();
        }
    }

    private static final List<Column<Condition>> CONDITION_COLUMNS = List.of(
            Column.text("keeps up if", Condition::name),
            Column.text("bound", Condition::bound),
            Column.count("right", Condition::right),
            Column.count("runs", Condition::runs));

    List<Condition> conditions() {
        double eta = grid.settings().learningRate();
        ToDoubleFunction<RunRow> perEss = row -> row.key().lag() / row.drift().essRatio();
        return List.of(
                Condition.at("L / ESS at most c of the survey, ESS a ratio", 50, stale(), perEss),
                Condition.at(
                        "L / ESS at most c of the survey, ESS in sequences",
                        50,
                        stale(),
                        row -> row.key().lag()
                                / (row.drift().essRatio() * grid.settings().batchSequences())),
                Condition.best("L / ESS at most c, ESS a ratio", stale(), perEss),
                Condition.best(
                        "eta L at most R / G, arXiv 2607.01083",
                        stale(),
                        row -> eta * row.key().lag()),
                Condition.best(
                        "L at most a constant: the control",
                        stale(),
                        row -> row.key().lag()));
    }

    private String bySeed(int lag, Function<RunRow, String> value) {
        return at(lag).stream().map(value).collect(Collectors.joining(" / "));
    }

    private double secondMomentAt(int lag) {
        return RunRow.mean(at(lag), row -> row.drift().secondMoment());
    }

    /** b of {@code sqrt(second moment) ~ L^b} from the next smaller lag on; 1 where drift is of order eta L. */
    double driftExponent(int lag) {
        OptionalInt smaller = staleLags().stream()
                .mapToInt(Integer::intValue)
                .filter(other -> other < lag)
                .max();
        return smaller.isEmpty()
                ? Double.NaN
                : Math.log(secondMomentAt(lag) / secondMomentAt(smaller.getAsInt()))
                        / 2
                        / Math.log(lag / (double) smaller.getAsInt());
    }

    private double essAt(int lag) {
        return Math.exp(RunRow.mean(at(lag), row -> Math.log(row.drift().essRatio())));
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
        all.set("fits", new ObjectMapper().valueToTree(fits()));
        all.set("conditions", new ObjectMapper().valueToTree(conditions()));
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
                    .filter(row -> row.key().seed() == seed && row.key().lag() > 0)
                    .toList();
            series.add(Series.points(
                    "seed " + seed,
                    ofSeed.stream().mapToDouble(row -> row.key().lag()).toArray(),
                    ofSeed.stream().mapToDouble(row -> row.drift().essRatio()).toArray()));
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
