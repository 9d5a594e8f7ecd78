package dev.millrace.generator.staleness;

import dev.millrace.schemas.AdmissionCounts;
import io.micrometer.core.instrument.Counter;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.MeterRegistry;
import java.util.Map;
import java.util.function.ToDoubleFunction;

/**
 * What admission shows of itself: {@link #show} by its thread, read by whoever scrapes.
 *
 * <p>Gauges {@code millrace.admission.released.samples}, {@code .lost.samples}, {@code .settled.samples} (consumed by the learner, or
 * lost), {@code .released.again.samples}, {@code .under.way.samples} and {@code .unknown.records}, all of this epoch, and {@code
 * .quarantined.generators}; counters {@code millrace.admission.resampled} (prompts released once more) and {@code .lost.on.log}.
 */
final class AdmissionMeters {
    private final Counter resampled;
    private final Counter lostOnLog;
    private volatile AdmissionCounts counts = new ReleasedSamples().counts(Map.of());
    private volatile long underWay;
    private volatile int inQuarantine;

    AdmissionMeters(MeterRegistry meters) {
        gauge(meters, "released.samples", "samples asked for, lost ones included", AdmissionCounts::getReleased);
        gauge(meters, "lost.samples", "samples that left without reaching a batch", AdmissionCounts::getLost);
        gauge(
                meters,
                "settled.samples",
                "samples that the learner consumed or that were lost",
                shown -> shown.getConsumed() + shown.getLost());
        gauge(
                meters,
                "unknown.records",
                "records about a sample that was never released, or that was settled before",
                AdmissionCounts::getUnknown);
        Gauge.builder("millrace.admission.under.way.samples", this, shown -> shown.underWay)
                .description("samples that were released and not settled")
                .register(meters);
        gauge(
                meters,
                "released.again.samples",
                "samples that were released again under the same name",
                AdmissionCounts::getReleasedAgain);
        Gauge.builder("millrace.admission.quarantined.generators", this, shown -> shown.inQuarantine)
                .description("generators whose records are refused until somebody lifts that")
                .register(meters);
        this.resampled = Counter.builder("millrace.admission.resampled")
                .description("prompts released once more because their samples were rewarded alike")
                .register(meters);
        this.lostOnLog = Counter.builder("millrace.admission.lost.on.log")
                .description("samples released again because the log has nothing of them any more")
                .register(meters);
    }

    private void gauge(MeterRegistry meters, String name, String description, ToDoubleFunction<AdmissionCounts> value) {
        Gauge.builder("millrace.admission." + name, this, shown -> value.applyAsDouble(shown.counts))
                .description(description)
                .register(meters);
    }

    /** As it is now. */
    void show(ReleasedSamples samples, int generatorsInQuarantine) {
        counts = samples.counts(Map.of());
        underWay = samples.underWay();
        inQuarantine = generatorsInQuarantine;
    }

    /** A prompt is to be released once more. */
    void resampled() {
        resampled.increment();
    }

    Counter lostOnLog() {
        return lostOnLog;
    }
}
