package dev.millrace.generator.sampling;

/** What becomes of the keys and values of a sequence in flight when new weights are taken up. */
public enum CacheOnSwap {
    /**
     * They are computed again under the new weights, so that from the swap on the behavior policy is exactly the version
     * that the span names. Costs what taking in a prompt as long as the sequence costs; what the samples of a
     * group have in common is computed once. Where that would stop sampling for longer than {@code swap_pause_ms}, it is done beside sampling: each
     * sequence continues with the weights that it has until its own keys and values are there, and two versions are held until then.
     */
    RECOMPUTE,
    /**
     * They are kept: tokens after the swap are sampled by the new weights looking at the old weights' keys and values,
     * which is no single version's policy. Recorded log-probs are still those that were sampled from; what the scorer
     * computes for the span differs from them, and the ratio of engine mismatch shows by how much.
     */
    KEEP
}
