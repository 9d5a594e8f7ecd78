package dev.millrace.policy.decoder;

/**
 * Numeric precision of a generating engine. Scoring and gradient always use float32; with any other precision the
 * generator's log-probs differ from theirs under the same weights.
 */
public enum Precision {
    /** Float32 throughout, like scoring. */
    F32,
    /**
     * Weights, and the result of every norm, projection, product and sum, are rounded to bfloat16, logits too; sums inside a
     * product, softmax and log-probs are float32. Emulates bfloat16 engines in float32.
     */
    BF16,
    /**
     * Projections of 8-bit integers: weights with one scale for each output, inputs with one for each token, sums exact.
     * Embedding, norms, attention and head are float32.
     */
    INT8
}
