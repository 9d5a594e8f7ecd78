package dev.millrace.benchmarks.engine;

import dev.millrace.policy.decoder.WholeTensor;
import dev.millrace.policy.huggingface.CheckpointDirectory;
import dev.millrace.policy.session.Engine;
import dev.millrace.policy.session.GradientSession;
import dev.millrace.policy.session.ScoringSession;
import dev.millrace.policy.session.SequenceBatch;
import dev.millrace.policy.weights.Gradients;
import dev.millrace.policy.weights.MatrixRows;
import dev.millrace.policy.weights.Weights;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Locale;

/**
 * Log-probs of tokens on both sides of where a large embedding is cut and at its ends, for {@code policy/src/test/python/large_embedding_check.py} to
 * compare; and, where it is asked for, the gradient of their sum by some rows of the embedding, with differences of that sum along it.
 *
 * <p>Arguments: a directory that {@code large_embedding.py} wrote, and {@code gradient} or nothing.
 */
public final class LargeEmbedding {
    private static final int[] TOKENS = {
        0, 76_031, 76_032, 152_063, 5, 100_000, 149_999, 75_000, 151_000, 3, 76_033, 76_030
    };
    /** Of embedding rows: looked up at the ends and next to the cut, within a piece, and one that is only predicted against. */
    private static final int[] ROWS = {0, 76_031, 76_032, 152_063, 100_000, 40_000};

    private static final double STEP = 0.004;

    private LargeEmbedding() {}

    public static void main(String[] arguments) throws IOException {
        Weights weights = new CheckpointDirectory(Path.of(arguments[0])).load();
        System.out.printf(
                Locale.ROOT,
                "%,d parameters in %d tensors%n",
                weights.shape().parameterCount(),
                weights.shape().tensors().size());
        SequenceBatch batch = new SequenceBatch(new int[][] {TOKENS}, new int[] {1});
        try (ScoringSession session = new ScoringSession(Engine.cpu(), weights.shape(), 4096)) {
            long begun = System.nanoTime();
            float[] logProbs = session.score(weights, batch, new float[] {1}).logProbs();
            System.out.println("log-probs " + Arrays.toString(logProbs));
            say("scored", begun);
            if (arguments.length > 1) {
                gradient(weights, batch, session);
            }
        }
    }

    private static void gradient(Weights weights, SequenceBatch batch, ScoringSession scoring) {
        float[] ones = new float[batch.scoredCount()];
        Arrays.fill(ones, 1);
        Gradients gradients = new Gradients(weights.shape());
        try (GradientSession session = new GradientSession(Engine.cpu(), weights.shape(), 4096)) {
            long begun = System.nanoTime();
            session.accumulate(weights, batch, new float[] {1}, ones, new float[ones.length], gradients);
            say("gradient", begun);
        }
        WholeTensor embedding = weights.shape().embedding();
        MatrixRows of = new MatrixRows(gradients::tensor, embedding);
        MatrixRows rows = new MatrixRows(weights.tensors()::tensor, embedding);
        int width = weights.shape().hiddenSize();
        for (int row : ROWS) {
            float[] gradient = new float[width];
            float[] own = new float[width];
            of.get(row, gradient);
            rows.get(row, own);
            double square = 0;
            for (float each : gradient) {
                square += (double) each * each;
            }
            double norm = Math.sqrt(square);
            double up = sum(weights, batch, scoring, rows, row, own, gradient, STEP / norm);
            double down = sum(weights, batch, scoring, rows, row, own, gradient, -STEP / norm);
            System.out.printf(
                    Locale.ROOT,
                    "row %,d: gradient's norm %.5f, by differences %.5f%n",
                    row,
                    norm,
                    (up - down) / (2 * STEP));
        }
    }

    /** The sum of the log-probs with a row moved so far along a direction. */
    private static double sum(
            Weights weights,
            SequenceBatch batch,
            ScoringSession scoring,
            MatrixRows rows,
            int row,
            float[] own,
            float[] direction,
            double far) {
        float[] moved = new float[own.length];
        for (int i = 0; i < own.length; i++) {
            moved[i] = (float) (own[i] + far * direction[i]);
        }
        rows.put(row, moved);
        double sum = 0;
        for (float each : scoring.score(weights, batch, new float[] {1}).logProbs()) {
            sum += each;
        }
        rows.put(row, own);
        return sum;
    }

    private static void say(String what, long begun) {
        System.out.printf(Locale.ROOT, "%s in %.1f s%n", what, (System.nanoTime() - begun) / 1e9);
    }
}
