package dev.millrace.conformance;

import com.fasterxml.jackson.databind.JsonNode;
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

    /**
     * One golden case without its answer.
     *
     * @param name unique name of the case
     * @param family the family that answers it
     * @param config arguments of the reference function, read strictly
     * @param input the whole {@code input} object, for families whose input is not a list of sequences
     */
    public record ConformanceCase(String name, String family, CaseConfig config, JsonNode input) {

        /** The ragged sequences of {@code input.sequences}, checked to be of one length each. */
        public CaseSequences sequences() {
            return CaseSequences.of(input.path("sequences"));
        }

        /** The length the reference's driver padded every sequence to; only one aggregation depends on it. */
        public int paddedLength() {
            JsonNode length = input.path("padded_length");
            if (!length.isIntegralNumber()) {
                throw new MalformedCaseException("input.padded_length must be an integer: " + length);
            }
            return length.intValue();
        }
    }
}
