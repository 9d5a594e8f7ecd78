package dev.millrace.learner.objective;

import dev.millrace.corrections.objective.Aggregation;
import dev.millrace.corrections.objective.GlobalBatch;

/** How the losses of tokens become one number; the entropy bonus and a KL term are aggregated likewise. */
public sealed interface AggregationConfig {

    /** The mathematics, with these denominators. */
    Aggregation over(GlobalBatch whole);

    /** Every token of the minibatch counts the same (DAPO). */
    record TokenMean() implements AggregationConfig {
        @Override
        public Aggregation over(GlobalBatch whole) {
            return new Aggregation.TokenMean(whole);
        }
    }

    /** The same, undivided. */
    record TokenSum() implements AggregationConfig {
        @Override
        public Aggregation over(GlobalBatch whole) {
            return new Aggregation.TokenSum(whole);
        }
    }

    /** Tokens count the same, divided by the number of sequences. */
    record SeqMeanTokenSum() implements AggregationConfig {
        @Override
        public Aggregation over(GlobalBatch whole) {
            return new Aggregation.SequenceMeanTokenSum(whole);
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
        public Aggregation over(GlobalBatch whole) {
            return new Aggregation.SequenceMeanTokenSumNorm(lengthTokens, whole);
        }
    }

    /** Every sequence counts the same (GRPO as published). */
    record SeqMeanTokenMean() implements AggregationConfig {
        @Override
        public Aggregation over(GlobalBatch whole) {
            return new Aggregation.SequenceMeanTokenMean(whole);
        }
    }
}
