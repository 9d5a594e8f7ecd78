package dev.millrace.weights;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import dev.millrace.policy.weights.Dtype;
import dev.millrace.schemas.TensorEntry;
import dev.millrace.schemas.WeightChunk;
import dev.millrace.schemas.run.VersionKey;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class TensorChunksTest {
    private static final ByteBuffer TWENTY_BYTES =
            ByteBuffer.wrap(new byte[] {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19});

    @Test
    void shouldCutATensorAtTheChunkSizeAndLeaveTheRestToTheLastChunk() {
        NamedTensor tensor = new NamedTensor("w", List.of(5L), Dtype.F32, TWENTY_BYTES);
        List<WeightChunk> chunks = new ArrayList<>();
        new TensorChunks(SmallDecoder.RUN, 7, 8).of(EncodedTensor.whole(tensor)).forEach(chunks::add);

        assertThat(chunks).extracting(WeightChunk::getChunk).containsExactly(0, 1, 2);
        assertThat(chunks).extracting(WeightChunk::getStart).containsExactly(0L, 8L, 16L);
        assertThat(chunks).extracting(chunk -> chunk.getData().remaining()).containsExactly(8, 8, 4);
        assertThat(chunks.get(1).getData().get(chunks.get(1).getData().position()))
                .isEqualTo((byte) 8);
        assertThat(chunks)
                .extracting(chunk -> new String(VersionKey.of(chunk), StandardCharsets.UTF_8))
                .containsExactly("policy/0/7/w/0", "policy/0/7/w/1", "policy/0/7/w/2");
        assertThat(tensor.data().remaining())
                .as("the tensor's own position stays")
                .isEqualTo(20);
    }

    @Test
    void shouldDescribeATensorByItsPublishedHash() {
        NamedTensor zeros = new NamedTensor("z", List.of(1L), Dtype.F32, ByteBuffer.wrap(new byte[4]));

        TensorEntry entry = new TensorChunks(SmallDecoder.RUN, 0, 8).entry(EncodedTensor.whole(zeros));

        // sha256sum of four zero bytes
        assertThat(entry.getSha256()).isEqualTo("df3f619804a92fdb4057192dc43dd748ea778adc52bc498ce80524c014b81119");
        assertThat(entry.getDtype()).isEqualTo("F32");
        assertThat(entry.getDims()).containsExactly(1L);
        assertThat(entry.getBytes()).isEqualTo(4);
        assertThat(entry.getChunks()).isEqualTo(1);
    }

    @Test
    void shouldRefuseChunksThatWouldSplitAValueOrNotFitARecord() {
        for (int bytes : new int[] {0, 3, 6, -4, 1 << 20}) {
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> new TensorChunks(SmallDecoder.RUN, 0, bytes))
                    .withMessageStartingWith("chunk_bytes must be a multiple of 4 from 4 to 983040")
                    .withMessageEndingWith(": " + bytes);
        }
    }

    @Test
    void shouldRefuseATensorWhoseBytesDoNotFitItsDims() {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> new NamedTensor("w", List.of(2L, 3L), Dtype.F32, TWENTY_BYTES))
                .withMessage("tensor w F32 of dims [2, 3] takes 24 bytes, not 20");
    }
}
