package dev.millrace.replay.report;

import dev.millrace.replay.retrain.GradientStep;
import dev.millrace.replay.retrain.VariantGradient;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.ToDoubleFunction;

/** The gradients that were found, kept for text and page. */
public final class GradientRecord {
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

    /** A number over steps; NaN where there is none. */
    double[] curve(int variant, ToDoubleFunction<VariantGradient> of) {
        return steps.stream()
                .mapToDouble(step ->
                        step.variants().get(variant).map(of::applyAsDouble).orElse(Double.NaN))
                .toArray();
    }

    /** Its mean over the steps that have it; NaN if none has. */
    double mean(int variant, ToDoubleFunction<VariantGradient> of) {
        return Arrays.stream(curve(variant, of))
                .filter(Double::isFinite)
                .average()
                .orElse(Double.NaN);
    }
}
