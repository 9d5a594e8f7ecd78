package dev.millrace.corrections.objective;

/**
 * Naive reference of an objective: its loss in double, without optimization.
 *
 * <p>{@code current} is differentiated, {@code detached} holds the same numbers where the formula stops the gradient;
 * a finite difference moves the first and leaves the second.
 */
interface NaiveLoss {
    double loss(RandomInput in, double[] current, double[] detached);

    /** A twin that is a sum over tokens with the aggregation's coefficients and the input's weights. */
    static NaiveLoss tokenwise(LossAggregation aggregation, Token token) {
        return (in, current, detached) -> {
            double[] coefficients = aggregation.coefficients(in.batch());
            double loss = 0;
            for (int s = 0; s < in.batch().sequenceCount(); s++) {
                for (int t = in.batch().start(s); t < in.batch().end(s); t++) {
                    if (in.batch().isTrained(t)) {
                        loss += coefficients[s]
                                * in.weights()[t]
                                * token.loss(current[t], detached[t], in.proximal()[t], in.advantages()[t]);
                    }
                }
            }
            return loss;
        };
    }

    interface Token {
        double loss(double current, double detached, double proximal, double advantage);
    }
}
