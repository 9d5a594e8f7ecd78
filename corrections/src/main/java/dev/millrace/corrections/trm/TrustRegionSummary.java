package dev.millrace.corrections.trm;

/**
 * What a trust region mask did.
 *
 * @param sequences all sequences of the batch, those without a trained token included
 * @param rejected sequences that had a trained token and lost all of them
 * @param trainedTokens trained tokens before
 * @param largestTokenDivergence largest divergence of a trained token: KL for stored distributions, {@code |log rho|}
 *     for samples; 0 without trained tokens
 * @param meanSequenceDivergence mean over sequences with a trained token of the sum of their tokens' divergences: KL
 *     for stored distributions, k3 for samples. An estimate of the sequence KL in the mixed bound
 */
public record TrustRegionSummary(
        int sequences,
        int rejected,
        int trainedTokens,
        int maskedTokens,
        double largestTokenDivergence,
        double meanSequenceDivergence) {

    /** Rejected sequences over all sequences; 0 for a batch without sequences. */
    public double maskRate() {
        return sequences == 0 ? 0.0 : (double) rejected / sequences;
    }

    /** Collects a summary sequence by sequence. Confined to one call. */
    static final class Tally {
        private final int sequences;
        private int withTrained;
        private int rejected;
        private int trainedTokens;
        private int maskedTokens;
        private double largest;
        private double sum;

        Tally(int sequences) {
            this.sequences = sequences;
        }

        void add(int trained, double largestOfTokens, double sumOfTokens, boolean isRejected) {
            if (trained > 0) {
                withTrained++;
                trainedTokens += trained;
                largest = Math.max(largest, largestOfTokens);
                sum += sumOfTokens;
                rejected += isRejected ? 1 : 0;
                maskedTokens += isRejected ? trained : 0;
            }
        }

        TrustRegionSummary summary() {
            return new TrustRegionSummary(
                    sequences,
                    rejected,
                    trainedTokens,
                    maskedTokens,
                    largest,
                    withTrained == 0 ? 0.0 : sum / withTrained);
        }
    }
}
