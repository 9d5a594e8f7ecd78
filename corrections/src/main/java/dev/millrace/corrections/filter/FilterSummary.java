package dev.millrace.corrections.filter;

/**
 * Result of a filter.
 *
 * @param trainedTokens trained tokens before
 * @param changedTokens of those, masked, or given a truncated weight
 */
public record FilterSummary(int trainedTokens, int changedTokens) {

    /** Changed tokens over trained tokens, AReaL's {@code filtered_fraction}; 0 without trained tokens. */
    public double changedFraction() {
        return trainedTokens == 0 ? 0.0 : (double) changedTokens / trainedTokens;
    }
}
