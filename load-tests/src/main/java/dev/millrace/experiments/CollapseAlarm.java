package dev.millrace.experiments;

import dev.millrace.experiments.Grid.RunKey;
import dev.millrace.experiments.LagLawReport.LagLaw.Interval;
import dev.millrace.experiments.StepPoint.Evaluation;
import dev.millrace.report.Column;
import dev.millrace.report.Section;
import dev.millrace.report.Table;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.OptionalLong;
import java.util.SplittableRandom;
import java.util.function.ToDoubleFunction;
import java.util.stream.IntStream;

/**
 * Do recorded diagnostics tell that the reward is about to fall? Single indicators and logistic regressions over them,
 * on the stale runs of a grid.
 *
 * <p>A reward <em>falls</em> at the first evaluation at most 70 % of the best before, if none within the next {@value
 * #PATIENCE} updates is above; or where a number is not finite. A <em>window</em> is the steps between two evaluations
 * before the fall; positive if the fall comes within {@value #HORIZON} updates of its end. Windows whose label the run's
 * end hides are left out.
 *
 * <p>Every run is scored by a fit to runs of other seeds <em>and</em> other corrections. Thresholds are those that {@value
 * #FALSE_ALARMS} of the fit's negative windows exceed. Intervals resample whole runs. Source of the question: conjecture 2
 * of "Off-Policy Drift in LLM RL" (Liu 2026), whose features are χ², ESS, clip fraction and length; the length is constant
 * here.
 */
record CollapseAlarm(int runs, int falls, int windows, int positives, List<Rating> ratings) {
    static final int HORIZON = 100;
    static final int PATIENCE = 100;
    static final double FALSE_ALARMS = 0.1;
    private static final double LEFT = 0.7;
    private static final int RESAMPLES = 1000;
    private static final long SEED = 20_261_130;

    /**
     * @param auroc of windows; 0.5 says nothing, below it the indicator points the other way
     * @param lead median of the updates from a falling run's first alarm to the fall, 0 without one
     * @param falseAlarms share of the other runs with an alarm
     */
    record Rating(String indicator, Interval auroc, Interval lead, double falseAlarms) {}

    /** Means over a window, signed so that more is worse. */
    private static final Map<String, ToDoubleFunction<StepPoint>> INDICATORS = new LinkedHashMap<>();

    static {
        INDICATORS.put("ESS ratio", point -> -Math.log(point.drift().essRatio()));
        INDICATORS.put(
                "χ² per token", point -> Math.log1p(Math.max(0, point.drift().chiSquare())));
        INDICATORS.put("clip fraction", point -> point.update().clipFraction());
        INDICATORS.put("TV per token", point -> point.drift().tv());
        INDICATORS.put("KL per token", point -> point.drift().kl());
        INDICATORS.put("second moment", point -> point.drift().secondMoment());
        INDICATORS.put("masked share", point -> point.update().maskedFraction());
        INDICATORS.put("gradient norm", point -> Math.log(1e-9 + point.update().gradNorm()));
        INDICATORS.put("entropy", point -> -point.update().entropy());
    }

    /** The first three are the conjecture's. */
    private static final int CONJECTURED = 3;

    record Window(RunKey run, long step, boolean falls, double[] values) {}

    /** What is scored: some of the indicators, alone or by a regression. */
    private record Scorer(String name, int from, int to) {
        double[] fit(List<Window> windows) {
            return to - from == 1 ? new double[] {1, 0} : Logistic.fit(windows, from, to);
        }

        double score(double[] fitted, Window window) {
            double sum = fitted[to - from];
            for (int i = from; i < to; i++) {
                sum += fitted[i - from] * window.values()[i];
            }
            return sum;
        }
    }

    private record Scored(Window window, double score, boolean alarm) {}

    static CollapseAlarm of(List<GridRunResult> all) {
        List<GridRunResult> runs =
                all.stream().filter(run -> run.key().lag() > 0).toList();
        Map<RunKey, Long> falls = new LinkedHashMap<>();
        List<Window> windows = new ArrayList<>();
        for (GridRunResult run : runs) {
            fall(run).ifPresent(step -> falls.put(run.key(), step));
            windows.addAll(windows(run));
        }
        List<Scorer> scorers = new ArrayList<>();
        for (String name : INDICATORS.keySet()) {
            scorers.add(new Scorer(name, scorers.size(), scorers.size() + 1));
        }
        scorers.add(new Scorer("regression on the first three", 0, CONJECTURED));
        scorers.add(new Scorer("regression on all", 0, INDICATORS.size()));
        List<Rating> ratings = new ArrayList<>();
        List<Scored> scored = List.of();
        for (Scorer scorer : scorers) {
            scored = scored(scorer, windows);
            if (scored.stream().map(each -> each.window().falls()).distinct().count() == 2) {
                ratings.add(rating(scorer.name(), scored, falls));
            }
        }
        return new CollapseAlarm(
                runs.size(),
                falls.size(),
                scored.size(),
                (int) scored.stream().filter(each -> each.window().falls()).count(),
                ratings);
    }

    /** Empty if the run ends before it is known whether its reward stays low. */
    static OptionalLong fall(GridRunResult run) {
        OptionalLong low = low(run);
        return low.isEmpty() || run.refused() != null || low.getAsLong() + PATIENCE <= end(run)
                ? low
                : OptionalLong.empty();
    }

    private static long end(GridRunResult run) {
        return run.evaluations().get(run.evaluations().size() - 1).step();
    }

    /** The first evaluation that no later one shows to be no fall. */
    private static OptionalLong low(GridRunResult run) {
        List<Evaluation> all = run.evaluations();
        double best = all.get(0).reward();
        for (Evaluation at : all) {
            double bound = LEFT * best;
            if (at.reward() <= bound
                    && all.stream()
                            .filter(later -> later.step() >= at.step() && later.step() <= at.step() + PATIENCE)
                            .allMatch(later -> later.reward() <= bound)) {
                return OptionalLong.of(at.step());
            }
            best = Math.max(best, at.reward());
        }
        return run.refused() == null
                ? OptionalLong.empty()
                : OptionalLong.of(run.points().size());
    }

    static List<Window> windows(GridRunResult run) {
        OptionalLong fall = fall(run);
        List<Evaluation> all = run.evaluations();
        long known = Math.min(end(run), low(run).orElse(Long.MAX_VALUE) - 1) - HORIZON;
        List<Window> windows = new ArrayList<>();
        for (int i = 1; i < all.size(); i++) {
            long from = all.get(i - 1).step();
            long to = all.get(i).step();
            if (fall.isPresent() ? to < fall.getAsLong() : to <= known) {
                List<StepPoint> points = run.points().stream()
                        .filter(point -> point.step() >= from && point.step() < to)
                        .toList();
                windows.add(new Window(
                        run.key(),
                        to,
                        fall.isPresent() && fall.getAsLong() - to <= HORIZON,
                        INDICATORS.values().stream()
                                .mapToDouble(value -> points.stream()
                                        .mapToDouble(value)
                                        .average()
                                        .orElseThrow())
                                .toArray()));
            }
        }
        return windows;
    }

    /** Windows with a fit: those for which other seeds and corrections have windows of both labels. */
    private static List<Scored> scored(Scorer scorer, List<Window> windows) {
        Map<List<Object>, double[]> fits = new LinkedHashMap<>(); // coefficients, then the threshold
        List<Scored> scored = new ArrayList<>();
        for (Window window : windows) {
            RunKey run = window.run();
            double[] fit = fits.computeIfAbsent(List.of(run.seed(), run.correction()), fold -> {
                List<Window> others = windows.stream()
                        .filter(other -> other.run().seed() != run.seed()
                                && !other.run().correction().equals(run.correction()))
                        .toList();
                if (others.stream().map(Window::falls).distinct().count() < 2) {
                    return new double[0];
                }
                double[] fitted = scorer.fit(others);
                double[] calm = others.stream()
                        .filter(other -> !other.falls())
                        .mapToDouble(other -> scorer.score(fitted, other))
                        .sorted()
                        .toArray();
                double[] withThreshold = Arrays.copyOf(fitted, fitted.length + 1);
                withThreshold[fitted.length] = calm[(int) ((1 - FALSE_ALARMS) * (calm.length - 1))];
                return withThreshold;
            });
            if (fit.length > 0) {
                double score = scorer.score(fit, window);
                scored.add(new Scored(window, score, score > fit[fit.length - 1]));
            }
        }
        return scored;
    }

    private static Rating rating(String name, List<Scored> scored, Map<RunKey, Long> falls) {
        Map<RunKey, List<Scored>> byRun = new LinkedHashMap<>();
        scored.forEach(each -> byRun.computeIfAbsent(each.window().run(), run -> new ArrayList<>())
                .add(each));
        List<RunKey> runs = List.copyOf(byRun.keySet());
        SplittableRandom random = new SplittableRandom(SEED);
        List<Double> aurocs = new ArrayList<>();
        List<Double> leads = new ArrayList<>();
        for (int i = 0; i < RESAMPLES; i++) {
            List<RunKey> drawn =
                    random.ints(runs.size(), 0, runs.size()).mapToObj(runs::get).toList();
            aurocs.add(auroc(drawn.stream()
                    .flatMap(run -> byRun.getOrDefault(run, List.of()).stream())
                    .toList()));
            leads.add(lead(drawn, byRun, falls));
        }
        List<RunKey> calm = runs.stream().filter(run -> !falls.containsKey(run)).toList();
        return new Rating(
                name,
                interval(auroc(scored), aurocs),
                interval(lead(runs, byRun, falls), leads),
                calm.stream()
                        .mapToInt(run ->
                                byRun.getOrDefault(run, List.of()).stream().anyMatch(Scored::alarm) ? 1 : 0)
                        .average()
                        .orElse(Double.NaN));
    }

    private static double lead(List<RunKey> runs, Map<RunKey, List<Scored>> byRun, Map<RunKey, Long> falls) {
        return RunRow.median(
                runs.stream().filter(falls::containsKey).toList(),
                run -> byRun.getOrDefault(run, List.of()).stream()
                        .filter(Scored::alarm)
                        .mapToLong(each ->
                                falls.getOrDefault(run, 0L) - each.window().step())
                        .findFirst()
                        .orElse(0));
    }

    private static double auroc(List<Scored> scored) {
        return auroc(
                scored.stream().mapToDouble(Scored::score).toArray(),
                IntStream.range(0, scored.size())
                        .filter(i -> scored.get(i).window().falls())
                        .toArray());
    }

    /** Share of the pairs of a positive and a negative in which the positive scores higher; ties count half. */
    static double auroc(double[] scores, int[] positives) {
        boolean[] isPositive = new boolean[scores.length];
        Arrays.stream(positives).forEach(i -> isPositive[i] = true);
        List<Integer> order = IntStream.range(0, scores.length)
                .boxed()
                .sorted(Comparator.comparingDouble(i -> scores[i]))
                .toList();
        double ranks = 0;
        for (int i = 0; i < order.size(); ) {
            int end = i;
            while (end < order.size() && scores[order.get(end)] == scores[order.get(i)]) {
                end++;
            }
            for (int j = i; j < end; j++) {
                ranks += isPositive[order.get(j)] ? (i + 1 + end) / 2.0 : 0;
            }
            i = end;
        }
        double n = positives.length;
        return (ranks - n * (n + 1) / 2) / (n * (scores.length - n));
    }

    private static Interval interval(double value, List<Double> resampled) {
        double[] sorted = resampled.stream()
                .filter(Double::isFinite)
                .mapToDouble(Double::doubleValue)
                .sorted()
                .toArray();
        return sorted.length == 0
                ? new Interval(value, Double.NaN, Double.NaN)
                : new Interval(value, sorted[(int) (0.025 * sorted.length)], sorted[(int) (0.975 * sorted.length)]);
    }

    Section section() {
        Section section = Section.of("Early warning: does a window of steps tell that the reward falls within "
                        + HORIZON + " updates?")
                .noting(List.of(falls + " of " + runs + " stale runs fall; " + positives + " of " + windows
                        + " scored windows are before a fall. Each run is scored by fits to other seeds and other"
                        + " corrections; 95 % intervals over resampled runs."));
        return ratings.isEmpty()
                ? section
                : section.with(Table.of(
                        "",
                        List.of(
                                Column.text("indicator", Rating::indicator),
                                Column.text("AUROC", rating -> shown("%.2f", rating.auroc())),
                                Column.text("lead, updates", rating -> shown("%.0f", rating.lead())),
                                Column.percent("other runs with an alarm", 0, Rating::falseAlarms)),
                        ratings));
    }

    private static String shown(String format, Interval of) {
        return String.format(
                Locale.ROOT, format + " (" + format + " to " + format + ")", of.value(), of.low(), of.high());
    }

    /** Ridge logistic regression on standardised values, by gradient descent. */
    static final class Logistic {
        private static final int ITERATIONS = 1000;
        private static final double RIDGE = 0.01;

        private Logistic() {}

        /** Coefficients of the values from..to as they are, then the intercept. */
        static double[] fit(List<Window> windows, int from, int to) {
            int n = windows.size();
            int width = to - from;
            double[] mean = new double[width];
            double[] deviation = new double[width];
            for (int k = 0; k < width; k++) {
                int column = from + k;
                mean[k] = windows.stream()
                        .mapToDouble(w -> w.values()[column])
                        .average()
                        .orElseThrow();
                double center = mean[k];
                deviation[k] = Math.max(
                        1e-12,
                        Math.sqrt(windows.stream()
                                .mapToDouble(w -> Math.pow(w.values()[column] - center, 2))
                                .average()
                                .orElseThrow()));
            }
            double[][] x = new double[n][width + 1];
            for (int i = 0; i < n; i++) {
                for (int k = 0; k < width; k++) {
                    x[i][k] = (windows.get(i).values()[from + k] - mean[k]) / deviation[k];
                }
                x[i][width] = 1;
            }
            double[] beta = new double[width + 1];
            double rate = 1 / ((width + 1) / 4.0 + RIDGE); // 1 over a bound of the curvature
            for (int iteration = 0; iteration < ITERATIONS; iteration++) {
                double[] gradient = new double[width + 1];
                for (int i = 0; i < n; i++) {
                    double z = 0;
                    for (int k = 0; k <= width; k++) {
                        z += beta[k] * x[i][k];
                    }
                    double error = 1 / (1 + Math.exp(-z)) - (windows.get(i).falls() ? 1 : 0);
                    for (int k = 0; k <= width; k++) {
                        gradient[k] += error * x[i][k] / n;
                    }
                }
                for (int k = 0; k <= width; k++) {
                    beta[k] -= rate * (gradient[k] + (k < width ? RIDGE * beta[k] : 0));
                }
            }
            for (int k = 0; k < width; k++) {
                beta[k] /= deviation[k];
                beta[width] -= beta[k] * mean[k];
            }
            return beta;
        }
    }
}
