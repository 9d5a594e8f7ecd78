package dev.millrace.topology.state;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.api.Test;

class CompactBytesTest {

    @Test
    void shouldReadBackWhatWasWritten() {
        long[] numbers = {0, 1, -1, 63, -64, 64, 300, Integer.MIN_VALUE, Long.MAX_VALUE, Long.MIN_VALUE};
        CompactBytes.Writer writer = new CompactBytes.Writer((byte) 9);
        for (long number : numbers) {
            writer.number(number);
        }
        writer.bytes(new byte[] {1, 2, 3}).bytes(new byte[100]);

        CompactBytes.Reader reader = new CompactBytes.Reader(writer.toByteArray(), (byte) 9, "store");
        for (long number : numbers) {
            assertThat(reader.number()).isEqualTo(number);
        }
        assertThat(reader.bytes()).containsExactly(1, 2, 3);
        assertThat(reader.bytes()).hasSize(100);
    }

    @Test
    void shouldKeepItsBytes() {
        // 1 -> 2, -1 -> 1, 300 -> 600 = 0b100_1011000: what earlier versions wrote must be read by later ones
        assertThat(new CompactBytes.Writer((byte) 1)
                        .number(1)
                        .number(-1)
                        .number(300)
                        .bytes(new byte[] {7})
                        .toByteArray())
                .containsExactly(1, 2, 1, (byte) 0xd8, 4, 2, 7);
    }

    @Test
    void shouldRefuseAnotherFormat() {
        assertThatThrownBy(() -> new CompactBytes.Reader(new byte[] {2}, (byte) 1, "pending"))
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("store pending")
                .hasMessageContaining("format 2");
    }
}
