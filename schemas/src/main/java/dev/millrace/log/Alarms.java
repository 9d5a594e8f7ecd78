package dev.millrace.log;

import java.time.Clock;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.Consumer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The alarms of a process, and the pulses of its roles. All of them share one object, which comes with their {@link
 * dev.millrace.log.LogConnection}.
 * Thread-safe.
 */
public final class Alarms {
    private static final Logger LOG = LoggerFactory.getLogger(Alarms.class);

    private record Condition(String name, String subject) {}

    private final Clock clock;
    private final Map<Condition, Alarm> standing =
            new TreeMap<>(Comparator.comparing(Condition::name).thenComparing(Condition::subject));
    private final Map<String, Long> raised = new TreeMap<>();
    private final List<Consumer<String>> listeners = new CopyOnWriteArrayList<>();
    private final Map<String, Pulse> pulses = new ConcurrentSkipListMap<>();

    /** By the system's clock. */
    public Alarms() {
        this(Clock.systemUTC());
    }

    /** @param clock says since when, for people */
    public Alarms(Clock clock) {
        this.clock = clock;
    }

    /**
     * The condition is there. The first time it is written to the log; while it lasts, only its sentence is renewed.
     *
     * @param name of the kind of condition, see {@link Alarm}
     * @param subject whom or what it is about
     * @param remedy the command, or the act, that ends it; empty where it ends by itself
     */
    public void raise(String name, String subject, String sentence, String remedy) {
        boolean isNewName;
        synchronized (this) {
            Condition condition = new Condition(name, subject);
            Alarm before = standing.get(condition);
            Alarm alarm =
                    new Alarm(name, subject, sentence, remedy, before == null ? clock.millis() : before.sinceMs());
            standing.put(condition, alarm);
            if (before != null) {
                return;
            }
            isNewName = raised.merge(name, 1L, Long::sum) == 1;
            LOG.warn("alarm {}, {}: {}", name, subject, alarm.text());
        }
        if (isNewName) {
            listeners.forEach(listener -> listener.accept(name));
        }
    }

    /** The condition is over, or was never there. */
    public synchronized void lower(String name, String subject) {
        Alarm alarm = standing.remove(new Condition(name, subject));
        if (alarm != null) {
            LOG.info(
                    "alarm {}, {}: over after {} s",
                    name,
                    subject,
                    Math.max(0, clock.millis() - alarm.sinceMs()) / 1000);
        }
    }

    /** Those that last, by name and subject. */
    public synchronized List<Alarm> active() {
        return new ArrayList<>(standing.values());
    }

    /** How many of a name last. */
    public synchronized long active(String name) {
        return standing.keySet().stream()
                .filter(condition -> condition.name().equals(name))
                .count();
    }

    /** How often a condition began, by name; those that are over count, too. */
    public synchronized Map<String, Long> raised() {
        return new TreeMap<>(raised);
    }

    /** A live view of the pulses, by role. */
    public Map<String, Pulse> pulses() {
        return Collections.unmodifiableMap(pulses);
    }

    /** Returns the pulse of a role that begins; it replaces an earlier one of that name. */
    public Pulse begin(String role) {
        Pulse pulse = new Pulse(System::nanoTime);
        pulses.put(role, pulse);
        return pulse;
    }

    /** Removes the pulse of a role that ended in order while its process continues. */
    public void end(String role) {
        pulses.remove(role);
    }

    /** Has somebody told of every name that is raised for the first time, on the thread that raises it. */
    public void onNewName(Consumer<String> listener) {
        List<String> known;
        synchronized (this) {
            listeners.add(listener);
            known = new ArrayList<>(raised.keySet());
        }
        known.forEach(listener);
    }
}
