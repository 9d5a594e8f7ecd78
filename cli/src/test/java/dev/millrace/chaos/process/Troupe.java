package dev.millrace.chaos.process;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.CopyOnWriteArrayList;
import org.jspecify.annotations.Nullable;

/**
 * Processes of a run and their supervisor: a process that exits is restarted after a moment and recorded.
 *
 * <p>A fault takes a member out of supervision while it acts on it, and gives it back. Thread-safe.
 */
public final class Troupe implements AutoCloseable {
    private static final long LOOK_EVERY_MS = 200;
    private static final long AGAIN_AFTER_MS = 1_000;
    private static final long STOP_LIMIT_S = 45;
    private static final long NEW_EPOCH_S = 60;

    /** A member that ended though nobody had asked it to. */
    public record Departure(String member, double ageSeconds, String words, long atMs) {}

    private final Launcher launcher;
    private final Map<String, RunMember> members = new LinkedHashMap<>();
    private final Map<String, RoleProcess> lives = new HashMap<>();
    private final Map<String, Integer> counts = new HashMap<>();
    private final Map<String, String> states = new HashMap<>();
    private final List<String> taken = new ArrayList<>();
    private final List<Departure> departures = new CopyOnWriteArrayList<>();
    private final Thread supervisor = new Thread(this::supervise, "supervisor");
    private volatile boolean isOver;
    private volatile long askedUntilNanos = System.nanoTime();

    public Troupe(Launcher launcher, List<RunMember> members) {
        this.launcher = launcher;
        members.forEach(member -> this.members.put(member.name(), member));
        supervisor.setDaemon(true);
    }

    /** Starts all members. */
    public void start() {
        members.keySet().forEach(name -> begin(name, List.of(), List.of()));
        supervisor.start();
    }

    /** All members. */
    public List<RunMember> members() {
        return List.copyOf(members.values());
    }

    /** The member of this name. */
    public RunMember member(String name) {
        return Objects.requireNonNull(members.get(name), name);
    }

    /** Its process now, alive or not. */
    public synchronized RoleProcess of(String name) {
        return Objects.requireNonNull(lives.get(name), name);
    }

    /** Processes that are alive, by member. */
    public synchronized Map<String, RoleProcess> alive() {
        Map<String, RoleProcess> alive = new LinkedHashMap<>(lives);
        alive.values().removeIf(life -> !life.isAlive());
        return alive;
    }

    /** Members that ended by themselves so far. */
    public List<Departure> departures() {
        return List.copyOf(departures);
    }

    /** A new epoch has begun: every role of the old one ends, as it should, and is started again. */
    public void newEpoch() {
        askedUntilNanos = System.nanoTime() + NEW_EPOCH_S * 1_000_000_000;
    }

    /** From now on the caller answers for it. */
    public synchronized RoleProcess take(String name) {
        taken.add(name);
        return of(name);
    }

    /** It is looked after again; one that is not alive is started. */
    public synchronized void giveBack(String name) {
        taken.remove(name);
        RoleProcess life = lives.get(name);
        if (!isOver && members.containsKey(name) && (life == null || !life.isAlive())) {
            begin(name, List.of(), List.of());
        }
    }

    /** Starts a life of a taken member, in the position of the one before, which continues as it can. */
    public RoleProcess again(String name) {
        return begin(name, List.of(), List.of());
    }

    /** As {@link #again}, with options of the JVM and configuration keys for this life alone. */
    public RoleProcess again(String name, List<String> options, List<String> settings) {
        return begin(name, options, settings);
    }

    /** A topology's state is lost: its next lives keep theirs in another folder. */
    public synchronized void loseState(String name) {
        states.put(name, name + "-state-" + counts.getOrDefault(name, 0));
    }

    private synchronized RoleProcess begin(String name, List<String> options, List<String> settings) {
        int life = counts.merge(name, 1, Integer::sum) - 1;
        RoleProcess started =
                launcher.start(member(name), life, states.getOrDefault(name, name + "-state"), options, settings);
        lives.put(name, started);
        return started;
    }

    private void supervise() {
        Map<String, Long> endedAt = new HashMap<>();
        while (!isOver) {
            try {
                Thread.sleep(LOOK_EVERY_MS);
            } catch (InterruptedException e) {
                return;
            }
            members.keySet().forEach(name -> look(name, endedAt));
        }
    }

    private synchronized void look(String name, Map<String, Long> endedAt) {
        RoleProcess life = of(name);
        if (isOver || taken.contains(name) || life.isAlive()) {
            endedAt.remove(name);
            return;
        }
        @Nullable Long since = endedAt.get(name);
        long now = System.nanoTime();
        if (since == null) {
            endedAt.put(name, now);
            if (askedUntilNanos - now > 0) {
                return;
            }
            departures.add(new Departure(life.name(), life.ageSeconds(), life.lastWords(), System.currentTimeMillis()));
        } else if (now - since > AGAIN_AFTER_MS * 1_000_000) {
            endedAt.remove(name);
            begin(name, List.of(), List.of());
        }
    }

    /** Asks a member to stop for good; false if it had to be killed. */
    public boolean retire(String name) {
        RoleProcess life = take(name);
        if (life.stop(STOP_LIMIT_S)) {
            return true;
        }
        life.kill();
        return false;
    }

    /** Ends the supervisor and kills every process. */
    @Override
    public void close() {
        isOver = true;
        supervisor.interrupt();
        alive().values().forEach(RoleProcess::kill);
    }
}
