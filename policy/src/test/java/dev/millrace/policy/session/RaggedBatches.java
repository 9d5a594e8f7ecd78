package dev.millrace.policy.session;

import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.weights.Weights;
import java.nio.FloatBuffer;
import java.util.Arrays;
import java.util.SplittableRandom;

/** Seeded random sequences and weights for tests. */
final class RaggedBatches {
    private RaggedBatches() {}

    /** Random tokens of the given lengths; the first scored token lies anywhere from 1 to the length, so some want none. */
    static SequenceBatch random(DecoderShape shape, long seed, int... lengths) {
        int[][] tokens = tokens(shape, seed, lengths);
        SplittableRandom random = new SplittableRandom(seed);
        int[] firstScored = new int[lengths.length];
        for (int s = 0; s < lengths.length; s++) {
            firstScored[s] = lengths[s] == 1 ? 1 : random.nextInt(1, lengths[s] + 1);
        }
        return new SequenceBatch(tokens, firstScored);
    }

    static int[][] tokens(DecoderShape shape, long seed, int... lengths) {
        SplittableRandom random = new SplittableRandom(seed);
        return Arrays.stream(lengths)
                .mapToObj(length -> random.ints(length, 0, shape.vocabSize()).toArray())
                .toArray(int[][]::new);
    }

    static float[] temperatures(long seed, int count) {
        SplittableRandom random = new SplittableRandom(seed);
        float[] temperatures = new float[count];
        for (int i = 0; i < count; i++) {
            temperatures[i] = (float) random.nextDouble(0.6, 1.6);
        }
        return temperatures;
    }

    /** Random weights whose norms and biases are random too, so that nothing hides behind a 1 or a 0. */
    static Weights weights(DecoderShape shape, long seed) {
        Weights weights = Weights.random(shape, seed);
        SplittableRandom random = new SplittableRandom(seed);
        shape.tensors().stream().filter(spec -> spec.dims().size() == 1).forEach(spec -> {
            FloatBuffer tensor = weights.tensor(spec.name());
            for (int i = 0; i < tensor.limit(); i++) {
                tensor.put(i, tensor.get(i) + (float) random.nextDouble(-0.5, 0.5));
            }
        });
        return weights;
    }

    static int[] sequence(SequenceBatch batch, int sequence) {
        int[] tokens = new int[batch.length(sequence)];
        for (int t = 0; t < tokens.length; t++) {
            tokens[t] = batch.token(sequence, t);
        }
        return tokens;
    }
}
