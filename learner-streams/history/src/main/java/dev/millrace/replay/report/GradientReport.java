package dev.millrace.replay.report;

import static dev.millrace.replay.report.RetrainReport.count;

import dev.millrace.replay.retrain.GradientStep;
import dev.millrace.replay.retrain.VariantGradient;
import dev.millrace.report.Axis;
import dev.millrace.report.Chart;
import dev.millrace.report.Column;
import dev.millrace.report.Conclusion;
import dev.millrace.report.Conclusion.Health;
import dev.millrace.report.Report;
import dev.millrace.report.SampleMean;
import dev.millrace.report.Section;
import dev.millrace.report.Table;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.function.ToDoubleFunction;
import java.util.stream.IntStream;

public final class GradientReport {
    private static final int PICTURED = 4;
    private static final Axis VERSION = Axis.of("version that the step began with");

    private GradientReport() {}

    public static Report of(GradientRecord found, double seconds) {
        List<Chart> charts = new ArrayList<>();
        for (Figure<VariantGradient> figure : Figure.GRADIENT) {
            charts.add(Figure.chart(
                    figure.title(), VERSION, found.versions(), found.names(), c -> found.curve(c, figure.of())));
        }
        return Report.of(
                        "",
                        List.of(
                                String.format(
                                        Locale.ROOT,
                                        "gradients of %s, %s in %.1f s",
                                        count(found.steps().size(), "step"),
                                        count(found.names().size(), "variant"),
                                        seconds),
                                reference(found)))
                .concluding(conclusion(found))
                .with(Section.of("")
                        .with(Table.of(
                                "Means over steps",
                                columns(found),
                                IntStream.range(0, found.names().size()).boxed().toList())))
                .with(Section.of("Gradients").with(charts.subList(0, PICTURED)))
                .with(Section.of("Gradients: all other figures")
                        .with(charts.subList(PICTURED, charts.size()))
                        .forDetails());
    }

    /** Of the variant closest to the on-policy gradient. */
    private static Conclusion conclusion(GradientRecord found) {
        String asked = "Which correction's gradient is closest to the on-policy one?";
        int closest = IntStream.range(0, found.names().size())
                .filter(c -> !Double.isNaN(found.mean(c, VariantGradient::cosineToReference)))
                .boxed()
                .max(Comparator.comparingDouble(c -> found.mean(c, VariantGradient::cosineToReference)))
                .orElse(-1);
        if (closest < 0) {
            return Conclusion.of(asked, "unknown: no on-policy gradient was computed", Health.NONE)
                    .sure(reference(found));
        }
        SampleMean cosine = SampleMean.of(found.curve(closest, VariantGradient::cosineToReference));
        SampleMean ahead = IntStream.range(0, found.names().size())
                .filter(c -> c != closest)
                .mapToObj(c -> lead(found, closest, c))
                .min(Comparator.comparingDouble(SampleMean::mean))
                .orElse(new SampleMean(Double.NaN, Double.NaN, Double.NaN, 0));
        return Conclusion.of(
                        asked,
                        found.names().get(closest)
                                + (ahead.values() == 0
                                        ? ""
                                        : ahead.low() > 0
                                                ? ", ahead of all others"
                                                : ", though not clearly ahead of the next"),
                        Health.NONE)
                .resting("mean cosine", cosine.shown("%.3f"))
                .sure("95 % interval over " + cosine.values() + " steps as if they were independent; "
                        + reference(found));
    }

    private static SampleMean lead(GradientRecord found, int one, int other) {
        double[] ones = found.curve(one, VariantGradient::cosineToReference);
        double[] others = found.curve(other, VariantGradient::cosineToReference);
        return SampleMean.of(IntStream.range(0, ones.length)
                .mapToDouble(i -> ones[i] - others[i])
                .toArray());
    }

    static List<Chart> pictured(Report report) {
        return report.sections().get(1).charts();
    }

    private static List<Column<Integer>> columns(GradientRecord found) {
        return List.of(
                Column.text("variant", c -> found.names().get(c)),
                Column.significant("cosine on-policy", 3, c -> found.mean(c, VariantGradient::cosineToReference)),
                Column.significant("cosine to update", 3, c -> found.mean(c, VariantGradient::cosineToUpdate)),
                Column.significant(
                        "SGA progress",
                        3,
                        c -> found.mean(c, gradient -> gradient.sga().progress())),
                Column.significant("norm", 3, c -> found.mean(c, VariantGradient::norm)),
                Column.significant("noise / norm^2", 3, c -> {
                    double power = found.mean(c, gradient -> gradient.norm() * gradient.norm());
                    return power > 0 ? found.mean(c, gradient -> gradient.sga().noise()) / power : Double.NaN;
                }),
                Column.significant("ESS", 3, c -> found.mean(c, VariantGradient::essRatio)));
    }

    /** Composition of the on-policy gradient. */
    static String reference(GradientRecord found) {
        long known = found.steps().stream()
                .filter(step -> step.reference().isPresent())
                .count();
        if (known == 0) {
            return "without an on-policy gradient for comparison, since nothing was sampled";
        }
        GradientStep first = found.steps().stream()
                .filter(step -> step.reference().isPresent())
                .findFirst()
                .orElseThrow();
        long noisy = found.steps().stream()
                .filter(step -> step.reference().map(of -> !of.isSomething()).orElse(false))
                .count();
        return "the on-policy gradient is that of " + first.reference().get().sequences()
                + " sequences sampled afresh at each step's weights"
                + (noisy == 0
                        ? ""
                        : "; at " + noisy + " of " + known
                                + " steps it is noise or zero, and progress is omitted there");
    }

    public static final class GradientRecord {
        private final List<String> names;
        private final List<GradientStep> steps = new ArrayList<>();

        public GradientRecord(List<String> names) {
            this.names = List.copyOf(names);
        }

        public void add(GradientStep step) {
            steps.add(step);
        }

        List<String> names() {
            return names;
        }

        List<GradientStep> steps() {
            return steps;
        }

        double[] versions() {
            return steps.stream().mapToDouble(GradientStep::version).toArray();
        }

        /** NaN where there is none. */
        double[] curve(int variant, ToDoubleFunction<VariantGradient> of) {
            return Figure.curve(steps, step -> step.variants().get(variant), of);
        }

        double mean(int variant, ToDoubleFunction<VariantGradient> of) {
            return Figure.mean(curve(variant, of));
        }
    }
}
