package dev.millrace.conformance;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

/** Computes the output of a golden family in the layout of {@code expected}. */
@FunctionalInterface
public interface ConformanceFamily {
    /**
     * Reads every option through {@link ConformanceCase#config()}.
     *
     * @throws IllegalArgumentException if the input is refused
     */
    ObjectNode compute(ConformanceCase golden);

    /** A golden case without its answer; {@code input} is for families whose input is not a list of sequences. */
    public record ConformanceCase(String name, String family, CaseConfig config, JsonNode input) {

        public CaseSequences sequences() {
            return CaseSequences.of(input.path("sequences"));
        }

        /** Length to which the reference's driver padded every sequence. */
        public int paddedLength() {
            JsonNode length = input.path("padded_length");
            if (!length.isIntegralNumber()) {
                throw new MalformedCaseException("input.padded_length must be an integer: " + length);
            }
            return length.intValue();
        }
    }
}
