package dev.millrace.workloads.closed;

import dev.millrace.workloads.Sample;

/**
 * What versions of a model cost.
 *
 * @param wholeBytes of a version that is written whole
 * @param deltaBytes of the versions after it
 * @param publishSeconds from weights at hand to a commit that is answered
 * @param loadSeconds from a manifest that is known to weights that are verified, made from those of the version before
 */
public record VersionRates(long wholeBytes, Sample deltaBytes, Sample publishSeconds, Sample loadSeconds) {

    /** Versions in a second that are published and taken up, one after the other, at the medians. */
    public double rate() {
        return 1 / (publishSeconds.median() + loadSeconds.median());
    }
}
