package dev.millrace.learner.objective;

import dev.millrace.corrections.objective.GlobalBatch;
import dev.millrace.corrections.objective.LossAggregation;

/** How the losses of tokens become one number; the entropy bonus and a KL term are aggregated likewise. */
public sealed interface AggregationConfig {

    /** The mathematics, with these denominators. */
    LossAggregation over(GlobalBatch whole);

    /** Every token of the minibatch counts the same (DAPO). */
    record TokenMean() implements AggregationConfig {
        @Override
        public LossAggregation over(GlobalBatch whole) {
            return new LossAggregation.TokenMean(whole);
        }
    }

    /** The same, undivided. */
    record TokenSum() implements AggregationConfig {
        @Override
        public LossAggregation over(GlobalBatch whole) {
            return new LossAggregation.TokenSum(whole);
        }
    }

    /** Tokens count the same, divided by the number of sequences. */
    record SeqMeanTokenSum() implements AggregationConfig {
        @Override
        public LossAggregation over(GlobalBatch whole) {
            return new LossAggregation.SequenceMeanTokenSum(whole);
        }
    }

    /**
     * Tokens count the same, divided by the number of sequences and a constant length (Dr. GRPO).
     *
     * @param lengthTokens the constant length
     */
    record SeqMeanTokenSumNorm(int lengthTokens) implements AggregationConfig {
        public SeqMeanTokenSumNorm {
            if (lengthTokens < 1) {
                throw new IllegalArgumentException("length_tokens must be at least 1: " + lengthTokens);
            }
        }

        /** A length of 1024. */
        public static SeqMeanTokenSumNorm defaults() {
            return new SeqMeanTokenSumNorm(1024);
        }

        @Override
        public LossAggregation over(GlobalBatch whole) {
            return new LossAggregation.SequenceMeanTokenSumNorm(lengthTokens, whole);
        }
    }

    /** Every sequence counts the same (GRPO as published). */
    record SeqMeanTokenMean() implements AggregationConfig {
        @Override
        public LossAggregation over(GlobalBatch whole) {
            return new LossAggregation.SequenceMeanTokenMean(whole);
        }
    }
}
