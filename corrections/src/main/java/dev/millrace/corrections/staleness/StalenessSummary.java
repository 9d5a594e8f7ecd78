package dev.millrace.corrections.staleness;

/**
 * What a staleness limit saw and did.
 *
 * @param trainedTokens trained tokens before
 * @param maskedTokens of those, masked
 * @param sequences sequences that had a trained token before
 * @param maskedSequences of those, left without one
 * @param oldest largest staleness of a trained token, in versions; 0 without one
 * @param mean mean staleness over trained tokens, in versions; 0 without one
 */
public record StalenessSummary(
        int trainedTokens, int maskedTokens, int sequences, int maskedSequences, long oldest, double mean) {

    /** Collects the summary, span by span and sequence by sequence. */
    static final class Tally {
        private int trainedTokens;
        private int maskedTokens;
        private int sequences;
        private int maskedSequences;
        private long oldest;
        private double sum;

        void addTokens(int trained, long staleness) {
            if (trained > 0) {
                oldest = Math.max(oldest, staleness);
                sum += (double) trained * staleness;
            }
        }

        void addSequence(int trained, int masked) {
            trainedTokens += trained;
            maskedTokens += masked;
            sequences += trained > 0 ? 1 : 0;
            maskedSequences += trained > 0 && masked == trained ? 1 : 0;
        }

        StalenessSummary summary() {
            return new StalenessSummary(
                    trainedTokens,
                    maskedTokens,
                    sequences,
                    maskedSequences,
                    oldest,
                    trainedTokens == 0 ? 0.0 : sum / trainedTokens);
        }
    }
}
