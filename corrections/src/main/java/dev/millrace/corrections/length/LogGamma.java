package dev.millrace.corrections.length;

/** log Γ and its first two derivatives for positive arguments, by recurrence up to 12 and Stirling's series beyond. */
final class LogGamma {
    private static final double SERIES_FROM = 12.0;

    private LogGamma() {}

    static double value(double x) {
        double shift = 0.0;
        double y = x;
        while (y < SERIES_FROM) {
            shift += Math.log(y);
            y++;
        }
        double i = 1 / y;
        double i2 = i * i;
        double series = i * (1.0 / 12 - i2 * (1.0 / 360 - i2 * (1.0 / 1260 - i2 * (1.0 / 1680 - i2 / 1188))));
        return (y - 0.5) * Math.log(y) - y + 0.5 * Math.log(2 * Math.PI) + series - shift;
    }

    static double derivative(double x) {
        double shift = 0.0;
        double y = x;
        while (y < SERIES_FROM) {
            shift += 1 / y;
            y++;
        }
        double i2 = 1 / (y * y);
        double series = i2 * (1.0 / 12 - i2 * (1.0 / 120 - i2 * (1.0 / 252 - i2 * (1.0 / 240 - i2 / 132))));
        return Math.log(y) - 0.5 / y - series - shift;
    }

    static double secondDerivative(double x) {
        double shift = 0.0;
        double y = x;
        while (y < SERIES_FROM) {
            shift += 1 / (y * y);
            y++;
        }
        double i = 1 / y;
        double i2 = i * i;
        double series = i * i2 * (1.0 / 6 - i2 * (1.0 / 30 - i2 * (1.0 / 42 - i2 * (1.0 / 30 - i2 * 5 / 66))));
        return i + 0.5 * i2 + series + shift;
    }

    /** {@code log B(a + x, b + y) − log B(a, b)}. */
    static double betaRatio(double a, double b, double x, double y) {
        return value(a + x) - value(a) + value(b + y) - value(b) - (value(a + b + x + y) - value(a + b));
    }
}
