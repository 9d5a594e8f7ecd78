package dev.millrace.corrections.objective;

import dev.millrace.corrections.ratio.LogRatio;

/** A log ratio bounded to ±{@value LogRatio#BOUND}: constant beyond, so with derivative 0 there. */
final class BoundedLogRatio {
    private BoundedLogRatio() {}

    static double of(double current, double anchor) {
        return LogRatio.bounded(current - anchor);
    }

    /** d bounded / d current: 1 within the bounds, 0 beyond. */
    static double slope(double current, double anchor) {
        return Math.abs(current - anchor) <= LogRatio.BOUND ? 1.0 : 0.0;
    }
}
