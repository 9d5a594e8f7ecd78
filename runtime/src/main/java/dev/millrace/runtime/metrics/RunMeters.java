package dev.millrace.runtime.metrics;

import dev.millrace.runtime.config.MillraceConfig;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.MeterRegistry;

/**
 * Gauges that identify the run of a process and its goal: {@code millrace.run.info}, which is 1 and has the run as a
 * tag, for dashboards to choose processes by; and {@code millrace.run.goal.reward}, of a run that has a goal.
 */
public final class RunMeters {
    private RunMeters() {}

    /** Registers them, for as long as the registry lives. */
    public static void bind(MillraceConfig config, MeterRegistry registry) {
        Gauge.builder("millrace.run.info", () -> 1)
                .tag("run", config.run().id())
                .description("1, of every process of a run")
                .register(registry);
        double goal = config.goal().meanReward();
        if (goal > 0) {
            Gauge.builder("millrace.run.goal.reward", () -> goal)
                    .description("mean reward at which the run ends")
                    .register(registry);
        }
    }
}
