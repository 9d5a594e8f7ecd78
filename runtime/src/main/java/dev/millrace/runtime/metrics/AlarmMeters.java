package dev.millrace.runtime.metrics;

import dev.millrace.log.Alarms;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.MeterRegistry;

/** The gauge {@code millrace.alarms} by name: how many alarms of it last. A name that was never raised has none. */
public final class AlarmMeters {
    private AlarmMeters() {}

    /** Keeps the gauges of a process's alarms from now on. */
    public static void bind(Alarms alarms, MeterRegistry meters) {
        alarms.onNewName(name -> Gauge.builder("millrace.alarms", alarms, all -> all.standing(name))
                .tag("name", name)
                .description("alarms that last")
                .register(meters));
    }
}
