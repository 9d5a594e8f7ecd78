package dev.millrace.corrections.objective;

import dev.millrace.corrections.TokenBatch;

/**
 * Each trained token's share of the covariance of advantage and log-prob: {@code (A_t − mean A)(log π_t − mean log π)},
 * means over the batch's trained tokens. A large one marks a token whose update takes the most entropy away. Not
 * differentiated.
 */
final class TokenCovariance {
    private final double advantageMean;
    private final double logProbMean;
    private final ObjectiveInput input;

    TokenCovariance(ObjectiveInput input) {
        this.input = input;
        TokenBatch batch = input.batch();
        double advantages = 0.0;
        double logProbs = 0.0;
        for (int t = 0; t < batch.tokenCount(); t++) {
            if (batch.isTrained(t)) {
                advantages += input.advantages()[t];
                logProbs += input.current()[t];
            }
        }
        int trained = Math.max(1, batch.trainedTokens());
        this.advantageMean = advantages / trained;
        this.logProbMean = logProbs / trained;
    }

    double of(int token) {
        return (input.advantages()[token] - advantageMean) * (input.current()[token] - logProbMean);
    }
}
