package dev.millrace.topology.watch;

import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Decides which waits have lasted too long: those whose progress has not changed for a while. A wait that was interrupted
 * begins anew. Confined to one thread; time is the caller's.
 */
public final class StallDetector {
    private record Place(String stage, int partition) {}

    /** A wait as it was when its progress last changed. */
    private record Watched(long progress, long sinceMs) {}

    /** What has changed since the last look. */
    public record Change(List<StallAlarm> begun, List<StallAlarm> ended) {}

    private final long afterMs;
    private final Map<Place, Watched> watched = new HashMap<>();
    private Map<Place, StallAlarm> stalled = new HashMap<>();

    /** @param afterMs a wait may last so long without progress */
    public StallDetector(long afterMs) {
        this.afterMs = afterMs;
    }

    /** Looks at everything that is waited for now. */
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
            if (nowMs - current.sinceMs() >= afterMs) {
                now.put(place, new StallAlarm(wait, current.sinceMs()));
            }
        }
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

    /** All that ring now. */
    public List<StallAlarm> stalled() {
        return List.copyOf(stalled.values());
    }
}
