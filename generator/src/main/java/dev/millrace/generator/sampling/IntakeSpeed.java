package dev.millrace.generator.sampling;

/** How long known tokens take, by those that were taken in last. */
final class IntakeSpeed {
    private static final long REMEMBERED_TOKENS = 4096;

    private double tokens;
    private double nanos;
    private boolean isWarm;

    /** Tokens were taken in. */
    void took(long count, long duration) {
        if (!isWarm) {
            isWarm = true; // the first ones waited for their graph to be compiled
            return;
        }
        tokens += count;
        nanos += duration;
        if (tokens > REMEMBERED_TOKENS) {
            tokens /= 2;
            nanos /= 2;
        }
    }

    /** Milliseconds for so many, infinite as long as that is not known. */
    double millisFor(long count) {
        return count == 0 ? 0 : tokens == 0 ? Double.POSITIVE_INFINITY : count * nanos / tokens / 1e6;
    }
}
