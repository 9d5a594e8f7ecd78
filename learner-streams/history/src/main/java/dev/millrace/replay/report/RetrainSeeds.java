package dev.millrace.replay.report;

import dev.millrace.replay.retrain.RetrainedStep;
import dev.millrace.replay.retrain.VariantStep;
import java.util.Arrays;
import java.util.List;
import java.util.function.Function;
import java.util.function.ToDoubleFunction;
import java.util.stream.DoubleStream;

/**
 * A re-train with one or several seeds; curves are means over those with a value.
 *
 * @param each the recorded draws first
 * @param live variants learn from their own rollouts
 */
public record RetrainSeeds(List<RetrainRecord> each, boolean live) {

    public RetrainSeeds {
        each = List.copyOf(each);
    }

    /** With the recorded draws or rollouts. */
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

    /** NaN where no seed has an evaluation. */
    double[] rewards(int variant) {
        return means(record -> record.rewards(variant), evaluatedAt().length);
    }

    double[] curve(int variant, ToDoubleFunction<VariantStep> of) {
        return means(record -> record.curve(variant, of), steps().size());
    }

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

    /** Pads with NaN. */
    static double[] padded(double[] values, int length) {
        double[] padded = Arrays.copyOf(values, length);
        Arrays.fill(padded, Math.min(values.length, length), length, Double.NaN);
        return padded;
    }

    private static double finiteMean(DoubleStream values) {
        return values.filter(Double::isFinite).average().orElse(Double.NaN);
    }
}
