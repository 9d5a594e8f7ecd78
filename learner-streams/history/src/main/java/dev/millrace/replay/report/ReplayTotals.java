package dev.millrace.replay.report;

import dev.millrace.corrections.diagnostics.Cause;
import dev.millrace.corrections.diagnostics.Diagnosis;
import dev.millrace.replay.DecidedFigures;
import dev.millrace.replay.MaskBreakdown;
import dev.millrace.replay.MaskedShare;
import dev.millrace.replay.ReplayedStep;
import dev.millrace.replay.retrain.Agreement;
import dev.millrace.report.SampleMean;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/** Totals and curves of a replay. Neighbouring points merge into their mean beyond a bound, so memory stays constant. */
public final class ReplayTotals {
    private static final int MAX_POINTS = 1000;

    static final class Total {
        private MaskedShare tokens = MaskedShare.NONE;
        private MaskedShare sequences = MaskedShare.NONE;
        private MaskBreakdown breakdown = MaskBreakdown.empty();
        private double leastEss = 1;
        private final double[] sums = new double[Figure.DECIDED.size()];
        /** Steps that have the figure: a starved one has no ESS. */
        private final long[] known = new long[Figure.DECIDED.size()];

        private final Map<Cause, Integer> causes = new EnumMap<>(Cause.class);
        private int compared;
        private double meanDifference;
        /** Squared differences from the mean (Welford). */
        private double squares;

        private @Nullable Diagnosis first;
        private long firstAt;

        MaskedShare tokens() {
            return tokens;
        }

        MaskedShare sequences() {
            return sequences;
        }

        MaskBreakdown breakdown() {
            return breakdown;
        }

        double leastEss() {
            return leastEss;
        }

        Map<Cause, Integer> causes() {
            return causes;
        }

        /** First diagnosis of a problem with its batch. */
        Optional<String> firstAlarm() {
            return Optional.ofNullable(first).map(diagnosis -> "at batch " + firstAt + ": " + diagnosis.sentence());
        }

        /** Masked share per step, minus that of the run's own corrections. */
        SampleMean moreMasked() {
            return SampleMean.ofSquares(compared, meanDifference, squares);
        }

        private void compare(double difference) {
            compared++;
            double before = difference - meanDifference;
            meanDifference += before / compared;
            squares += before * (difference - meanDifference);
        }

        double mean(int figure) {
            return known[figure] == 0 ? Double.NaN : sums[figure] / known[figure];
        }
    }

    /** Sums over neighbouring steps. */
    private static final class Point {
        private double batch;
        private double reward;
        private double staleness;
        private int steps;
        private final double[][] sums;
        private final long[][] known;

        Point(int alternatives) {
            sums = new double[alternatives][Figure.DECIDED.size()];
            known = new long[alternatives][Figure.DECIDED.size()];
        }

        void add(Point other) {
            batch += other.batch;
            reward += other.reward;
            staleness += other.staleness;
            steps += other.steps;
            for (int a = 0; a < sums.length; a++) {
                for (int f = 0; f < sums[a].length; f++) {
                    sums[a][f] += other.sums[a][f];
                    known[a][f] += other.known[a][f];
                }
            }
        }
    }

    private final List<String> names;
    private final List<Total> totals = new ArrayList<>();
    private final List<Point> points = new ArrayList<>();
    private int stride = 1;
    private long steps;
    private long notAsRecorded;
    private long asTrained;
    private long notAsTrained;
    private Agreement agreement = Agreement.NONE;

    public ReplayTotals(List<String> names) {
        this.names = List.copyOf(names);
        names.forEach(name -> totals.add(new Total()));
    }

    public void add(ReplayedStep step) {
        steps++;
        notAsRecorded += step.isAsRecorded() ? 0 : 1;
        step.rescored().ifPresent(rescored -> {
            agreement = agreement.plus(rescored.agreement());
            asTrained += rescored.isAsTrained().filter(same -> same).isPresent() ? 1 : 0;
            notAsTrained += rescored.isAsTrained().filter(same -> !same).isPresent() ? 1 : 0;
        });
        Point point = new Point(names.size());
        point.batch = step.batch().id();
        point.reward = step.batch().reward();
        point.staleness = step.batch().stalenessMean();
        point.steps = 1;
        for (int a = 0; a < names.size(); a++) {
            DecidedFigures figures = step.figures().get(a);
            Total total = totals.get(a);
            for (int f = 0; f < Figure.DECIDED.size(); f++) {
                double value = Figure.DECIDED.get(f).of().applyAsDouble(figures);
                if (!Double.isNaN(value)) {
                    point.sums[a][f] = value;
                    point.known[a][f] = 1;
                    total.sums[f] += value;
                    total.known[f]++;
                }
            }
            total.compare(
                    figures.tokens().fraction() - step.figures().get(0).tokens().fraction());
            total.tokens = total.tokens.plus(figures.tokens());
            total.sequences = total.sequences.plus(figures.sequences());
            total.breakdown = total.breakdown.plus(figures.breakdown());
            if (!Double.isNaN(figures.step().essRatio())) {
                total.leastEss = Math.min(total.leastEss, figures.step().essRatio());
            }
            step.diagnoses().get(a).ifPresent(diagnosis -> {
                total.causes.merge(diagnosis.cause(), 1, Integer::sum);
                if (total.first == null && diagnosis.cause() != Cause.NONE) {
                    total.first = diagnosis;
                    total.firstAt = step.batch().id();
                }
            });
        }
        if (!points.isEmpty() && points.get(points.size() - 1).steps < stride) {
            points.get(points.size() - 1).add(point);
        } else {
            points.add(point);
        }
        if (points.size() > MAX_POINTS) {
            fold();
        }
    }

    private void fold() {
        List<Point> folded = new ArrayList<>();
        for (int i = 0; i + 1 < points.size(); i += 2) {
            points.get(i).add(points.get(i + 1));
            folded.add(points.get(i));
        }
        if (points.size() % 2 == 1) {
            folded.add(points.get(points.size() - 1));
        }
        points.clear();
        points.addAll(folded);
        stride *= 2;
    }

    List<String> names() {
        return names;
    }

    public long steps() {
        return steps;
    }

    /** Steps whose recorded batch the run's own corrections do not reproduce. */
    long notAsRecorded() {
        return notAsRecorded;
    }

    /** Steps at which the run's own corrections over recomputed log-probs decide as the learner logged. */
    public long asTrained() {
        return asTrained;
    }

    public long notAsTrained() {
        return notAsTrained;
    }

    /** Mean absolute advantage over steps; NaN without a step. */
    public double meanAbsoluteAdvantage(int alternative) {
        return mean(alternative, Figure.named(Figure.DECIDED, "mean_absolute_advantage"));
    }

    public Agreement agreement() {
        return agreement;
    }

    int stride() {
        return stride;
    }

    Total total(int alternative) {
        return totals.get(alternative);
    }

    double[] batches() {
        return points.stream().mapToDouble(point -> point.batch / point.steps).toArray();
    }

    double[] rewards() {
        return points.stream().mapToDouble(point -> point.reward / point.steps).toArray();
    }

    double[] staleness() {
        return points.stream()
                .mapToDouble(point -> point.staleness / point.steps)
                .toArray();
    }

    /** NaN without any. */
    double mean(int alternative, Figure<DecidedFigures> figure) {
        return totals.get(alternative).mean(Figure.DECIDED.indexOf(figure));
    }

    double[] curve(int alternative, Figure<DecidedFigures> figure) {
        return curve(alternative, Figure.DECIDED.indexOf(figure));
    }

    double[] curve(int alternative, int figure) {
        return points.stream()
                .mapToDouble(point -> point.known[alternative][figure] == 0
                        ? Double.NaN
                        : point.sums[alternative][figure] / point.known[alternative][figure])
                .toArray();
    }
}
