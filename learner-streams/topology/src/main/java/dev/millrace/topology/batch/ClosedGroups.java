package dev.millrace.topology.batch;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Groups that were closed short, so that members who come later are known to be late. Confined to one task. */
final class ClosedGroups {
    private final AssemblyStore store;
    private final long retentionMs;
    /** In the order in which they were closed. */
    private final Map<String, Long> closedMs = new LinkedHashMap<>();

    ClosedGroups(AssemblyStore store, long retentionMs) {
        this.store = store;
        this.retentionMs = retentionMs;
        Map<String, Long> found = new HashMap<>();
        store.forEachClosed(found::put);
        found.entrySet().stream()
                .sorted(Map.Entry.<String, Long>comparingByValue().thenComparing(Map.Entry.comparingByKey()))
                .forEach(entry -> closedMs.put(entry.getKey(), entry.getValue()));
    }

    boolean contains(String groupId) {
        return closedMs.containsKey(groupId);
    }

    void add(String groupId, long nowMs) {
        closedMs.put(groupId, nowMs);
        store.putClosed(groupId, nowMs);
    }

    /** When the newest was closed; 0 if there is none. */
    long newestMs() {
        return closedMs.values().stream().mapToLong(Long::longValue).max().orElse(0);
    }

    void forgetOlder(long nowMs) {
        List<String> old = new ArrayList<>();
        for (Map.Entry<String, Long> entry : closedMs.entrySet()) {
            if (nowMs - entry.getValue() < retentionMs) {
                break;
            }
            old.add(entry.getKey());
        }
        for (String groupId : old) {
            closedMs.remove(groupId);
            store.deleteClosed(groupId);
        }
    }
}
