package dev.millrace.policy.session;

import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.weights.Weights;
import java.nio.FloatBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.SplittableRandom;

/** Seeded random sequences and weights for tests. */
final class RaggedBatches {
    private RaggedBatches() {}

    /**
     * Random tokens of the given lengths; the first scored token is anywhere from 1 to the length, so some score none.
     */
    static SequenceBatch random(DecoderShape shape, long seed, int... lengths) {
        int[][] tokens = tokens(shape, seed, lengths);
        SplittableRandom random = new SplittableRandom(seed);
        int[] firstScored = new int[lengths.length];
        for (int s = 0; s < lengths.length; s++) {
            firstScored[s] = lengths[s] == 1 ? 1 : random.nextInt(1, lengths[s] + 1);
        }
        return new SequenceBatch(tokens, firstScored);
    }

    /**
     * The same sequences, drawn from random parts of the vocabulary: the first sequence of three is left whole, and now and
     * then a token was not drawn at all.
     */
    static SequenceBatch cut(DecoderShape shape, long seed, SequenceBatch batch) {
        SplittableRandom random = new SplittableRandom(seed);
        int[][] tokens = new int[batch.sequenceCount()][];
        int[] firstScored = new int[tokens.length];
        SampledSupport[] kept = new SampledSupport[tokens.length];
        for (int s = 0; s < tokens.length; s++) {
            tokens[s] = sequence(batch, s);
            firstScored[s] = batch.firstScored(s);
            if (s % 3 != 0) {
                kept[s] = kept(shape, random, tokens[s], firstScored[s]);
            }
        }
        return new SequenceBatch(tokens, firstScored, kept);
    }

    private static SampledSupport kept(DecoderShape shape, SplittableRandom random, int[] tokens, int firstScored) {
        int[] counts = new int[tokens.length - firstScored];
        List<Integer> ids = new ArrayList<>();
        for (int t = 0; t < counts.length; t++) {
            if (random.nextInt(5) > 0) {
                Set<Integer> row = new LinkedHashSet<>();
                int others = random.nextInt(shape.vocabSize());
                for (int i = 0; i < others; i++) {
                    row.add(random.nextInt(shape.vocabSize()));
                }
                row.add(tokens[firstScored + t]);
                counts[t] = row.size();
                ids.addAll(row);
            }
        }
        return new SampledSupport(
                counts, ids.stream().mapToInt(Integer::intValue).toArray());
    }

    /**
     * Log-probs of a scored token's row as they should be: of what it was drawn from, and minus infinity elsewhere.
     *
     * @param whole log-probs over the vocabulary
     */
    static double[] renormalised(SequenceBatch batch, int sequence, int position, double[] whole) {
        SampledSupport kept = batch.kept(sequence);
        if (kept == null) {
            return whole;
        }
        int row = position - batch.firstScored(sequence);
        double[] logProbs = new double[whole.length];
        Arrays.fill(logProbs, Double.NEGATIVE_INFINITY);
        if (kept.count(row) == 0) {
            logProbs[batch.token(sequence, position)] = 0;
            return logProbs;
        }
        double mass = 0;
        for (int i = 0; i < kept.count(row); i++) {
            mass += Math.exp(whole[kept.id(row, i)]);
        }
        for (int i = 0; i < kept.count(row); i++) {
            logProbs[kept.id(row, i)] = whole[kept.id(row, i)] - Math.log(mass);
        }
        return logProbs;
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
