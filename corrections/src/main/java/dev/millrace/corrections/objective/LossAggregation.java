package dev.millrace.corrections.objective;

import dev.millrace.corrections.TokenBatch;

/**
 * How per-token losses become one number: {@code loss = Σ_s c_s Σ_t ℓ_{s,t}}, with one coefficient per sequence. Entropy
 * bonus and KL term are aggregated likewise.
 *
 * <p>The choice decides how much a token of a long answer counts. {@link TokenMean}: every token of the batch the same
 * (DAPO). {@link TokenSum}: the same, undivided. {@link SeqMeanTokenSum}: tokens the same, divided by the number of
 * sequences. {@link SeqMeanTokenSumNorm}: also by a constant length (Dr. GRPO). {@link SeqMeanTokenMean}: every sequence
 * the same, so a token of a long answer counts less (GRPO as published). {@link AsPublished}: whichever of these the
 * objective's source takes.
 *
 * <p>Means divide by the sequences or tokens that are trained; after a trust region mask a learner divides by those
 * before it, which it passes as {@link GlobalBatch}. Only trained tokens enter any of them.
 */
public sealed interface LossAggregation {

    /**
     * One coefficient per sequence, shards included; 0 for a sequence without trained tokens.
     *
     * @param whole the global batch that contains this batch
     * @throws IllegalArgumentException if the denominator would be a count of nothing, or of one shard only
     */
    double[] coefficients(TokenBatch batch, GlobalBatch whole);

    default double[] coefficients(TokenBatch batch) {
        return coefficients(batch, GlobalBatch.WHOLE);
    }

    /** Returns this aggregation, or the one that {@link AsPublished} stands for under this objective. */
    default LossAggregation of(Objective objective) {
        return this;
    }

    /**
     * As in the objective's source: a token mean for most, a mean over sequences for GSPO, GMPO, SAPO, QUATRO and OAPL.
     */
    record AsPublished() implements LossAggregation {
        @Override
        public double[] coefficients(TokenBatch batch, GlobalBatch whole) {
            throw new IllegalStateException("aggregation as_published stands for another one: ask of(objective)");
        }

        @Override
        public LossAggregation of(Objective objective) {
            return objective.publishedAggregation();
        }
    }

    /** {@code c_s = shards / N_tokens}. verl: token-mean. */
    record TokenMean() implements LossAggregation {
        @Override
        public double[] coefficients(TokenBatch batch, GlobalBatch whole) {
            return forTrained(batch, whole.shards() / whole.tokensOr(batch.trainedTokens()));
        }
    }

    /** {@code c_s = shards}. verl: token-sum. */
    record TokenSum() implements LossAggregation {
        @Override
        public double[] coefficients(TokenBatch batch, GlobalBatch whole) {
            return forTrained(batch, whole.shards());
        }
    }

    /** {@code c_s = shards / N_sequences}. verl: seq-mean-token-sum. */
    record SeqMeanTokenSum() implements LossAggregation {
        @Override
        public double[] coefficients(TokenBatch batch, GlobalBatch whole) {
            return forTrained(batch, whole.shards() / whole.sequencesOr(trainedSequences(batch)));
        }
    }

    /**
     * {@code c_s = shards / (N_sequences · lossScaleFactor)}. verl: seq-mean-token-sum-norm.
     *
     * @param lossScaleFactor constant length in tokens; verl uses the batch's padded length
     */
    record SeqMeanTokenSumNorm(double lossScaleFactor) implements LossAggregation {
        public SeqMeanTokenSumNorm {
            Bounds.positive("loss_scale_factor", lossScaleFactor);
        }

        public static SeqMeanTokenSumNorm defaults() {
            return new SeqMeanTokenSumNorm(1024);
        }

        @Override
        public double[] coefficients(TokenBatch batch, GlobalBatch whole) {
            double sequences = whole.sequencesOr(trainedSequences(batch));
            return forTrained(batch, whole.shards() / sequences / lossScaleFactor);
        }
    }

    /** {@code c_s = shards / (N_sequences · trained tokens of s)}. verl: seq-mean-token-mean. */
    record SeqMeanTokenMean() implements LossAggregation {
        @Override
        public double[] coefficients(TokenBatch batch, GlobalBatch whole) {
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
