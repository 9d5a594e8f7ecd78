package dev.millrace.replay.report;

import dev.millrace.replay.retrain.RetrainedStep;
import dev.millrace.replay.retrain.VariantStep;
import java.util.Arrays;
import java.util.List;
import java.util.function.Function;
import java.util.function.ToDoubleFunction;
import java.util.stream.DoubleStream;

/**
 * A re-train with one set of draws or several: curves are means over those that have a value.
 *
 * @param each one for each set of draws; the recorded ones first
 * @param live whether variants learnt from rollouts of their own
 */
public record RetrainSeeds(List<RetrainRecord> each, boolean live) {

    public RetrainSeeds {
        each = List.copyOf(each);
    }

    /** The one with the recorded draws, or with the recorded rollouts themselves. */
    public RetrainRecord first() {
        return each.get(0);
    }

    List<String> names() {
        return first().names();
    }

    List<RetrainedStep> steps() {
        return first().steps();
    }

    double[] evaluatedAt() {
        return first().evaluatedAt();
    }

    /** Rewards of a variant's policies in the task; NaN where none is left that was tried. */
    double[] rewards(int variant) {
        return means(record -> record.rewards(variant), evaluatedAt().length);
    }

    /** A number over steps. */
    double[] curve(int variant, ToDoubleFunction<VariantStep> of) {
        return means(record -> record.curve(variant, of), steps().size());
    }

    /** Mean of a number over the sets of draws that have it. */
    double mean(ToDoubleFunction<RetrainRecord> of) {
        return finiteMean(each.stream().mapToDouble(of));
    }

    private double[] means(Function<RetrainRecord, double[]> of, int length) {
        List<double[]> all =
                each.stream().map(of).map(values -> padded(values, length)).toList();
        double[] means = new double[length];
        for (int i = 0; i < length; i++) {
            int at = i;
            means[i] = finiteMean(all.stream().mapToDouble(values -> values[at]));
        }
        return means;
    }

    /** Pads the values of a variant that ended early with NaN. */
    static double[] padded(double[] values, int length) {
        double[] padded = Arrays.copyOf(values, length);
        Arrays.fill(padded, Math.min(values.length, length), length, Double.NaN);
        return padded;
    }

    private static double finiteMean(DoubleStream values) {
        return values.filter(Double::isFinite).average().orElse(Double.NaN);
    }
}
