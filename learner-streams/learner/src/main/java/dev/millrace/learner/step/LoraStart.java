package dev.millrace.learner.step;

import dev.millrace.policy.decoder.LoraShape;

/** The adapter that training begins with. */
public record LoraStart(LoraShape shape, long seed) {}
