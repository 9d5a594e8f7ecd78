package dev.millrace.corrections.m2po;

/**
 * A sum of doubles carried in two doubles (about 106 bits), compared without rounding in between.
 *
 * <p>The cut of the M2PO mask is where a mean crosses a threshold. In plain doubles the crossing depends on the order
 * of the additions when the two are close; in twice the precision the order no longer matters.
 */
final class ExactSum {
    private double high;
    private double low;

    void add(double value) {
        double sum = high + value;
        double part = sum - high;
        low += (high - (sum - part)) + (value - part);
        high = sum;
    }

    void add(double valueHigh, double valueLow) {
        add(valueHigh);
        low += valueLow;
    }

    double value() {
        return high + low;
    }

    /** Returns whether this sum, with {@code moreHigh + moreLow} added, is below {@code factor * count}. */
    boolean isBelow(double moreHigh, double moreLow, double factor, long count) {
        double sum = high + moreHigh;
        double part = sum - high;
        double rest = low + moreLow + ((high - (sum - part)) + (moreHigh - part));
        double product = factor * count;
        double productRest = Math.fma(factor, (double) count, -product);
        return (sum - product) + (rest - productRest) < 0.0;
    }
}
