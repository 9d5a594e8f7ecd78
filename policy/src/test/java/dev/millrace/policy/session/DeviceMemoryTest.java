package dev.millrace.policy.session;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.decoder.Shapes;
import dev.millrace.policy.decoder.TensorSpec;
import dev.millrace.policy.ort.Tensor;
import dev.millrace.policy.weights.Weights;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** What is done by graphs where values are not in the host's memory, on the CPU. */
class DeviceMemoryTest {
    private static final DecoderShape SHAPE = Shapes.TIED;
    private static final int CAPACITY = 8;

    private static float[][] rows(int rows, float first) {
        float[][] parts = new float[2 * SHAPE.layers()][SHAPE.kvHeads() * rows * SHAPE.headSize()];
        float next = first;
        for (float[] part : parts) {
            for (int i = 0; i < part.length; i++) {
                part[i] = next++;
            }
        }
        return parts;
    }

    @Test
    void shouldMoveRowsByGraphsAsInTheHostsMemory() {
        Engine engine = Engine.cpu();
        try (KeyValueCache byGraphs = new KeyValueCache(engine, SHAPE, 3, CAPACITY, false);
                KeyValueCache other = new KeyValueCache(engine, SHAPE, 2, CAPACITY, false);
                KeyValueCache inHost = new KeyValueCache(engine, SHAPE, 3, CAPACITY, true);
                KeyValueCache otherInHost = new KeyValueCache(engine, SHAPE, 2, CAPACITY, true)) {
            for (KeyValueCache[] caches : new KeyValueCache[][] {{byGraphs, other}, {inHost, otherInHost}}) {
                caches[0].give(1, rows(7, 1), 7, 5);
                caches[1].give(0, rows(4, 9000), 4, 4);
                caches[0].copy(caches[0], 1, 2, 3);
                caches[0].copy(caches[1], 0, 0, 4);
                caches[1].copy(caches[0], 2, 1, 2);
                caches[0].clear(1, 4);
            }
            for (int slot = 0; slot < 3; slot++) {
                assertThat(byGraphs.take(slot, CAPACITY)).isDeepEqualTo(inHost.take(slot, CAPACITY));
            }
            for (int slot = 0; slot < 2; slot++) {
                assertThat(other.take(slot, CAPACITY)).isDeepEqualTo(otherInHost.take(slot, CAPACITY));
            }
            assertThat(byGraphs.take(1, CAPACITY)[0]).contains(1f, 0f);
        }
    }

    @Test
    void shouldCopyASetOnceForAllReadersUntilItIsWritten() {
        DeviceMemory memory = new DeviceMemory(Engine.cpu());
        Weights weights = RaggedBatches.weights(SHAPE, 1);
        TensorSpec spec = SHAPE.tensors().get(0);
        Engine.Bound first = memory.of(weights.tensors(), false);
        Tensor copied = first.tensors().get(spec.name());
        float before = copied.floats()[0];
        assertThat(before).isEqualTo(weights.tensors().values(spec.name()).get(0));
        assertThat(copied.dims()).isEqualTo(spec.dimsArray());
        try (Engine.Bound second = memory.of(weights.tensors(), false)) {
            assertThat(second.tensors().get(spec.name())).isSameAs(copied);
        }
        weights.tensor(spec.name()).put(0, before + 1);
        try (Engine.Bound written = memory.of(weights.tensors(), false)) {
            assertThat(written.tensors().get(spec.name()).floats()[0]).isEqualTo(before + 1);
            assertThat(copied.floats()[0]).as("still read").isEqualTo(before);
        }
        first.close();
    }

    @Test
    void shouldKeepTheLastSetsAndFreeTheOthers() {
        DeviceMemory memory = new DeviceMemory(Engine.cpu());
        Weights[] versions = new Weights[5];
        Tensor[] copies = new Tensor[versions.length];
        String name = SHAPE.tensors().get(0).name();
        for (int i = 0; i < versions.length; i++) {
            versions[i] = RaggedBatches.weights(SHAPE, i);
            try (Engine.Bound bound = memory.of(versions[i].tensors(), false)) {
                copies[i] = bound.tensors().get(name);
            }
        }
        assertThat(copies).extracting(Tensor::isClosed).containsExactly(true, true, false, false, false);
    }

    @Test
    void shouldBringBackWhatAGraphWrote() {
        DeviceMemory memory = new DeviceMemory(Engine.cpu());
        Weights weights = RaggedBatches.weights(SHAPE, 1);
        Map<String, Tensor> copy = memory.copyOf(weights.tensors());
        Weights zeros = Weights.zeros(SHAPE);
        memory.copyOut(copy, zeros.tensors());
        for (TensorSpec spec : SHAPE.tensors()) {
            assertThat(zeros.bytes(spec.name())).isEqualTo(weights.bytes(spec.name()));
        }
        copy.values().forEach(Tensor::close);
        try (Tensor made = memory.zeros(2, 1, 3, 1)) {
            assertThat(made.floats()).containsOnly(0f).hasSize(6);
        }
    }
}
