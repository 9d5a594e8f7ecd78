package dev.millrace.corrections.diagnostics;

/**
 * A mean with its 95 % interval {@code mean ± t · s / √m}. Here m is the number of values, s their standard deviation,
 * and t the 97.5 % point of Student's distribution with m − 1 degrees of freedom.
 *
 * @param mean of the values; NaN without one
 * @param low lower end; NaN where the values say nothing about their spread: there are fewer than two, or all are the
 *     same
 * @param high upper end, likewise
 */
public record MeanInterval(double mean, double low, double high) {
    private static final double Z = 1.959963984540054;

    /** Of values that are drawn one by one. */
    public static MeanInterval of(double[] values) {
        double sum = 0;
        for (double value : values) {
            sum += value;
        }
        double mean = sum / values.length;
        double squares = 0;
        for (double value : values) {
            squares += (value - mean) * (value - mean);
        }
        if (values.length < 2 || isSame(values)) {
            return new MeanInterval(mean, Double.NaN, Double.NaN);
        }
        double half = student(values.length - 1) * Math.sqrt(squares / (values.length - 1) / values.length);
        return new MeanInterval(mean, mean - half, mean + half);
    }

    private static boolean isSame(double[] values) {
        for (double value : values) {
            if (value != values[0]) {
                return false;
            }
        }
        return true;
    }

    public boolean isKnown() {
        return !Double.isNaN(low);
    }

    /** The same of something that cannot leave [0, 1]. */
    MeanInterval ofShare() {
        return new MeanInterval(mean, Math.max(0, low), Math.min(1, high));
    }

    /**
     * The 97.5 % point of Student's distribution: exact for 1 and 2 degrees of freedom. From 3 on it is Fisher's
     * expansion around the normal distribution's point, right to 0.2 % at 3 and to 0.01 % from 6 on.
     */
    static double student(int degrees) {
        if (degrees == 1) {
            return Math.tan(Math.PI * 0.475);
        }
        if (degrees == 2) {
            return 0.95 * Math.sqrt(2 / 0.0975);
        }
        double z2 = Z * Z;
        double first = Z * (z2 + 1) / 4;
        double second = Z * ((5 * z2 + 16) * z2 + 3) / 96;
        double third = Z * (((3 * z2 + 19) * z2 + 17) * z2 - 15) / 384;
        double fourth = Z * ((((79 * z2 + 776) * z2 + 1482) * z2 - 1920) * z2 - 945) / 92_160;
        double inverse = 1.0 / degrees;
        return Z + inverse * (first + inverse * (second + inverse * (third + inverse * fourth)));
    }
}
