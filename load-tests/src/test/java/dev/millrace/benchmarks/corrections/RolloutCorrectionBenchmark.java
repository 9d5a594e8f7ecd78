package dev.millrace.benchmarks.corrections;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.algorithm.Preset;
import dev.millrace.corrections.ratio.LogRatio;
import dev.millrace.corrections.rollout.RolloutCorrection;
import dev.millrace.corrections.rollout.RolloutCorrectionResult;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Level;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.Warmup;

/**
 * The rollout correction of one batch with all its metrics, next to a plain copy of as many bytes.
 *
 * <p>A correction reads two floats and a byte per token and writes a float and a byte, 14 bytes in all; {@code copy}
 * moves the same 14 (7 read, 7 written), so the ratio of the two scores is the share of the copy's bandwidth that the
 * correction reaches. Scores are milliseconds per batch: tokens / score / 1000 is million tokens per second. Times
 * are sampled, so that on a machine with other work p0.00 still shows a batch that nothing interrupted; p0.50 is the
 * median. Run with {@code -prof gc}: the allocation per batch is the outputs (5 bytes per token) and what does not
 * grow with the tokens.
 */
@BenchmarkMode(Mode.SampleTime)
@OutputTimeUnit(TimeUnit.MILLISECONDS)
@Warmup(iterations = 5, time = 1)
@Measurement(iterations = 9, time = 1)
@Fork(
        value = 1,
        jvmArgs = {"-Xms1g", "-Xmx1g", "-XX:+UseSerialGC"})
@State(Scope.Benchmark)
public class RolloutCorrectionBenchmark {
    private static final int SEQUENCES = 512;
    private static final int BYTES_READ_OR_WRITTEN_PER_TOKEN = 7;

    /** Tokens of the batch, context included. */
    @Param({"1048576"})
    private int tokens;

    /** {@code answers}: every token trained; {@code turns}: a tenth is context, in runs of about 100. */
    @Param({"answers", "turns"})
    private String mask;

    /** Standard deviation of the log ratio: 0.05 leaves every weight alone, 0.5 truncates a twelfth of them. */
    @Param({"0.05", "0.5"})
    private double spread;

    /** Name of the preset. */
    @Param({"decoupled_k3_rs_token_tis"})
    private String preset;

    private TokenBatch batch;
    private LogRatio ratio;
    private RolloutCorrection correction;
    private byte[] from;
    private byte[] to;

    @Setup(Level.Trial)
    public void setUp() {
        Random random = new Random(20_26);
        int[] offsets = raggedOffsets(random);
        byte[] trained = new byte[tokens];
        float[] behavior = new float[tokens];
        float[] old = new float[tokens];
        int run = 0;
        byte value = 1;
        for (int t = 0; t < tokens; t++) {
            if (mask.equals("turns") && --run < 0) {
                value = (byte) (value == 1 ? 0 : 1);
                run = value == 1 ? 900 + random.nextInt(200) : 50 + random.nextInt(100);
            }
            trained[t] = value;
            behavior[t] = (float) Math.log(1 - random.nextDouble());
            old[t] = (float) Math.min(0, behavior[t] + spread * random.nextGaussian());
        }
        batch = new TokenBatch(offsets, trained);
        ratio = LogRatio.anchor(old, behavior);
        correction = new RolloutCorrection(Preset.labelled(preset).settings().resolve());
        from = new byte[BYTES_READ_OR_WRITTEN_PER_TOKEN * tokens];
        to = new byte[from.length];
    }

    /** Lengths between a half and one and a half of the mean. */
    private int[] raggedOffsets(Random random) {
        int[] offsets = new int[SEQUENCES + 1];
        double[] cuts = new double[SEQUENCES];
        double sum = 0;
        for (int s = 0; s < SEQUENCES; s++) {
            sum += 0.5 + random.nextDouble();
            cuts[s] = sum;
        }
        for (int s = 0; s < SEQUENCES; s++) {
            offsets[s + 1] = (int) Math.round(tokens * (cuts[s] / sum));
        }
        return offsets;
    }

    @Benchmark
    public RolloutCorrectionResult correct() {
        return correction.apply(batch, ratio);
    }

    @Benchmark
    public byte[] copy() {
        System.arraycopy(from, 0, to, 0, from.length);
        return to;
    }
}
