package dev.millrace.topology.task;

import dev.millrace.log.Alarms;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.MeterRegistry;
import java.util.Collection;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Says aloud what the detector finds: an alarm {@value #NAME}, and the gauge {@code millrace.alarm} by stage and partition, 1
 * as long as it lasts. Confined to one thread.
 */
public final class StallAlarms {
    private static final String NAME = "stall";

    private final StallDetector detector;
    private final MeterRegistry registry;
    private final Alarms alarms;
    private final Map<String, AtomicInteger> gauges = new HashMap<>();

    /** @param afterMs a wait may last so long without progress */
    public StallAlarms(long afterMs, Alarms alarms, MeterRegistry registry) {
        this.detector = new StallDetector(afterMs);
        this.alarms = alarms;
        this.registry = registry;
    }

    /** Looks at everything that is waited for, and says what has changed. */
    public void check(Collection<Wait> waits, long nowMs) {
        StallDetector.Change change = detector.check(waits, nowMs);
        for (StallAlarm alarm : change.begun()) {
            gauge(alarm.what()).set(1);
        }
        for (StallAlarm alarm : change.ended()) {
            alarms.lower(NAME, subject(alarm.what()));
            gauge(alarm.what()).set(0);
        }
        for (StallAlarm alarm : detector.stalled()) {
            alarms.raise(NAME, subject(alarm.what()), alarm.sentence(nowMs), "");
        }
    }

    private static String subject(Wait wait) {
        return wait.stage() + "/" + wait.partition();
    }

    private AtomicInteger gauge(Wait wait) {
        return gauges.computeIfAbsent(subject(wait), place -> {
            AtomicInteger value = new AtomicInteger();
            Gauge.builder("millrace.alarm", value, AtomicInteger::get)
                    .tag("stage", wait.stage())
                    .tag("partition", Integer.toString(wait.partition()))
                    .description("1 while a stage waits without progress for longer than it may")
                    .register(registry);
            return value;
        });
    }
}
