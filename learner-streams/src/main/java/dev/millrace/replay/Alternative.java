package dev.millrace.replay;

import dev.millrace.stages.CorrectionConfig;

/**
 * Corrections that a run is asked about.
 *
 * @param name for people
 * @param corrections all of them
 */
public record Alternative(String name, CorrectionConfig corrections) {
}
