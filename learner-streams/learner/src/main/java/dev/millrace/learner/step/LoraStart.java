package dev.millrace.learner.step;

import dev.millrace.policy.decoder.LoraShape;

/**
 * The adapter that training begins with.
 *
 * @param shape of it
 * @param seed  by which it is drawn
 */
public record LoraStart(LoraShape shape, long seed) {}
