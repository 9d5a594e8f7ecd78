package dev.millrace.topology.task;

import dev.millrace.log.Alarms;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.MeterRegistry;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
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
                    .description("1 while a stage waits without progress beyond its limit")
                    .register(registry);
            return value;
        });
    }

    /**
     * Detects waits without progress for too long. A wait that usually progresses more slowly, such as one for a learner
     * with steps of minutes, gets {@value #PACES} times the shortest of its last {@value #REMEMBERED} progress intervals.
     * So one long stall does not raise the limit. A wait that was interrupted begins anew. Confined to one thread; the
     * caller provides the time.
     */
    static final class StallDetector {
        private static final int PACES = 3;
        private static final int REMEMBERED = 3;

        private record Place(String stage, int partition) {}

        /** A wait as it was when its progress last changed. */
        private record Watched(long progress, long sinceMs) {}

        /** What has changed since the last look. */
        public record Change(List<StallAlarm> begun, List<StallAlarm> ended) {}

        private final long afterMs;
        private final Map<Place, Watched> watched = new HashMap<>();
        private final Map<Place, Deque<Long>> paces = new HashMap<>();
        private Map<Place, StallAlarm> stalled = new HashMap<>();

        /** @param afterMs how long a wait may last without progress */
        public StallDetector(long afterMs) {
            this.afterMs = afterMs;
        }

        /** Checks all current waits. */
        public Change check(Collection<Wait> waits, long nowMs) {
            Map<Place, StallAlarm> now = new HashMap<>();
            Map<Place, Watched> kept = new HashMap<>();
            for (Wait wait : waits) {
                Place place = new Place(wait.stage(), wait.partition());
                Watched before = watched.get(place);
                Watched current = before != null && before.progress() == wait.progress()
                        ? before
                        : new Watched(wait.progress(), nowMs);
                kept.put(place, current);
                if (before != null && current.progress() != before.progress()) {
                    remember(place, nowMs - before.sinceMs());
                }
                if (nowMs - current.sinceMs() >= mayLastMs(place)) {
                    now.put(place, new StallAlarm(wait, current.sinceMs()));
                }
            }
            watched.forEach((place, before) -> {
                if (!kept.containsKey(place)) {
                    remember(place, nowMs - before.sinceMs());
                }
            });
            watched.clear();
            watched.putAll(kept);
            List<StallAlarm> begun = new ArrayList<>();
            now.forEach((place, alarm) -> {
                if (!stalled.containsKey(place)) {
                    begun.add(alarm);
                }
            });
            List<StallAlarm> ended = new ArrayList<>();
            stalled.forEach((place, alarm) -> {
                if (!now.containsKey(place)) {
                    ended.add(alarm);
                }
            });
            stalled = now;
            return new Change(begun, ended);
        }

        private void remember(Place place, long tookMs) {
            Deque<Long> last = paces.computeIfAbsent(place, any -> new ArrayDeque<>());
            last.addLast(tookMs);
            if (last.size() > REMEMBERED) {
                last.removeFirst();
            }
        }

        private long mayLastMs(Place place) {
            Deque<Long> last = paces.getOrDefault(place, new ArrayDeque<>());
            return last.size() < REMEMBERED ? afterMs : Math.max(afterMs, PACES * Collections.min(last));
        }

        /** All that ring now. */
        public List<StallAlarm> stalled() {
            return List.copyOf(stalled.values());
        }
    }

    /**
     * A wait without progress for too long.
     *
     * @param sinceMs when the last progress was made, on the caller's clock
     */
    public record StallAlarm(Wait what, long sinceMs) {

        /** Names the stage, the partition, what it waits for, and since when. */
        public String sentence(long nowMs) {
            return what.stage() + ", partition " + what.partition() + ": " + what.what() + "; no progress for "
                    + (nowMs - sinceMs) / 1000 + " s";
        }
    }
}
