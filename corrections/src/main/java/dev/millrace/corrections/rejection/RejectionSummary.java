package dev.millrace.corrections.rejection;

import java.util.List;

/**
 * What rejection did to a batch.
 *
 * @param trainedTokens tokens that were trained before
 * @param rejectedTokens of them, how many are not any more
 * @param trainedSequences sequences with a trained token before
 * @param rejectedSequences of them, how many lost at least one token
 * @param emptiedSequences of them, how many have no trained token left
 * @param rules the same per rule, each as if it were alone, in the order of the configuration
 */
public record RejectionSummary(
        int trainedTokens,
        int rejectedTokens,
        int trainedSequences,
        int rejectedSequences,
        int emptiedSequences,
        List<RuleCount> rules) {

    public RejectionSummary {
        rules = List.copyOf(rules);
    }

    /**
     * What one rule rejected.
     *
     * @param rule the rule
     * @param rejectedTokens trained tokens it rejects
     * @param rejectedSequences sequences in which it rejects a token
     */
    public record RuleCount(RejectionRule rule, int rejectedTokens, int rejectedSequences) {}
}
