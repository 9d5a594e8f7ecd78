package dev.millrace.learner.step;

import dev.millrace.policy.decoder.LoraShape;

/**
 * The adapter that training begins with.
 *
 * @param shape of the adapter
 * @param seed of its random initialisation
 */
public record LoraStart(LoraShape shape, long seed) {}
