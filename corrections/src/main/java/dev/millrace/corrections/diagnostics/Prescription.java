package dev.millrace.corrections.diagnostics;

import java.util.List;

/**
 * The fix of a branch of the decision tree, as data.
 *
 * @param patches of {@code algorithm}, each alone, the smallest change first; empty where no patch of it can answer the cause
 * @param elsewhere other fixes, or required ones
 */
public record Prescription(List<AlgorithmPatch> patches, List<Elsewhere> elsewhere) {
    /** For a run without problems. */
    public static final Prescription NOTHING = new Prescription(List.of(), List.of());

    public Prescription {
        patches = List.copyOf(patches);
        elsewhere = List.copyOf(elsewhere);
    }

    /**
     * A change outside of {@code algorithm}, or one of it that no replay can try.
     *
     * @param where a key of the configuration, or a part of the system
     */
    public record Elsewhere(String where, String change) {
        @Override
        public String toString() {
            return where + ": " + change;
        }
    }
}
