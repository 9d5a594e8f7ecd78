package dev.millrace.weights;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.policy.weights.Bfloat16;
import dev.millrace.policy.weights.Dtype;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import java.util.Locale;
import java.util.Random;
import java.util.function.DoubleUnaryOperator;
import org.junit.jupiter.api.Test;

/**
 * Size and speed of deltas, on one thread. No test: run it by its name.
 *
 * <pre>{@code ./mvnw -pl weights -am test -Dtest=TensorDeltaSpeed -Dsurefire.failIfNoSpecifiedTests=false}</pre>
 */
class TensorDeltaSpeed {
    private static final int VALUES = 4 << 20;
    private static final int PASSES = 12;

    private final Random random = new Random(1);

    @Test
    void print() {
        for (double step : new double[] {1e-3, 1e-5, 1e-6}) {
            for (Dtype dtype : Dtype.values()) {
                measure(dtype, "steps of " + step, w -> w - step * random.nextGaussian());
            }
        }
        measure(Dtype.F32, "nothing changed", w -> w);
    }

    /** The optimizer moves float32 values by the step, and what is published before and after is rounded. */
    private void measure(Dtype dtype, String what, DoubleUnaryOperator update) {
        FloatBuffer before = FloatBuffer.allocate(VALUES);
        FloatBuffer after = FloatBuffer.allocate(VALUES);
        for (int i = 0; i < VALUES; i++) {
            before.put(i, (float) (0.02 * random.nextGaussian()));
            after.put(i, (float) update.applyAsDouble(before.get(i)));
        }
        ByteBuffer base = bytes(before, dtype);
        ByteBuffer next = bytes(after, dtype);
        double encode = Double.POSITIVE_INFINITY;
        double apply = Double.POSITIVE_INFINITY;
        ByteBuffer delta = null;
        for (int pass = 0; pass < PASSES; pass++) {
            long start = System.nanoTime();
            delta = TensorDelta.encode(base, next, dtype).orElseThrow();
            long encoded = System.nanoTime();
            ByteBuffer result = TensorDelta.apply(base, delta, dtype);
            apply = Math.min(apply, (System.nanoTime() - encoded) / 1e9);
            encode = Math.min(encode, (encoded - start) / 1e9);
            assertThat(result).isEqualTo(next);
        }
        double megabytes = base.remaining() / 1e6;
        System.out.printf(
                Locale.ROOT,
                "%s, %-20s %5.1f %% of its size, %5.1f %% of float32's, encoded at %.0f MB/s, applied at %.0f MB/s%n",
                dtype,
                what,
                100.0 * delta.remaining() / base.remaining(),
                100.0 * delta.remaining() / (VALUES * Float.BYTES),
                megabytes / encode,
                megabytes / apply);
    }

    private static ByteBuffer bytes(FloatBuffer values, Dtype dtype) {
        if (dtype == Dtype.BF16) {
            return Bfloat16.of(values);
        }
        ByteBuffer bytes = ByteBuffer.allocate(VALUES * Float.BYTES).order(ByteOrder.LITTLE_ENDIAN);
        bytes.asFloatBuffer().put(values.duplicate());
        return bytes;
    }
}
