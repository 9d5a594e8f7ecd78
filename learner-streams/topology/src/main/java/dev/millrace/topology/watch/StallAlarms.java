package dev.millrace.topology.watch;

import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.MeterRegistry;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Says aloud what the detector finds: a line in the log when an alarm begins and when it ends, and the gauge
 * {@code millrace.alarm} by stage and partition, 1 as long as it lasts. Confined to one thread, but for {@link #sentences}.
 */
public final class StallAlarms {
    private static final Logger LOG = LoggerFactory.getLogger(StallAlarms.class);

    private final StallDetector detector;
    private final MeterRegistry registry;
    private final Map<String, AtomicInteger> gauges = new HashMap<>();
    private volatile List<String> sentences = List.of();

    /** @param afterMs a wait may last so long without progress */
    public StallAlarms(long afterMs, MeterRegistry registry) {
        this.detector = new StallDetector(afterMs);
        this.registry = registry;
    }

    /** Looks at everything that is waited for, and says what has changed. */
    public void check(Collection<Wait> waits, long nowMs) {
        StallDetector.Change change = detector.check(waits, nowMs);
        for (StallAlarm alarm : change.begun()) {
            LOG.warn("alarm: {}", alarm.sentence(nowMs));
            gauge(alarm.what()).set(1);
        }
        for (StallAlarm alarm : change.ended()) {
            LOG.info(
                    "alarm over after {} s: {}, partition {}",
                    (nowMs - alarm.sinceMs()) / 1000,
                    alarm.what().stage(),
                    alarm.what().partition());
            gauge(alarm.what()).set(0);
        }
        sentences = detector.stalled().stream()
                .map(alarm -> alarm.sentence(nowMs))
                .sorted()
                .toList();
    }

    /** Every alarm that lasts, as a sentence. Thread-safe. */
    public List<String> sentences() {
        return sentences;
    }

    private AtomicInteger gauge(Wait wait) {
        return gauges.computeIfAbsent(wait.stage() + "/" + wait.partition(), place -> {
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
