package dev.millrace.learner.step;

/**
 * Log-probs of the step's starting weights, packed.
 *
 * @param values the recorded proximal ones where a member was not scored
 * @param all    whether every trainable member was scored
 */
record CurrentLogProbs(float[] values, boolean all) {}
