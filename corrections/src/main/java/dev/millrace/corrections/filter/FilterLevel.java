package dev.millrace.corrections.filter;

import java.util.Objects;

/** On what one verdict falls. */
public sealed interface FilterLevel {

    /** Each token by itself. */
    record Token() implements FilterLevel {}

    /**
     * All tokens of a sequence together; under {@link Divergence#RATIO} they also share the geometric mean as weight.
     *
     * @param aggregation how the sequence's measure is made from those of its trained tokens
     */
    record Sequence(Aggregation aggregation) implements FilterLevel {
        public Sequence {
            Objects.requireNonNull(aggregation, "aggregation");
        }
    }

    /** From tokens to a sequence. */
    enum Aggregation {
        /** Sum; grows with length, so a threshold on it rejects long answers. */
        SUM,
        /** Mean over trained tokens. */
        MEAN,
        /** Largest. */
        MAX
    }
}
