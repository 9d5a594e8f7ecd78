package dev.millrace.corrections.kl;

/**
 * An estimator as an implementation writes it down: a form, and whether its gradient is replaced by that of k2.
 *
 * <p>This says what is computed, not whether it is right; {@link KlPlan} does. Stateless.
 *
 * @param form the value, and the derivative unless straight-through
 * @param straightThrough whether the derivative is {@code d} instead, verl's {@code +}
 */
public record KlEstimator(KlForm form, boolean straightThrough) {

    /**
     * The estimator verl calls {@code name}: kl, k1, abs, mse, k2, low_var_kl, k3; or k3_uncapped; each also with a {@code +}.
     *
     * @throws IllegalArgumentException for any other name; {@code full} needs the whole vocabulary
     */
    public static KlEstimator named(String name) {
        boolean straightThrough = name.endsWith("+");
        String base = straightThrough ? name.substring(0, name.length() - 1) : name;
        KlForm form = switch (base) {
            case "kl", "k1" -> KlForm.K1;
            case "abs" -> KlForm.ABS;
            case "mse", "k2" -> KlForm.K2;
            case "low_var_kl", "k3" -> KlForm.K3_CAPPED;
            case "k3_uncapped" -> KlForm.K3;
            default ->
                throw new IllegalArgumentException("unknown KL estimator: " + name
                        + "; known: kl, k1, abs, mse, k2, low_var_kl, k3, k3_uncapped, each also with a + behind");
        };
        return new KlEstimator(form, straightThrough);
    }

    /** The estimate from one token with {@code d = log current − log reference}. */
    public double value(double d) {
        return form.value(d);
    }

    /** d value / d log current, or what replaces it. */
    public double derivative(double d) {
        return straightThrough ? KlForm.K2.derivative(d) : form.derivative(d);
    }
}
