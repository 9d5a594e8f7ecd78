package dev.millrace.corrections.objective;

import dev.millrace.corrections.CorrectionUnit;

/** A loss over the log-probs of the sampled tokens. Immutable and thread-safe; O(tokens) in time. */
public interface Objective {

    /** On what the objective's own ratio acts; importance weights in the input have a unit of their own. */
    CorrectionUnit unit();

    /**
     * The loss and its derivative with respect to the current policy's log-probs.
     *
     * @throws IllegalArgumentException if the objective needs a vector that {@code input} lacks, or {@code input} holds
     *     nothing it could be a mean of
     * @throws dev.millrace.corrections.NonFiniteLogProbException naming the first offending sequence and token
     */
    ObjectiveResult evaluate(ObjectiveInput input);
}
