package dev.millrace.corrections.kl;

import dev.millrace.corrections.ratio.LogRatio;
import java.util.function.DoubleUnaryOperator;

/** The value of an estimator and its plain derivative, as functions of {@code d = log current − log reference}. */
public enum KlForm {
    /** {@code d}; verl {@code kl}, {@code k1}. */
    K1(d -> d, d -> 1.0),
    /** {@code |d|}; verl {@code abs}. */
    ABS(Math::abs, Math::signum),
    /** {@code d² / 2}; verl {@code mse}, {@code k2}. */
    K2(d -> 0.5 * d * d, d -> d),
    /** {@code e^−d − 1 + d}, {@code d} bounded to ±20 (derivative 0 beyond). */
    K3(
            d -> Math.expm1(-LogRatio.bounded(d)) + LogRatio.bounded(d),
            d -> Math.abs(d) <= LogRatio.BOUND ? -Math.expm1(-d) : 0.0),
    /**
     * {@link #K3} cut off at 10, with derivative 0 above: verl {@code low_var_kl}, {@code k3}. It lets go of a token
     * exactly when it has moved too far.
     */
    K3_CAPPED(d -> Math.min(KlForm.CAP, K3.value(d)), d -> K3.value(d) <= KlForm.CAP ? K3.derivative(d) : 0.0);

    private static final double CAP = 10.0;

    private final DoubleUnaryOperator value;
    private final DoubleUnaryOperator derivative;

    KlForm(DoubleUnaryOperator value, DoubleUnaryOperator derivative) {
        this.value = value;
        this.derivative = derivative;
    }

    public double value(double d) {
        return value.applyAsDouble(d);
    }

    /** d value / d log current. */
    public double derivative(double d) {
        return derivative.applyAsDouble(d);
    }
}
