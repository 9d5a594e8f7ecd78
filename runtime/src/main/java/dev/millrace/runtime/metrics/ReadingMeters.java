package dev.millrace.runtime.metrics;

import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Tags;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Gauges of the newest step or evaluation: one per number of its record. A number that it lacks has no gauge.
 * Thread-safe.
 */
public final class ReadingMeters implements AutoCloseable {
    private final MeterRegistry registry;
    private final Map<Series, Shown> shown = new HashMap<>();

    private record Series(String meter, Tags tags) {}

    /** A gauge and what it shows. */
    private static final class Shown {
        private final Gauge gauge;
        private volatile double value;

        private Shown(Reading reading, MeterRegistry registry) {
            this.value = reading.value();
            this.gauge = Gauge.builder(reading.meter(), this, of -> of.value)
                    .tags(reading.tags())
                    .baseUnit(reading.unit().isEmpty() ? null : reading.unit())
                    .description(reading.meaning())
                    .strongReference(true)
                    .register(registry);
        }
    }

    public ReadingMeters(MeterRegistry registry) {
        this.registry = registry;
    }

    public synchronized void show(List<Reading> readings) {
        Map<Series, Reading> now = new HashMap<>();
        readings.forEach(reading -> now.put(new Series(reading.meter(), reading.tags()), reading));
        shown.entrySet().removeIf(before -> {
            boolean isOver = !now.containsKey(before.getKey());
            if (isOver) {
                registry.remove(before.getValue().gauge);
            }
            return isOver;
        });
        now.forEach((series, reading) ->
                shown.computeIfAbsent(series, first -> new Shown(reading, registry)).value = reading.value());
    }

    @Override
    public synchronized void close() {
        shown.values().forEach(before -> registry.remove(before.gauge));
        shown.clear();
    }
}
