package dev.millrace.chaos;

import dev.millrace.chaos.fault.FaultKind;
import java.nio.file.Path;
import java.time.Duration;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;

/**
 * What is done to which run.
 *
 * @param duration how long faults are done; the start before and the checks after come on top
 * @param mostFaults after so many it is enough; at least 1
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
        kinds = Set.copyOf(EnumSet.copyOf(kinds));
    }

    /**
     * The configuration of the run: a small policy on a short task, one or two versions a second, and deadlines that pass within a
     * short run.
     */
    static List<String> configuration() {
        return List.of(
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
                "goal.mean_reward=0",
                "goal.max_seconds=0");
    }

    /** The kinds that are done where nobody chooses, as far as this machine can do them. */
    public static Set<FaultKind> everyKind() {
        Set<FaultKind> kinds = EnumSet.allOf(FaultKind.class);
        if (!FileSizeLimit.isAvailable()) {
            kinds.remove(FaultKind.DISK_FULL);
        }
        return kinds;
    }

    static final String PREFIX = "chaos.";
    static final int GROUP = 8;
    static final int BATCH = 64;
}
