package dev.millrace.topology.task;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * What the tasks of this instance wait for, as each last said. Tasks write, the watchdog reads; thread-safe. A task that
 * is stuck no longer says anything new, which is how it shows.
 */
public final class WaitBoard {
    private final Map<String, List<Wait>> byTask = new ConcurrentHashMap<>();

    /** A task waits for this now. */
    public void post(String task, List<Wait> waits) {
        byTask.put(task, List.copyOf(waits));
    }

    /** A task has gone to another instance, or has ended. */
    public void remove(String task) {
        byTask.remove(task);
    }

    public List<Wait> all() {
        List<Wait> all = new ArrayList<>();
        byTask.values().forEach(all::addAll);
        return all;
    }
}
