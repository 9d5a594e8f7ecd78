package dev.millrace.workloads;

import org.HdrHistogram.Histogram;

/** Of a histogram of nanoseconds, in milliseconds; all 0 where nothing was recorded. */
public record Latency(long count, double p50, double p90, double p99, double p999, double max) {
    static Latency of(Histogram nanos) {
        return new Latency(
                nanos.getTotalCount(),
                nanos.getValueAtPercentile(50) / 1e6,
                nanos.getValueAtPercentile(90) / 1e6,
                nanos.getValueAtPercentile(99) / 1e6,
                nanos.getValueAtPercentile(99.9) / 1e6,
                nanos.getMaxValue() / 1e6);
    }
}
