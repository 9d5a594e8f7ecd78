package dev.millrace.corrections.kl;

import dev.millrace.corrections.ratio.LogRatio;

/** The value of an estimator and its plain derivative, as functions of {@code d = log current − log reference}. */
public enum KlForm {
    /** {@code d}; verl {@code kl}, {@code k1}. */
    K1 {
        @Override
        public double value(double d) {
            return d;
        }

        @Override
        public double derivative(double d) {
            return 1.0;
        }
    },
    /** {@code |d|}; verl {@code abs}. */
    ABS {
        @Override
        public double value(double d) {
            return Math.abs(d);
        }

        @Override
        public double derivative(double d) {
            return Math.signum(d);
        }
    },
    /** {@code d² / 2}; verl {@code mse}, {@code k2}. */
    K2 {
        @Override
        public double value(double d) {
            return 0.5 * d * d;
        }

        @Override
        public double derivative(double d) {
            return d;
        }
    },
    /** {@code e^−d − 1 + d}, {@code d} bounded to ±20 (derivative 0 beyond). */
    K3 {
        @Override
        public double value(double d) {
            double bounded = LogRatio.bounded(d);
            return Math.expm1(-bounded) + bounded;
        }

        @Override
        public double derivative(double d) {
            return Math.abs(d) <= LogRatio.BOUND ? -Math.expm1(-d) : 0.0;
        }
    },
    /**
     * {@link #K3} cut off at 10, with derivative 0 above: verl {@code low_var_kl}, {@code k3}. It lets go of a token
     * exactly when it has moved too far.
     */
    K3_CAPPED {
        @Override
        public double value(double d) {
            return Math.min(CAP, K3.value(d));
        }

        @Override
        public double derivative(double d) {
            return K3.value(d) <= CAP ? K3.derivative(d) : 0.0;
        }
    };

    private static final double CAP = 10.0;

    public abstract double value(double d);

    /** d value / d log current. */
    public abstract double derivative(double d);
}
