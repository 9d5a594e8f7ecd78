package dev.millrace.generator.sampling;

/** What becomes of the keys and values of a sequence in flight when new weights are taken up. */
public enum CacheOnSwap {
    /**
     * Recomputes them under the new weights, so that the behavior policy after the swap is exactly the version that the span names. Costs a
     * prefill of the sequence's length; the common part of a group is computed once. If it took longer than {@code swap_pause_ms}, a spare
     * slot recomputes instead: each sequence continues under its weights until its cache is ready, and two versions are held until then.
     */
    RECOMPUTE,
    /**
     * Keeps them: the new weights sample from keys and values of the old ones, which is no single version's policy. Recorded log-probs
     * are those of the draws; the scorer's differ, and the engine mismatch ratio shows by how much.
     */
    KEEP
}
