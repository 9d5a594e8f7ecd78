package dev.millrace.schemas.packed;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.apache.avro.LogicalTypes;
import org.apache.avro.Schema;
import org.apache.avro.SchemaBuilder;
import org.junit.jupiter.api.Test;

class PackedVectorsTest {

    @Test
    void shouldPackIntsLittleEndianWithoutGaps() {
        ByteBuffer packed = PackedInts.of(1, -2, Integer.MAX_VALUE);

        assertThat(packed.array()).containsExactly(1, 0, 0, 0, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f);
        assertThat(PackedInts.length(packed)).isEqualTo(3);
        assertThat(PackedInts.get(packed, 1)).isEqualTo(-2);
        assertThat(PackedInts.toArray(packed)).containsExactly(1, -2, Integer.MAX_VALUE);
    }

    @Test
    void shouldPackFloatsLittleEndianAndKeepEveryBit() {
        float oddNan = Float.intBitsToFloat(0x7fc12345);
        ByteBuffer packed = PackedFloats.of(-1.5f, -0f, oddNan);

        assertThat(packed.array()).containsExactly(0, 0, 0xc0, 0xbf, 0, 0, 0, 0x80, 0x45, 0x23, 0xc1, 0x7f);
        assertThat(PackedFloats.get(packed, 0)).isEqualTo(-1.5f);
        assertThat(Float.floatToRawIntBits(PackedFloats.toArray(packed)[2])).isEqualTo(0x7fc12345);
    }

    @Test
    void shouldReadBetweenPositionAndLimitWhateverTheByteOrderAndMoveNeither() {
        ByteBuffer ints = ByteBuffer.allocateDirect(17).order(ByteOrder.BIG_ENDIAN);
        ints.put(5, (byte) 7).put(9, (byte) 9).position(5).limit(13);
        ByteBuffer mask =
                ByteBuffer.wrap(new byte[] {9, 1, 0, 1, 9}).position(1).limit(4);
        int[] target = {-1, -1, -1, -1};

        PackedInts.copyTo(ints, target, 1);

        assertThat(PackedInts.toArray(ints)).containsExactly(7, 9);
        assertThat(PackedInts.get(ints, 1)).isEqualTo(9);
        assertThat(target).containsExactly(-1, 7, 9, -1);
        assertThat(PackedMask.toArray(mask)).containsExactly(1, 0, 1);
        assertThat(PackedMask.get(mask, 1)).isZero();
        assertThat(PackedMask.count(mask)).isEqualTo(2);
        assertThat(PackedMask.length(mask)).isEqualTo(3);
        assertThat(ints.position()).isEqualTo(5);
        assertThat(ints.limit()).isEqualTo(13);
        assertThat(mask.position()).isEqualTo(1);
    }

    @Test
    void shouldReadReadOnlyAndEmptyBuffers() {
        ByteBuffer packed = PackedFloats.of(0.25f).asReadOnlyBuffer();

        assertThat(PackedFloats.toArray(packed)).containsExactly(0.25f);
        assertThat(PackedFloats.toArray(PackedFloats.of())).isEmpty();
        assertThat(PackedMask.toArray(PackedMask.of(new byte[] {1}).asReadOnlyBuffer()))
                .containsExactly(1);
    }

    @Test
    void shouldCopyWhatItPacks() {
        byte[] values = {1, 0};
        ByteBuffer packed = PackedMask.of(values);

        values[0] = 0;

        assertThat(PackedMask.get(packed, 0)).isEqualTo((byte) 1);
    }

    @Test
    void shouldRefuseSizesThatAreNoMultipleOfFour() {
        ByteBuffer odd = ByteBuffer.allocate(6);

        assertThatThrownBy(() -> PackedInts.length(odd))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage("packed-int32 needs a multiple of 4 bytes, there are 6");
        assertThatThrownBy(() -> PackedFloats.toArray(odd))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage("packed-float32 needs a multiple of 4 bytes, there are 6");
    }

    @Test
    void shouldRefuseAnIndexOutsideTheVectorAlsoWhereTheBufferGoesOn() {
        ByteBuffer packed = PackedInts.of(1, 2, 3).limit(8);

        assertThatThrownBy(() -> PackedInts.get(packed, 2))
                .isInstanceOf(IndexOutOfBoundsException.class)
                .hasMessage("element 2 of a packed vector of 2");
        assertThatThrownBy(() -> PackedInts.get(packed, -1)).isInstanceOf(IndexOutOfBoundsException.class);
        assertThatThrownBy(() -> PackedMask.get(PackedMask.of(), 0)).isInstanceOf(IndexOutOfBoundsException.class);
    }

    @Test
    void shouldBeFoundByAvroAndSitOnBytesOnly() {
        Schema bytes = SchemaBuilder.builder().bytesType();
        bytes.addProp("logicalType", "packed-float32");

        assertThat(LogicalTypes.fromSchema(bytes))
                .isInstanceOfSatisfying(
                        PackedType.class,
                        type -> assertThat(type.elementBytes()).isEqualTo(4));

        Schema string = SchemaBuilder.builder().stringType();
        string.addProp("logicalType", "packed-int32");

        assertThatThrownBy(() -> LogicalTypes.fromSchema(string))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage("packed-int32 packs its elements into bytes, it cannot be put on string");
    }
}
