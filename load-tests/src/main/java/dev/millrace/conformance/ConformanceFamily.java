package dev.millrace.conformance;

import com.fasterxml.jackson.databind.node.ObjectNode;

/** Computes the output of every case of one golden family, in the layout of {@code expected}. */
public interface ConformanceFamily {

    /** The {@code family} of the case files this class answers, such as {@code policy_loss}. */
    String name();

    /**
     * What Millrace computes for {@code golden}. Read every option through {@link ConformanceCase#config()}: one that
     * nobody read is reported as unknown.
     *
     * @throws IllegalArgumentException when the input is refused; the message becomes the result's error
     */
    ObjectNode compute(ConformanceCase golden);
}
