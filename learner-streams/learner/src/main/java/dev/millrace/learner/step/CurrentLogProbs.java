package dev.millrace.learner.step;

import org.jspecify.annotations.Nullable;

/**
 * Log-probs of the step's starting weights, packed.
 *
 * @param values the recorded proximal ones where a member was not scored
 * @param all    whether every trainable member was scored
 * @param moments what else is known of the starting weights' distributions; null where no stage reads it
 */
record CurrentLogProbs(
        float[] values, boolean all, @Nullable CurrentMoments moments) {}
