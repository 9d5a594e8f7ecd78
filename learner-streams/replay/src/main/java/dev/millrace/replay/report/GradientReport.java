package dev.millrace.replay.report;

import static dev.millrace.replay.report.RetrainReport.count;

import dev.millrace.replay.retrain.GradientStep;
import dev.millrace.replay.retrain.VariantGradient;
import dev.millrace.report.Axis;
import dev.millrace.report.Chart;
import dev.millrace.report.Column;
import dev.millrace.report.Report;
import dev.millrace.report.Section;
import dev.millrace.report.Table;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.stream.IntStream;

/** Counterfactual gradients as a report: which variant pointed closest to the on-policy gradient. */
public final class GradientReport {
    private static final int PICTURED = 4;
    private static final Axis VERSION = Axis.of("version that the step began with");

    private GradientReport() {}

    /** What gradients come to, their table and their curves. */
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
                .with(Section.of("")
                        .with(Table.of(
                                "Means over steps",
                                columns(found),
                                IntStream.range(0, found.names().size()).boxed().toList())))
                .with(Section.of("Gradients").with(charts.subList(0, PICTURED)))
                .with(Section.of("Gradients: everything else")
                        .with(charts.subList(PICTURED, charts.size()))
                        .forDetails());
    }

    /** The curves of the picture. */
    static List<Chart> pictured(Report report) {
        return report.sections().get(1).charts();
    }

    private static List<Column<Integer>> columns(GradientRecord found) {
        return List.of(
                Column.text("variant", c -> found.names().get(c)),
                Column.significant("cosine on-policy", 3, c -> found.mean(c, VariantGradient::cosineToReference)),
                Column.significant("cosine to update", 3, c -> found.mean(c, VariantGradient::cosineToUpdate)),
                Column.significant("SGA progress", 3, c -> found.mean(c, VariantGradient::sgaProgress)),
                Column.significant("norm", 3, c -> found.mean(c, VariantGradient::norm)),
                Column.significant("noise / norm^2", 3, c -> {
                    double power = found.mean(c, gradient -> gradient.norm() * gradient.norm());
                    return power > 0 ? found.mean(c, VariantGradient::noise) / power : Double.NaN;
                }),
                Column.significant("ESS", 3, c -> found.mean(c, VariantGradient::essRatio)));
    }

    /** What the on-policy gradient is made of. */
    static String reference(GradientRecord found) {
        long known = found.steps().stream()
                .filter(step -> step.reference().isPresent())
                .count();
        if (known == 0) {
            return "without an on-policy gradient to hold them against, since nothing was sampled";
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
                                + " steps it is nothing but noise, or nothing, and progress is left out there");
    }
}
