package dev.millrace.experiments;

import dev.millrace.generator.environment.Symbols;
import dev.millrace.policy.decoder.DecoderShape;

/**
 * Settings shared by the runs of a staleness experiment.
 *
 * @param digits of the task {@code inc}
 * @param batchSequences a multiple of {@code groupSize}
 * @param learningRate of AdamW, constant after the warm start
 * @param warmUpSteps on-policy steps from random weights
 * @param steps of a run after the warm start
 * @param evaluationPrompts one sample each
 */
public record StalenessSettings(
        DecoderShape model,
        int digits,
        int batchSequences,
        int groupSize,
        double learningRate,
        int warmUpSteps,
        int steps,
        int evaluateEvery,
        int evaluationPrompts) {

    /** One layer of width 32, ten thousand parameters: a hundred runs take an hour. */
    public static final DecoderShape SMALL_MODEL =
            new DecoderShape(Symbols.tokenizer().vocabSize(), 32, 1, 2, 2, 16, 64, 64, 100.0, 1e-6, false, false);

    public StalenessSettings {
        if (groupSize < 2 || batchSequences < groupSize || batchSequences % groupSize != 0) {
            throw new IllegalArgumentException(
                    "batch-sequences must be a multiple of group-size, which must be at least 2: " + batchSequences
                            + " and " + groupSize);
        }
        if (!(learningRate > 0 && learningRate < Double.POSITIVE_INFINITY)) {
            throw new IllegalArgumentException("learning-rate must be finite and above 0: " + learningRate);
        }
        atLeast(0, "warm-up", warmUpSteps);
        atLeast(1, "evaluate-every", evaluateEvery);
        atLeast(evaluateEvery, "steps", steps);
        atLeast(1, "evaluation-prompts", evaluationPrompts);
    }

    private static void atLeast(int bound, String option, int value) {
        if (value < bound) {
            throw new IllegalArgumentException(option + " must be at least " + bound + ": " + value);
        }
    }

    int groups() {
        return batchSequences / groupSize;
    }
}
