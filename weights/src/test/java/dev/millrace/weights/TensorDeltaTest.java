package dev.millrace.weights;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.Optional;
import java.util.SplittableRandom;
import java.util.function.IntUnaryOperator;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

class TensorDeltaTest {
    private final SplittableRandom random = new SplittableRandom(1);

    @Test
    void shouldGiveBackEveryBitAtEveryLength() {
        for (int values : new int[] {
            64,
            1000,
            TensorDelta.BLOCK_VALUES - 1,
            TensorDelta.BLOCK_VALUES,
            TensorDelta.BLOCK_VALUES + 1,
            2 * TensorDelta.BLOCK_VALUES + 77
        }) {
            int[] base = bits(values, i -> Float.floatToRawIntBits((float) (0.1 * (random.nextDouble() - 0.5))));
            int[] next = bits(
                    values,
                    i -> Float.floatToRawIntBits(
                            Float.intBitsToFloat(base[i]) + 1e-4f * (float) (random.nextDouble() - 0.5)));

            ByteBuffer delta = TensorDelta.encode(bytes(base), bytes(next)).orElseThrow();

            assertThat(delta.remaining()).as("%d values", values).isLessThan(3 * values + 64);
            assertThat(TensorDelta.apply(bytes(base), delta)).isEqualTo(bytes(next));
        }
    }

    /** NaNs with payloads, infinities, both zeros, the smallest numbers, and jumps from any of them to any other. */
    @Test
    void shouldTakeAnyBitsForWhatTheyAre() {
        int[] odd = {
            0, 1, -1, 0x7f800000, 0xff800000, 0x7fc00000, 0x7f800001, 0xffffffff, 0x80000000, 0x7fffffff, 0x00800000
        };
        int[] base = new int[2000];
        int[] next = new int[2000];
        for (int i = 0; i < odd.length * odd.length; i++) {
            base[i] = odd[i / odd.length];
            next[i] = odd[i % odd.length];
        }

        ByteBuffer delta = TensorDelta.encode(bytes(base), bytes(next)).orElseThrow();

        assertThat(TensorDelta.apply(bytes(base), delta)).isEqualTo(bytes(next));
    }

    @Test
    void shouldCostNextToNothingWhereNothingChanged() {
        int[] base = bits(100_000, i -> random.nextInt());
        int[] next = base.clone();
        assertThat(TensorDelta.encode(bytes(base), bytes(next)).orElseThrow().remaining())
                .isLessThan(100);

        next[50_000]++;
        next[99_999] = 7;
        ByteBuffer delta = TensorDelta.encode(bytes(base), bytes(next)).orElseThrow();
        assertThat(delta.remaining()).isLessThan(200);
        assertThat(TensorDelta.apply(bytes(base), delta)).isEqualTo(bytes(next));
    }

    @Test
    void shouldSayWhenADeltaWouldNotBeSmaller() {
        int[] base = bits(5_000, i -> random.nextInt());
        assertThat(TensorDelta.encode(bytes(base), bytes(bits(5_000, i -> random.nextInt()))))
                .isEmpty();
        assertThat(TensorDelta.encode(bytes(new int[] {1}), bytes(new int[] {2})))
                .isEmpty();
        assertThat(TensorDelta.encode(bytes(new int[0]), bytes(new int[0]))).isEqualTo(Optional.empty());
    }

    @Test
    void shouldRefuseWhatIsNoDeltaForTheBase() {
        int[] base = bits(1_000, i -> i);
        ByteBuffer delta =
                TensorDelta.encode(bytes(base), bytes(bits(1_000, i -> i + 3))).orElseThrow();

        assertThatIllegalArgumentException()
                .isThrownBy(() -> TensorDelta.encode(bytes(base), bytes(new int[999])))
                .withMessageEndingWith("3996 bytes against a base of 4000");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> TensorDelta.apply(bytes(new int[999]), delta))
                .withMessageStartingWith("a block of the delta does not decompress to 3996 bytes: ");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> TensorDelta.apply(bytes(new int[1001]), delta))
                .withMessage("a block of the delta holds 4000 bytes where 4004 were due");
        assertThatIllegalArgumentException()
                .isThrownBy(
                        () -> TensorDelta.apply(bytes(base), delta.duplicate().limit(delta.limit() - 1)))
                .withMessageContaining("a block of the delta claims");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> TensorDelta.apply(bytes(base), ByteBuffer.allocate(3)))
                .withMessage("the delta ends where a block of 4000 bytes was due");
        byte[] longer = Arrays.copyOf(delta.array(), delta.remaining() + 5);
        assertThatIllegalArgumentException()
                .isThrownBy(() -> TensorDelta.apply(bytes(base), ByteBuffer.wrap(longer)))
                .withMessage("5 bytes are left behind the delta's last block");
        byte[] garbage = new byte[64];
        random.nextBytes(garbage);
        ByteBuffer.wrap(garbage).order(ByteOrder.LITTLE_ENDIAN).putInt(0, 60);
        assertThatIllegalArgumentException()
                .isThrownBy(() -> TensorDelta.apply(bytes(base), ByteBuffer.wrap(garbage)))
                .withMessageStartingWith("a block of the delta does not decompress to 4000 bytes: ");
    }

    private static int[] bits(int values, IntUnaryOperator at) {
        return IntStream.range(0, values).map(at).toArray();
    }

    private static ByteBuffer bytes(int[] values) {
        ByteBuffer bytes = ByteBuffer.allocate(values.length * Float.BYTES).order(ByteOrder.LITTLE_ENDIAN);
        bytes.asIntBuffer().put(values);
        return bytes;
    }
}
