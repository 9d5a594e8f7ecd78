package dev.millrace.learner.step;

import java.util.Collections;
import java.util.Map;
import java.util.TreeMap;

/**
 * What a batch did to the weights.
 *
 * @param updates      optimiser steps taken; 0 if nothing in the batch was to be trained on, and nothing changed
 * @param learningRate of the last of them, step scale included; 0 without one
 * @param metrics      means over the updates, by name
 */
public record StepReport(int updates, double learningRate, Map<String, Double> metrics) {

    public StepReport {
        metrics = Collections.unmodifiableMap(new TreeMap<>(metrics));
    }
}
