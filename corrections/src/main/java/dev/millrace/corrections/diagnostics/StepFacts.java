package dev.millrace.corrections.diagnostics;

import java.util.Optional;
import java.util.OptionalDouble;

/**
 * Facts of an optimizer step in addition to the gap of its policies. A value that was not computed is empty, without a
 * substitute, and then decides no branch.
 *
 * @param clipFraction share of the tokens whose ratio the objective clipped
 * @param clipRange how far above 1 the objective lets a ratio go
 * @param responseTokens mean length of the batch's answers
 * @param learningRate that was used, controls included
 * @param power of the gradient; empty unless both of its values are known
 * @param rejected share of the tokens that rejection took out of those that reached it
 * @param banded share of the tokens whose weight a band set to 0
 */
public record StepFacts(
        OptionalDouble clipFraction,
        OptionalDouble clipRange,
        OptionalDouble responseTokens,
        OptionalDouble learningRate,
        Optional<Power> power,
        OptionalDouble rejected,
        OptionalDouble banded) {
    public static final StepFacts NONE = new StepFacts(
            OptionalDouble.empty(),
            OptionalDouble.empty(),
            OptionalDouble.empty(),
            OptionalDouble.empty(),
            Optional.empty(),
            OptionalDouble.empty(),
            OptionalDouble.empty());

    /**
     * Mean squared norm of a sequence's gradient: nearly all of it is noise, as long as
     * there are more than a few sequences.
     *
     * @param unweighted with every weight 1
     */
    public record Power(double weighted, double unweighted) {}
}
