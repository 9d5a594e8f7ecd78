package dev.millrace.benchmarks.corrections;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.m2po.SecondMoment;
import dev.millrace.corrections.m2po.SecondMomentMask;
import dev.millrace.corrections.ratio.LogRatio;
import java.util.Arrays;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Level;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OperationsPerInvocation;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.Warmup;

/**
 * The M2PO mask over 2^20 tokens in 512 ragged sequences, in tokens per microsecond (so: million tokens per second),
 * next to a full sort of the same squares and a plain copy of the same bytes.
 *
 * <p>Kinds of log ratio: {@code light} leaves the mean below the threshold, so nothing is masked; {@code stale} masks
 * outliers of a heavy tail; {@code far} is mostly above the threshold, so the cut falls among many tokens; {@code ties}
 * has few distinct values, which defeats any selection that relies on them being different.
 */
@State(Scope.Thread)
@BenchmarkMode(Mode.Throughput)
@OutputTimeUnit(TimeUnit.MICROSECONDS)
@Warmup(iterations = 4, time = 1)
@Measurement(iterations = 7, time = 1)
@Fork(
        value = 2,
        jvmArgs = {"-Xms1g", "-Xmx1g"})
public class SecondMomentMaskBenchmark {
    private static final int TOKENS = 1 << 20;
    private static final int SEQUENCES = 512;
    private static final double THRESHOLD = 0.04;

    /** Which log ratios. */
    @Param({"light", "stale", "far", "ties"})
    private String kind;

    private final SecondMomentMask secondMoment = new SecondMomentMask(THRESHOLD);
    private TokenBatch batch;
    private LogRatio ratio;
    private float[] behavior;
    private float[] proximal;
    private byte[] mask;
    private float[] copy;

    @Setup(Level.Trial)
    public void fill() {
        Random random = new Random(7);
        int[] offsets = new int[SEQUENCES + 1];
        for (int s = 1; s < SEQUENCES; s++) {
            offsets[s] = random.nextInt(TOKENS);
        }
        offsets[SEQUENCES] = TOKENS;
        Arrays.sort(offsets);
        byte[] trained = new byte[TOKENS];
        behavior = new float[TOKENS];
        proximal = new float[TOKENS];
        for (int t = 0; t < TOKENS; t++) {
            trained[t] = (byte) (random.nextInt(16) == 0 ? 0 : 1);
            behavior[t] = (float) Math.log(1.0 - random.nextDouble());
            proximal[t] = behavior[t] + (float) logRatio(random);
        }
        batch = new TokenBatch(offsets, trained);
        ratio = LogRatio.anchor(proximal, behavior);
        mask = new byte[TOKENS];
        copy = new float[TOKENS];
    }

    private double logRatio(Random random) {
        return switch (kind) {
            case "light" -> 0.1 * random.nextGaussian();
            case "stale" -> 0.05 * random.nextGaussian() * Math.exp(random.nextGaussian());
            case "far" -> 0.6 * random.nextGaussian();
            case "ties" -> 0.125 * random.nextInt(8);
            default -> throw new IllegalArgumentException("unknown kind: " + kind);
        };
    }

    /** The mask by selection. */
    @Benchmark
    @OperationsPerInvocation(TOKENS)
    public SecondMoment select() {
        return secondMoment.compute(batch, ratio, mask);
    }

    /** What the rule costs if it is done as written: squares of the trained tokens, sorted, and a scan for the cut. */
    @Benchmark
    @OperationsPerInvocation(TOKENS)
    public double sort() {
        double[] squares = new double[batch.trainedTokens()];
        int n = 0;
        for (int t = 0; t < TOKENS; t++) {
            if (batch.isTrained(t)) {
                double logRatio = ratio.at(t);
                squares[n++] = logRatio * logRatio;
            }
        }
        Arrays.sort(squares);
        double sum = 0.0;
        int kept = 0;
        while (kept < n && sum + squares[kept] < THRESHOLD * (kept + 1)) {
            sum += squares[kept++];
        }
        double cut = kept == 0 ? squares[0] : squares[kept - 1];
        for (int t = 0; t < TOKENS; t++) {
            double logRatio = ratio.at(t);
            mask[t] = (byte) (batch.isTrained(t) && logRatio * logRatio <= cut ? 1 : 0);
        }
        return sum;
    }

    /** As many bytes as the mask must at least touch: two log-probs and a mask per token. */
    @Benchmark
    @OperationsPerInvocation(TOKENS)
    public float copy() {
        System.arraycopy(behavior, 0, copy, 0, TOKENS);
        batch.copyMask(0, mask, 0, TOKENS);
        return copy[TOKENS / 2] + mask[TOKENS / 2];
    }
}
