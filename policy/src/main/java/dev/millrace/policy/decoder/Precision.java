package dev.millrace.policy.decoder;

/**
 * What an engine that generates computes in. Scoring and gradient are float32 always; with anything else here the generator is
 * another engine, whose log-probs differ from theirs under the same weights.
 */
public enum Precision {
    /** Float32 throughout, as scoring. */
    F32,
    /**
     * Weights, and the result of every norm, projection, product and sum, are rounded to bfloat16, logits too; sums inside a
     * product, softmax and log-probs are float32. What bfloat16 engines do, computed in float32.
     */
    BF16,
    /**
     * Projections of 8-bit integers: weights with one scale for each output, inputs with one for each token, sums exact.
     * Embedding, norms, attention and head are float32.
     */
    INT8
}
