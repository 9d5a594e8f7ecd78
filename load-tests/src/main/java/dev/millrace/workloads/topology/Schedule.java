package dev.millrace.workloads.topology;

import java.util.SplittableRandom;
import org.jspecify.annotations.Nullable;

/**
 * Publishing times in nanoseconds after the start, non-decreasing, fixed by rate and seed. Immutable and thread-safe.
 */
public final class Schedule {
    private final double nanosBetween;
    /** Null for even arrivals. */
    private final long @Nullable [] times;

    private final long count;

    private Schedule(double nanosBetween, long @Nullable [] times, long count) {
        this.nanosBetween = nanosBetween;
        this.times = times;
        this.count = count;
    }

    public enum Arrivals {
        EVEN,
        /** Exponential gaps, so bursts happen. */
        POISSON
    }

    /**
     * @param perSecond mean rate, greater than 0
     * @param count at least 1, at most 2^31 - 2 for random arrivals
     */
    public static Schedule of(Arrivals arrivals, double perSecond, long count, long seed) {
        if (!(perSecond > 0.0 && perSecond <= 1e9)) {
            throw new IllegalArgumentException(
                    "a rate must be greater than 0 and at most 1e9 per second: " + perSecond);
        }
        if (count < 1) {
            throw new IllegalArgumentException("a schedule needs at least one record: " + count);
        }
        double between = 1e9 / perSecond;
        if (arrivals == Arrivals.EVEN) {
            return new Schedule(between, null, count);
        }
        long[] times = new long[Math.toIntExact(count)];
        SplittableRandom random = new SplittableRandom(seed);
        double at = 0;
        for (int i = 0; i < times.length; i++) {
            times[i] = Math.round(at);
            at -= between * Math.log(1 - random.nextDouble());
        }
        return new Schedule(between, times, count);
    }

    public long count() {
        return count;
    }

    public long nanos(long i) {
        if (i < 0 || i >= count) {
            throw new IndexOutOfBoundsException("record " + i + " of a schedule of " + count);
        }
        return times == null ? Math.round(i * nanosBetween) : times[(int) i];
    }
}
