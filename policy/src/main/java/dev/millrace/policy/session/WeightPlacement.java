package dev.millrace.policy.session;

/** How a generating engine receives weights. Affects the last bits of its results, like the number of threads. */
public enum WeightPlacement {
    /** {@link #FED}. */
    AUTO,
    /**
     * With every call, in place: new weights cost nothing, and one copy serves all roles of a process. On a CUDA device they are
     * copied in once for all roles of a process, while sampling continues.
     */
    FED,
    /**
     * Compiled into the graphs when a version is loaded, while sampling continues: the runtime packs them for its
     * products. Takes twice the weights' float32 bytes for each resident version
     * (one copy for prompts, one for tokens) and a compilation for each version.
     */
    PACKED;

    /** Returns whether graphs are compiled with the weights inside. */
    public boolean packs() {
        return this == PACKED;
    }
}
