package dev.millrace.runtime.metrics;

import io.micrometer.core.instrument.Tags;

/**
 * One number of a step or an evaluation, with its gauge and curve.
 *
 * @param meter name of the gauge, with dots
 * @param tags of the gauge; the same keys for every gauge of that name
 * @param unit base unit that is a part of the gauge's name, such as {@code seconds}; empty for none
 * @param curve its name in TensorBoard: verl's, where verl has the same figure
 * @param value finite
 */
public record Reading(String meter, Tags tags, String unit, String meaning, String curve, double value) {}
