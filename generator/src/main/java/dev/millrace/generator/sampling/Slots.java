package dev.millrace.generator.sampling;

import java.util.Arrays;
import java.util.Objects;
import java.util.OptionalLong;
import java.util.function.Predicate;

/** Which sequence is in which slot of an engine. */
final class Slots {
    private final RunningSequence[] running;
    private int active;
    private int emptyHint; // no empty slot is before it

    Slots(int count) {
        this.running = new RunningSequence[count];
    }

    /** The sequences by slot, null where a slot is free; for reading, always up to date. */
    RunningSequence[] running() {
        return running;
    }

    int active() {
        return active;
    }

    boolean hasRoom() {
        return active < running.length;
    }

    /** Puts a sequence into a free slot, and says which. */
    int put(RunningSequence sequence) {
        int slot = emptyHint;
        while (running[slot] != null) {
            slot++;
        }
        emptyHint = slot + 1;
        running[slot] = sequence;
        active++;
        return slot;
    }

    void free(int slot) {
        running[slot] = null;
        active--;
        emptyHint = Math.min(emptyHint, slot);
    }

    /** Oldest version of any token sampled for a sequence; empty if there is none. */
    OptionalLong oldestVersion() {
        return Arrays.stream(running)
                .filter(Objects::nonNull)
                .map(sequence -> sequence.spans().oldest())
                .flatMapToLong(OptionalLong::stream)
                .min();
    }

    /** Whether some sequence is such a one. */
    boolean hold(Predicate<RunningSequence> which) {
        return Arrays.stream(running).anyMatch(sequence -> sequence != null && which.test(sequence));
    }
}
