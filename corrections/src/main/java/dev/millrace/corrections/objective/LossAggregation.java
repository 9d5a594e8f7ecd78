package dev.millrace.corrections.objective;

import dev.millrace.corrections.TokenBatch;

/**
 * How per-token losses become one number: {@code loss = Σ_s c_s Σ_t ℓ_{s,t}}, with one coefficient per sequence.
 *
 * <p>The choice decides how much a token of a long answer counts. {@link TokenMean}: every token of the batch the same
 * (DAPO). {@link TokenSum}: the same, undivided. {@link SequenceMeanTokenSum}: tokens the same, divided by the number
 * of sequences. {@link SequenceMeanTokenSumNorm}: also by a constant length (Dr. GRPO). {@link SequenceMeanTokenMean}:
 * every sequence the same, so a token of a long answer counts less (GRPO as published).
 *
 * <p>Means over sequences divide by the sequences that have a trained token; trust-region masking theory divides by
 * all N instead: pass N as {@link GlobalBatch#sequences()}. Only trained tokens enter any of them.
 */
public sealed interface LossAggregation {

    /**
     * One coefficient per sequence, shards included; 0 for a sequence without trained tokens.
     *
     * @throws IllegalArgumentException if the denominator would be a count of nothing, or of one shard only
     */
    double[] coefficients(TokenBatch batch);

    /** {@code c_s = shards / N_tokens}. verl: token-mean. */
    record TokenMean(GlobalBatch whole) implements LossAggregation {
        public TokenMean() {
            this(GlobalBatch.WHOLE);
        }

        @Override
        public double[] coefficients(TokenBatch batch) {
            return forTrained(batch, whole.shards() / whole.tokensOr(batch.trainedTokens()));
        }
    }

    /** {@code c_s = shards}. verl: token-sum. */
    record TokenSum(GlobalBatch whole) implements LossAggregation {
        public TokenSum() {
            this(GlobalBatch.WHOLE);
        }

        @Override
        public double[] coefficients(TokenBatch batch) {
            return forTrained(batch, whole.shards());
        }
    }

    /** {@code c_s = shards / N_sequences}. verl: seq-mean-token-sum. */
    record SequenceMeanTokenSum(GlobalBatch whole) implements LossAggregation {
        public SequenceMeanTokenSum() {
            this(GlobalBatch.WHOLE);
        }

        @Override
        public double[] coefficients(TokenBatch batch) {
            return forTrained(batch, whole.shards() / whole.sequencesOr(trainedSequences(batch)));
        }
    }

    /**
     * {@code c_s = shards / (N_sequences · lengthTokens)}. verl: seq-mean-token-sum-norm.
     *
     * @param lengthTokens a constant for the whole training run. verl defaults to the padded length of the batch at
     *     hand, which makes the step size depend on the longest answer in it; here it must be given
     */
    record SequenceMeanTokenSumNorm(double lengthTokens, GlobalBatch whole) implements LossAggregation {
        public SequenceMeanTokenSumNorm {
            if (!(lengthTokens > 0 && lengthTokens < Double.POSITIVE_INFINITY)) {
                throw new IllegalArgumentException("lengthTokens must be positive and finite: " + lengthTokens);
            }
        }

        public SequenceMeanTokenSumNorm(double lengthTokens) {
            this(lengthTokens, GlobalBatch.WHOLE);
        }

        @Override
        public double[] coefficients(TokenBatch batch) {
            double sequences = whole.sequencesOr(trainedSequences(batch));
            return forTrained(batch, whole.shards() / sequences / lengthTokens);
        }
    }

    /** {@code c_s = shards / (N_sequences · trained tokens of s)}. verl: seq-mean-token-mean. */
    record SequenceMeanTokenMean(GlobalBatch whole) implements LossAggregation {
        public SequenceMeanTokenMean() {
            this(GlobalBatch.WHOLE);
        }

        @Override
        public double[] coefficients(TokenBatch batch) {
            double[] coefficients = forTrained(batch, whole.shards() / whole.sequencesOr(trainedSequences(batch)));
            for (int s = 0; s < coefficients.length; s++) {
                coefficients[s] /= Math.max(1, batch.trainedTokens(s));
            }
            return coefficients;
        }
    }

    private static int trainedSequences(TokenBatch batch) {
        int trained = 0;
        for (int s = 0; s < batch.sequenceCount(); s++) {
            trained += batch.trainedTokens(s) > 0 ? 1 : 0;
        }
        return trained;
    }

    private static double[] forTrained(TokenBatch batch, double coefficient) {
        double[] coefficients = new double[batch.sequenceCount()];
        for (int s = 0; s < coefficients.length; s++) {
            coefficients[s] = batch.trainedTokens(s) > 0 ? coefficient : 0.0;
        }
        return coefficients;
    }
}
