package dev.millrace.weights;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.millrace.policy.decoder.TensorSpec;
import dev.millrace.policy.weights.Dtype;
import dev.millrace.policy.weights.Weights;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.TensorEncoding;
import dev.millrace.schemas.TensorEntry;
import dev.millrace.schemas.TensorLocation;
import dev.millrace.schemas.WeightChunk;
import dev.millrace.schemas.run.RunIdentity;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class TensorAssemblyTest {
    private static final int CHUNK_BYTES = 128;

    private final Map<String, ByteBuffer> whole = new LinkedHashMap<>();
    private final Weights weights = Weights.random(SmallDecoder.SHAPE, 3);
    private final List<NamedTensor> tensors = NamedTensor.of(weights.trained());
    private final List<TensorSpec> specs = weights.tensors().specs();

    @Test
    void shouldPutTheChunksOfAVersionBackTogether() {
        TensorAssembly assembly = assembly(location(tensors));
        acceptAll(assembly, chunks(SmallDecoder.RUN, 5, tensors));

        Map<String, ByteBuffer> found = verified(location(tensors), assembly);

        assertThat(found.keySet())
                .containsExactlyElementsOf(specs.stream().map(TensorSpec::name).toList());
        found.forEach((name, data) -> assertThat(data).as(name).isEqualTo(weights.bytes(name)));
    }

    @Test
    void shouldPassOverChunksOfOtherVersionsRunsEpochsAndPolicies() {
        List<NamedTensor> others =
                NamedTensor.of(Weights.random(SmallDecoder.SHAPE, 4).trained());
        TensorAssembly assembly = assembly(location(tensors));
        acceptAll(assembly, chunks(SmallDecoder.RUN, 4, others));
        acceptAll(assembly, chunks(new RunIdentity("run-2", 0, "policy"), 5, others));
        acceptAll(assembly, chunks(new RunIdentity("run-1", 1, "policy"), 5, others));
        acceptAll(assembly, chunks(new RunIdentity("run-1", 0, "another"), 5, others));
        acceptAll(assembly, chunks(SmallDecoder.RUN, 5, tensors));

        assembly.finish();
        assertThat(whole.get("model.norm.weight")).isEqualTo(weights.bytes("model.norm.weight"));
    }

    @Test
    void shouldRefuseAVersionWithoutItsLastChunk() {
        List<WeightChunk> chunks = chunks(SmallDecoder.RUN, 5, tensors);
        TensorAssembly assembly = assembly(location(tensors));
        acceptAll(assembly, chunks.subList(0, chunks.size() - 1));

        assertThatThrownBy(assembly::finish)
                .isInstanceOf(CorruptVersionException.class)
                .hasMessage(
                        "version 5 of policy on weights-0 at offsets 10 to 90 is incomplete: model.norm.weight has 0 of 1"
                                + " chunks and 0 of 32 bytes");
    }

    @Test
    void shouldRefuseAMissingOrRepeatedChunkInTheMiddle() {
        List<WeightChunk> chunks = chunks(SmallDecoder.RUN, 5, tensors);
        assertThat(chunks.get(1).getTensor()).isEqualTo("model.embed_tokens.weight");

        List<WeightChunk> hole = new ArrayList<>(chunks);
        hole.remove(1);
        assertThatThrownBy(() -> acceptAll(assembly(location(tensors)), hole))
                .isInstanceOf(CorruptVersionException.class)
                .hasMessageContaining(
                        "has chunk 2 of model.embed_tokens.weight with start 256 at offset 11 where chunk 1 with"
                                + " start 128 was due");

        List<WeightChunk> repeated = new ArrayList<>(chunks);
        repeated.add(1, chunks.get(0));
        assertThatThrownBy(() -> acceptAll(assembly(location(tensors)), repeated))
                .isInstanceOf(CorruptVersionException.class)
                .hasMessageContaining(
                        "has chunk 0 of model.embed_tokens.weight with start 0 at offset 11 where chunk 1");
    }

    @Test
    void shouldRefuseOneChangedBitByTheNameOfItsTensor() {
        TensorLocation location = location(tensors);
        weights.tensor("model.norm.weight")
                .put(2, Math.nextUp(weights.tensor("model.norm.weight").get(2)));
        TensorAssembly assembly = assembly(location);
        acceptAll(assembly, chunks(SmallDecoder.RUN, 5, tensors));

        assertThatThrownBy(() -> verified(location, assembly))
                .isInstanceOf(CorruptVersionException.class)
                .hasMessageContaining("has other bytes in model.norm.weight than its manifest says");
    }

    @Test
    void shouldRefuseAWrongHashOverAllTensors() {
        TensorLocation location = location(tensors);
        TensorLocation wrong = location(location.getTensors(), "0".repeat(64));
        TensorAssembly assembly = assembly(wrong);
        acceptAll(assembly, chunks(SmallDecoder.RUN, 5, tensors));

        assertThatThrownBy(() -> verified(wrong, assembly))
                .isInstanceOf(CorruptVersionException.class)
                .hasMessageContaining(
                        "has the right tensors, but the SHA-256 over all of them is " + location.getSha256());
    }

    @Test
    void shouldRefuseTensorsThatAreNotTheShapes() {
        List<TensorEntry> entries = new ArrayList<>(location(tensors).getTensors());
        entries.set(
                1,
                TensorEntry.newBuilder(entries.get(1)).setDims(List.of(2L, 4L)).build());
        assertThatThrownBy(() -> assembly(location(tensors, entries)))
                .isInstanceOf(CorruptVersionException.class)
                .hasMessageContaining(
                        "has as tensor 1 model.layers.0.input_layernorm.weight F32[2, 4] of 32 bytes where the"
                                + " decoder's shape has model.layers.0.input_layernorm.weight F32[8] of 32 bytes");

        List<TensorEntry> fewer = entries.subList(0, 1);
        assertThatThrownBy(() -> assembly(location(tensors, fewer)))
                .isInstanceOf(CorruptVersionException.class)
                .hasMessageContaining("has as tensor 1 no further tensor where");
    }

    @Test
    void shouldRefuseAChunkOfAnUnknownTensorOrWithTooManyBytes() {
        WeightChunk first = chunks(SmallDecoder.RUN, 5, tensors).get(0);
        assertThatThrownBy(() -> assembly(location(tensors))
                        .accept(WeightChunk.newBuilder(first).setTensor("x").build(), 10))
                .isInstanceOf(CorruptVersionException.class)
                .hasMessageContaining("has a chunk of x at offset 10, a tensor that its manifest does not name");
        assertThatThrownBy(() -> assembly(location(tensors))
                        .accept(
                                WeightChunk.newBuilder(first)
                                        .setData(ByteBuffer.allocate(356))
                                        .build(),
                                10))
                .isInstanceOf(CorruptVersionException.class)
                .hasMessageContaining("with 356 bytes at offset 10, but only 352 of the tensor's 352 bytes are left");
    }

    @Test
    void shouldRefuseSizesThatNoWriterWouldChoose() {
        List<TensorEntry> entries = new ArrayList<>(location(tensors).getTensors());
        TensorEntry norm = entries.get(1);
        entries.set(
                1,
                TensorEntry.newBuilder(norm)
                        .setEncoding(TensorEncoding.DELTA)
                        .setEncodedBytes(32L)
                        .build());
        assertThatThrownBy(() -> assembly(location(tensors, entries)))
                .isInstanceOf(CorruptVersionException.class)
                .hasMessageContaining(
                        "has " + norm.getName() + " as DELTA in 32 bytes; whole it takes 32, and a delta is smaller");

        entries.set(
                1,
                TensorEntry.newBuilder(norm)
                        .setEncoding(TensorEncoding.DELTA)
                        .setEncodedBytes(8L)
                        .build());
        assertThatThrownBy(() -> assembly(location(tensors, entries)))
                .isInstanceOf(CorruptVersionException.class)
                .hasMessageContaining("has " + norm.getName() + " as a delta, but its manifest names no base version");

        entries.set(
                1,
                TensorEntry.newBuilder(norm).setEncoding(TensorEncoding.UNKNOWN).build());
        assertThatThrownBy(() -> assembly(location(tensors, entries)))
                .isInstanceOf(CorruptVersionException.class)
                .hasMessageContaining("has " + norm.getName() + " in an encoding that this release does not know");

        entries.set(1, TensorEntry.newBuilder(norm).setEncodedBytes(28L).build());
        assertThatThrownBy(() -> assembly(location(tensors, entries)))
                .isInstanceOf(CorruptVersionException.class)
                .hasMessageContaining("as RAW in 28 bytes; whole it takes 32");
    }

    private TensorAssembly assembly(TensorLocation location) {
        PublishedTensors published = new PublishedTensors(manifest(location), location);
        published.require(specs, Dtype.F32);
        return new TensorAssembly(published, whole::put);
    }

    /** As a feed reads an anchor. */
    private Map<String, ByteBuffer> verified(TensorLocation location, TensorAssembly assembly) {
        assembly.finish();
        Map<String, ByteBuffer> found = new LinkedHashMap<>();
        TensorVerifier verifier = new TensorVerifier(
                new PublishedTensors(manifest(location), location),
                name -> {
                    throw new AssertionError("an anchor has no base");
                },
                found::put);
        List<String> backwards = new ArrayList<>(whole.keySet());
        Collections.reverse(backwards);
        backwards.forEach(name -> verifier.accept(name, whole.get(name)));
        verifier.finish();
        assertThat(found.keySet()).containsExactlyElementsOf(whole.keySet());
        return found;
    }

    private static void acceptAll(TensorAssembly assembly, List<WeightChunk> chunks) {
        long offset = 10;
        for (WeightChunk chunk : chunks) {
            assembly.accept(chunk, offset++);
        }
    }

    private static List<WeightChunk> chunks(RunIdentity run, long version, List<NamedTensor> tensors) {
        TensorChunks chunks = new TensorChunks(run, version, CHUNK_BYTES);
        List<WeightChunk> all = new ArrayList<>();
        tensors.forEach(tensor -> chunks.of(EncodedTensor.whole(tensor)).forEach(all::add));
        return all;
    }

    private static TensorLocation location(List<NamedTensor> tensors) {
        TensorChunks chunks = new TensorChunks(SmallDecoder.RUN, 5, CHUNK_BYTES);
        return location(
                tensors,
                tensors.stream().map(EncodedTensor::whole).map(chunks::entry).toList());
    }

    private static TensorLocation location(List<NamedTensor> tensors, List<TensorEntry> entries) {
        ContentHash all = new ContentHash();
        tensors.forEach(tensor -> all.add(tensor.data()));
        return location(entries, all.hex());
    }

    private static TensorLocation location(List<TensorEntry> entries, String hash) {
        return TensorLocation.newBuilder()
                .setTopic("weights")
                .setPartition(0)
                .setFirstOffset(10)
                .setLastOffset(90)
                .setTensors(entries)
                .setSha256(hash)
                .build();
    }

    private static PolicyVersion manifest(TensorLocation location) {
        return Manifests.of(5, location);
    }
}
