package dev.millrace.chaos;

import dev.millrace.chaos.clock.ProcessClock;
import dev.millrace.chaos.fault.FaultKind;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * What is done to which run.
 *
 * @param duration how long faults are done; the start before and the checks after come on top
 * @param mostFaults upper bound of faults; at least 1
 * @param seed of the schedule and of everything that is drawn for a fault
 * @param brokers 1 to 9; of three, each has a copy of everything
 * @param kinds of faults
 * @param directory for everything that is written: brokers' data, states, logs; must not be there, or be empty
 * @param recoveryLimit longest time from the end of a fault until the run makes versions again
 * @param mainClass of the command line whose roles are started
 */
public record ChaosPlan(
        Duration duration,
        int mostFaults,
        long seed,
        int brokers,
        Set<FaultKind> kinds,
        Path directory,
        Duration recoveryLimit,
        String mainClass) {
    private static final int MOST_BROKERS = 9;
    static final int COPIES = 3;

    public ChaosPlan {
        if (duration.isNegative() || duration.isZero()) {
            throw new IllegalArgumentException("faults need some time: duration=" + duration);
        }
        if (mostFaults < 1) {
            throw new IllegalArgumentException("most faults must be at least 1: " + mostFaults);
        }
        if (brokers < 1 || brokers > MOST_BROKERS) {
            throw new IllegalArgumentException("brokers must be 1 to " + MOST_BROKERS + ": " + brokers);
        }
        if (kinds.isEmpty()) {
            throw new IllegalArgumentException(
                    "at least one kind of fault is needed, of " + FaultKind.allWords() + ": " + kinds);
        }
        if (brokers < COPIES && kinds.contains(FaultKind.UNCLEAN_ELECTION)) {
            throw new IllegalArgumentException(
                    "unclean-election needs copies to elect one of: brokers must be at least " + COPIES + ": "
                            + brokers);
        }
        for (FaultKind kind : kinds) {
            String why = leftOut().get(kind);
            if (why != null) {
                throw new IllegalArgumentException(kind.word() + " cannot be done here: " + why);
            }
        }
        kinds = Set.copyOf(EnumSet.copyOf(kinds));
    }

    /**
     * The configuration of the run: a small policy on a short task, one or two versions a second, and deadlines that pass within a
     * short run.
     */
    List<String> configuration() {
        List<String> settings = new ArrayList<>(List.of(
                "run.id=chaos",
                "run.topic_prefix=" + PREFIX,
                "task.digits=3",
                "model.hidden_size=32",
                "model.layers=1",
                "model.heads=2",
                "model.kv_heads=2",
                "model.intermediate_size=64",
                "admission.batch_sequences=" + BATCH,
                "admission.group_size=" + GROUP,
                "topology.batch.sequences=" + BATCH,
                "topology.groups.deadline_ms=20000",
                "topology.join.unscored_after_ms=40000",
                "topology.join.orphan_after_ms=20000",
                "topology.runtime.commit_interval_ms=700",
                "generator.commit_interval_ms=50",
                "generator.slots=64",
                "weights.keep_versions=0",
                "weights.kept_manifests=128",
                "admission.quarantine.difference_tokens=512",
                "goal.mean_reward=0",
                "goal.max_seconds=0"));
        if (losesRecords()) {
            settings.add("admission.release_again_after_ms=" + RELEASE_AGAIN_MS);
        }
        return settings;
    }

    /** Whether a fault may take away what was acknowledged. */
    public boolean losesRecords() {
        return kinds.stream().anyMatch(FaultKind::losesRecords);
    }

    /** The kinds that are done where nobody chooses, as far as this machine can do them: none of them takes records away. */
    public static Set<FaultKind> everyKind() {
        Set<FaultKind> kinds = EnumSet.allOf(FaultKind.class);
        kinds.removeIf(FaultKind::losesRecords);
        kinds.remove(FaultKind.COMPACTION); // it leaves a broker with many small segments, and so with more handles
        kinds.removeAll(leftOut().keySet());
        return kinds;
    }

    /** The kinds that this machine cannot do, and why. */
    public static Map<FaultKind, String> leftOut() {
        Map<FaultKind, String> leftOut = new EnumMap<>(FaultKind.class);
        if (!FileSizeLimit.isAvailable()) {
            leftOut.put(FaultKind.DISK_FULL, "there is no prlimit on this machine");
        }
        if (!ReadOnlyFolder.isAvailable()) {
            leftOut.put(
                    FaultKind.DISK_READ_ONLY,
                    "chattr +i, which takes root and a file system such as ext4, does not work in the folder for temporary files");
        }
        if (!ProcessClock.isAvailable()) {
            leftOut.put(FaultKind.CLOCK, "this Java has no jdk.attach module; a JDK has it");
        }
        return leftOut;
    }

    /** The kinds that take records away; those that need several copies of these only where there are as many brokers. */
    public static Set<FaultKind> losses(int brokers) {
        Set<FaultKind> kinds = EnumSet.allOf(FaultKind.class);
        kinds.removeIf(kind -> !kind.losesRecords());
        if (brokers < COPIES) {
            kinds.remove(FaultKind.UNCLEAN_ELECTION);
        }
        return kinds;
    }

    static final int RELEASE_AGAIN_MS = 20_000;
    static final String PREFIX = "chaos.";
    static final int GROUP = 8;
    static final int BATCH = 64;
}
