package dev.millrace.runtime.metrics;

import dev.millrace.log.Alarms;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.MeterRegistry;

/**
 * The gauge {@code millrace.alarms} by name: the number of active alarms. A name that was never raised has no gauge.
 */
public final class AlarmMeters {
    private AlarmMeters() {}

    /** Registers the gauges and keeps them up to date. */
    public static void bind(Alarms alarms, MeterRegistry meters) {
        alarms.onNewName(name -> Gauge.builder("millrace.alarms", alarms, all -> all.active(name))
                .tag("name", name)
                .description("alarms that last")
                .register(meters));
    }
}
