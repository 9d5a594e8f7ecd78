package dev.millrace.weights;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
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
            measure("float32, steps of " + step, w -> w - step * random.nextGaussian(), false);
        }
        measure("bfloat16, steps of 1.0E-6", w -> w - 1e-6 * random.nextGaussian(), true);
        measure("nothing changed", w -> w, false);
    }

    private void measure(String what, DoubleUnaryOperator update, boolean half) {
        ByteBuffer base = ByteBuffer.allocateDirect(VALUES * Float.BYTES).order(ByteOrder.LITTLE_ENDIAN);
        ByteBuffer next = ByteBuffer.allocateDirect(VALUES * Float.BYTES).order(ByteOrder.LITTLE_ENDIAN);
        for (int i = 0; i < VALUES; i++) {
            float before = rounded((float) (0.02 * random.nextGaussian()), half);
            base.putFloat(4 * i, before);
            next.putFloat(4 * i, rounded((float) update.applyAsDouble(before), half));
        }
        double encode = Double.POSITIVE_INFINITY;
        double apply = Double.POSITIVE_INFINITY;
        ByteBuffer delta = null;
        for (int pass = 0; pass < PASSES; pass++) {
            long start = System.nanoTime();
            delta = TensorDelta.encode(base, next).orElseThrow();
            long encoded = System.nanoTime();
            ByteBuffer result = TensorDelta.apply(base, delta);
            apply = Math.min(apply, (System.nanoTime() - encoded) / 1e9);
            encode = Math.min(encode, (encoded - start) / 1e9);
            assertThat(result).isEqualTo(next);
        }
        double megabytes = VALUES * Float.BYTES / 1e6;
        System.out.printf(
                Locale.ROOT,
                "%-28s %5.1f %% of the size, encoded at %.0f MB/s, applied at %.0f MB/s%n",
                what,
                100.0 * delta.remaining() / (VALUES * Float.BYTES),
                megabytes / encode,
                megabytes / apply);
    }

    private static float rounded(float value, boolean half) {
        int bits = Float.floatToRawIntBits(value);
        return half ? Float.intBitsToFloat((bits + 0x7fff + ((bits >>> 16) & 1)) & 0xffff0000) : value;
    }
}
