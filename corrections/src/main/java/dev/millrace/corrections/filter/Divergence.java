package dev.millrace.corrections.filter;

/** What is measured at a token, from {@code l = log rho = log proximal - log behavior}. */
public enum Divergence {
    /** {@code rho = e^l}; aggregated as log, so that a mean is geometric and does not grow with length. */
    RATIO {
        @Override
        double at(double logRatio) {
            return logRatio;
        }

        @Override
        double scaleOf(double bound) {
            return Math.log(bound);
        }
    },
    /** {@code k1 = l}; may be negative. */
    K1 {
        @Override
        double at(double logRatio) {
            return logRatio;
        }
    },
    /** {@code k2 = l^2 / 2}. */
    K2 {
        @Override
        double at(double logRatio) {
            return 0.5 * logRatio * logRatio;
        }
    },
    /** {@code k3 = e^-l - 1 + l}. */
    K3 {
        @Override
        double at(double logRatio) {
            return Math.expm1(-logRatio) + logRatio;
        }
    };

    /** The measure on the scale on which it is aggregated and compared. */
    abstract double at(double logRatio);

    /** A bound on that scale. */
    double scaleOf(double bound) {
        return bound;
    }
}
