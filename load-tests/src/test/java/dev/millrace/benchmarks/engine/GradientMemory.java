package dev.millrace.benchmarks.engine;

import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.decoder.LayerGradient.Activations;
import dev.millrace.policy.session.Engine;
import dev.millrace.policy.session.GradientSession;
import dev.millrace.policy.session.LogitsMemory;
import dev.millrace.policy.session.MicrobatchLimit;
import dev.millrace.policy.session.PassMemory;
import dev.millrace.policy.session.SequenceBatch;
import dev.millrace.policy.weights.Gradients;
import dev.millrace.policy.weights.Weights;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Locale;
import java.util.Optional;
import java.util.SplittableRandom;

/**
 * Time and memory of the gradient of one micro-batch, whose tokens are all scored, in a process of its own: the largest resident
 * size, by how much it lies above that before the first gradient, and the estimate of that.
 *
 * <p>Arguments: a {@link RandomLlama}, sequences, tokens of each, MB for logits (0 for all rows at once), how many rounds, and
 * {@code recompute} where layers are to be computed again on the way back. Reads Linux's {@code /proc}.
 */
public final class GradientMemory {
    private GradientMemory() {}

    public static void main(String[] arguments) throws IOException {
        DecoderShape shape = RandomLlama.shape(arguments[0]);
        int sequences = Integer.parseInt(arguments[1]);
        int length = Integer.parseInt(arguments[2]);
        long logitsMb = Long.parseLong(arguments[3]);
        int rounds = Integer.parseInt(arguments[4]);
        Activations activations =
                arguments.length > 5 && arguments[5].equals("recompute") ? Activations.RECOMPUTED : Activations.KEPT;
        SplittableRandom random = new SplittableRandom(1);
        int[][] tokens = new int[sequences][];
        Arrays.setAll(tokens, s -> random.ints(length + 1, 0, shape.vocabSize()).toArray());
        int[] firstScored = new int[sequences];
        Arrays.fill(firstScored, 1);
        SequenceBatch batch = new SequenceBatch(tokens, firstScored);
        float[] ones = new float[batch.scoredCount()];
        Arrays.fill(ones, 1f);
        float[] temperatures = new float[sequences];
        Arrays.fill(temperatures, 1f);
        Weights weights = Weights.random(shape, 2);
        Gradients gradients = new Gradients(shape);
        LogitsMemory logits = new LogitsMemory(logitsMb == 0 ? Long.MAX_VALUE : logitsMb << 20);
        double[] seconds = new double[rounds];
        long estimate =
                PassMemory.of(shape, Optional.empty(), activations, logits).bytes(sequences, length);
        try (GradientSession session = new GradientSession(
                Engine.cpu(),
                shape,
                Optional.empty(),
                MicrobatchLimit.ofTokens(sequences * length),
                logits,
                activations)) {
            long before = kilobytes("VmRSS:");
            for (int round = 0; round < rounds; round++) {
                long start = System.nanoTime();
                session.accumulate(weights, batch, temperatures, ones, new float[ones.length], gradients);
                seconds[round] = (System.nanoTime() - start) / 1e9;
            }
            long most = kilobytes("VmHWM:");
            Arrays.sort(seconds);
            System.out.printf(
                    Locale.ROOT,
                    "%s, %d sequences of %d tokens, logits %s: %.0f ms median of %d (%.0f tokens/s), resident %d MB at most,"
                            + " %d MB of them for the gradient, %d MB by the estimate, activations %s%n",
                    arguments[0],
                    sequences,
                    length,
                    logitsMb == 0 ? "at once" : "within " + logitsMb + " MB",
                    seconds[rounds / 2] * 1e3,
                    rounds,
                    sequences * length / seconds[rounds / 2],
                    most >> 10,
                    most - before >> 10,
                    estimate >> 20,
                    activations);
        }
    }

    private static long kilobytes(String field) throws IOException {
        return Files.readAllLines(Path.of("/proc/self/status")).stream()
                .filter(line -> line.startsWith(field))
                .mapToLong(line -> Long.parseLong(line.replaceAll("[^0-9]", "")))
                .findFirst()
                .orElseThrow();
    }
}
