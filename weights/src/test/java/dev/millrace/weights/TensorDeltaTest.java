package dev.millrace.weights;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import dev.millrace.policy.weights.Dtype;
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

            ByteBuffer delta =
                    TensorDelta.encode(bytes(base), bytes(next), Dtype.F32).orElseThrow();

            assertThat(delta.remaining()).as("%d values", values).isLessThan(3 * values + 64);
            assertThat(TensorDelta.apply(bytes(base), delta, Dtype.F32)).isEqualTo(bytes(next));
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

        ByteBuffer delta =
                TensorDelta.encode(bytes(base), bytes(next), Dtype.F32).orElseThrow();

        assertThat(TensorDelta.apply(bytes(base), delta, Dtype.F32)).isEqualTo(bytes(next));
    }

    @Test
    void shouldCostNextToNothingWhereNothingChanged() {
        int[] base = bits(100_000, i -> random.nextInt());
        int[] next = base.clone();
        assertThat(TensorDelta.encode(bytes(base), bytes(next), Dtype.F32)
                        .orElseThrow()
                        .remaining())
                .isLessThan(100);

        next[50_000]++;
        next[99_999] = 7;
        ByteBuffer delta =
                TensorDelta.encode(bytes(base), bytes(next), Dtype.F32).orElseThrow();
        assertThat(delta.remaining()).isLessThan(200);
        assertThat(TensorDelta.apply(bytes(base), delta, Dtype.F32)).isEqualTo(bytes(next));
    }

    @Test
    void shouldSayWhenADeltaWouldNotBeSmaller() {
        int[] base = bits(5_000, i -> random.nextInt());
        assertThat(TensorDelta.encode(bytes(base), bytes(bits(5_000, i -> random.nextInt())), Dtype.F32))
                .isEmpty();
        assertThat(TensorDelta.encode(bytes(new int[] {1}), bytes(new int[] {2}), Dtype.F32))
                .isEmpty();
        assertThat(TensorDelta.encode(bytes(new int[0]), bytes(new int[0]), Dtype.F32))
                .isEqualTo(Optional.empty());
    }

    @Test
    void shouldRefuseWhatIsNoDeltaForTheBase() {
        int[] base = bits(1_000, i -> i);
        ByteBuffer delta = TensorDelta.encode(bytes(base), bytes(bits(1_000, i -> i + 3)), Dtype.F32)
                .orElseThrow();

        assertThatIllegalArgumentException()
                .isThrownBy(() -> TensorDelta.encode(bytes(base), bytes(new int[999]), Dtype.F32))
                .withMessageEndingWith("3996 bytes against a base of 4000");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> TensorDelta.apply(bytes(new int[999]), delta, Dtype.F32))
                .withMessageStartingWith("a block of the delta does not decompress to 3996 bytes: ");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> TensorDelta.apply(bytes(new int[1001]), delta, Dtype.F32))
                .withMessage("a block of the delta holds 4000 bytes where 4004 were due");
        assertThatIllegalArgumentException()
                .isThrownBy(
                        () -> TensorDelta.apply(bytes(base), delta.duplicate().limit(delta.limit() - 1), Dtype.F32))
                .withMessageContaining("a block of the delta claims");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> TensorDelta.apply(bytes(base), ByteBuffer.allocate(3), Dtype.F32))
                .withMessage("the delta ends where a block of 4000 bytes was due");
        byte[] longer = Arrays.copyOf(delta.array(), delta.remaining() + 5);
        assertThatIllegalArgumentException()
                .isThrownBy(() -> TensorDelta.apply(bytes(base), ByteBuffer.wrap(longer), Dtype.F32))
                .withMessage("5 bytes are left behind the delta's last block");
        byte[] garbage = new byte[64];
        random.nextBytes(garbage);
        ByteBuffer.wrap(garbage).order(ByteOrder.LITTLE_ENDIAN).putInt(0, 60);
        assertThatIllegalArgumentException()
                .isThrownBy(() -> TensorDelta.apply(bytes(base), ByteBuffer.wrap(garbage), Dtype.F32))
                .withMessageStartingWith("a block of the delta does not decompress to 4000 bytes: ");
    }

    @Test
    void shouldGiveBackEveryBitOfHalfAsWideValues() {
        int values = TensorDelta.BLOCK_VALUES + 77;
        ByteBuffer base = ByteBuffer.allocate(2 * values).order(ByteOrder.LITTLE_ENDIAN);
        ByteBuffer next = ByteBuffer.allocate(2 * values).order(ByteOrder.LITTLE_ENDIAN);
        for (int i = 0; i < values; i++) {
            short before = (short) random.nextInt();
            boolean isOther = random.nextInt(20) == 0;
            base.putShort(2 * i, before);
            next.putShort(2 * i, isOther ? (short) random.nextInt() : before);
        }
        base.putShort(0, Short.MIN_VALUE);
        next.putShort(0, Short.MAX_VALUE);

        ByteBuffer delta = TensorDelta.encode(base, next, Dtype.BF16).orElseThrow();

        assertThat(delta.remaining()).as("a twentieth changed").isLessThan(2 * values / 4);
        assertThat(TensorDelta.apply(base, delta, Dtype.BF16)).isEqualTo(next);
        assertThatIllegalArgumentException()
                .isThrownBy(() -> TensorDelta.encode(ByteBuffer.allocate(3), ByteBuffer.allocate(3), Dtype.BF16))
                .withMessage(
                        "a delta is between tensors of one size in whole BF16 values: 3 bytes against a base of 3");
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
