package dev.millrace.replay.retrain;

import dev.millrace.policy.decoder.TensorSpec;
import dev.millrace.policy.weights.Gradients;
import dev.millrace.policy.weights.Parameters;
import java.nio.FloatBuffer;

/** Distances and angles in the space of all parameters; sums in double. */
final class Directions {
    private Directions() {}

    /** {@code to − from}. */
    static Gradients between(Parameters from, Parameters to) {
        Gradients difference = new Gradients(from.specs());
        for (TensorSpec spec : difference.specs()) {
            FloatBuffer into = difference.tensor(spec.name());
            FloatBuffer a = from.tensor(spec.name());
            FloatBuffer b = to.tensor(spec.name());
            for (int i = 0; i < into.limit(); i++) {
                into.put(i, b.get(i) - a.get(i));
            }
        }
        return difference;
    }

    static double dot(Gradients a, Gradients b) {
        double sum = 0;
        for (TensorSpec spec : a.specs()) {
            FloatBuffer x = a.tensor(spec.name());
            FloatBuffer y = b.tensor(spec.name());
            for (int i = 0; i < x.limit(); i++) {
                sum += (double) x.get(i) * y.get(i);
            }
        }
        return sum;
    }

    /** NaN where one of them has no length. */
    static double cosine(Gradients a, Gradients b) {
        double lengths = a.l2Norm() * b.l2Norm();
        return lengths > 0 ? dot(a, b) / lengths : Double.NaN;
    }
}
