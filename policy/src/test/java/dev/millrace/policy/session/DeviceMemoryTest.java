package dev.millrace.policy.session;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.policy.autodiff.AdamW;
import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.decoder.Shapes;
import dev.millrace.policy.decoder.TensorSpec;
import dev.millrace.policy.onnx.Dim;
import dev.millrace.policy.onnx.ElementType;
import dev.millrace.policy.onnx.GraphBuilder;
import dev.millrace.policy.onnx.Operators;
import dev.millrace.policy.onnx.Shape;
import dev.millrace.policy.onnx.Value;
import dev.millrace.policy.ort.Tensor;
import dev.millrace.policy.weights.DeviceValues;
import dev.millrace.policy.weights.Dtype;
import dev.millrace.policy.weights.Gradients;
import dev.millrace.policy.weights.TensorSet;
import dev.millrace.policy.weights.Weights;
import java.util.Arrays;
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
    void shouldTrainThereAsInTheHostsMemory() {
        for (Dtype dtype : Dtype.values()) {
            SequenceBatch batch = RaggedBatches.random(SHAPE, 2, 6, 2, 9, 13);
            float[] ones = filled(batch.scoredCount());
            Weights there = RaggedBatches.weights(SHAPE, 1).as(dtype);
            Weights here = there.copy();
            AdamW.Config config = new AdamW.Config(0.9, 0.99, 1e-8, 0.1);
            AdamW onDevice = new AdamW(config, SHAPE);
            AdamW onHost = new AdamW(config, SHAPE);
            Gradients gradients = new Gradients(SHAPE);
            try (GradientSession session = new GradientSession(Engine.cpuAsDevice(), SHAPE, 20)) {
                for (int step = 0; step < 3; step++) {
                    gradients.zero();
                    session.accumulate(there, batch, filled(4), ones, ones, gradients);
                    assertThat(gradients.tensors().newer()).as("not fetched").isPresent();
                    double norm = gradients.l2Norm();
                    gradients.scale(0.5f);
                    assertThat(gradients.l2Norm()).isCloseTo(norm / 2, within(1e-6 * norm));
                    onDevice.step(there, gradients, 1e-2);
                    assertThat(there.trained().tensors().newer()).isPresent();
                    assertThat(onDevice.state().second().newer()).isPresent();
                    Gradients same = new Gradients(SHAPE);
                    same.tensors().copyFrom(gradients.tensors());
                    assertThat(same.l2Norm()).isCloseTo(norm / 2, within(1e-6 * norm));
                    onHost.step(here, same, 1e-2);
                    if (step == 1) { // a version is read while there is another step to come
                        requireSame(there.tensors(), here.tensors());
                    }
                }
            }
            requireSame(there.tensors(), here.tensors());
            requireSame(onDevice.state().first(), onHost.state().first());
            requireSame(onDevice.state().second(), onHost.state().second());
        }
    }

    private static float[] filled(int count) {
        float[] ones = new float[count];
        Arrays.fill(ones, 1f);
        return ones;
    }

    private static void requireSame(TensorSet there, TensorSet here) {
        for (TensorSpec spec : here.specs()) {
            assertThat(there.bytes(spec.name())).as(spec.name()).isEqualTo(here.bytes(spec.name()));
        }
    }

    @Test
    void shouldGiveTheSameBitsEachTimeAndAddToWhatIsThere() {
        SequenceBatch batch = RaggedBatches.random(SHAPE, 2, 6, 2, 9, 13);
        float[] ones = filled(batch.scoredCount());
        Weights weights = RaggedBatches.weights(SHAPE, 1);
        Gradients once = new Gradients(SHAPE);
        Gradients again = new Gradients(SHAPE);
        try (GradientSession session = new GradientSession(Engine.cpuAsDevice(), SHAPE, 20)) {
            session.accumulate(weights, batch, filled(4), ones, ones, once);
            session.accumulate(weights, batch, filled(4), ones, ones, again);
            requireSame(once.tensors(), again.tensors());
            session.accumulate(weights, batch, filled(4), ones, ones, again);
        }
        assertThat(again.l2Norm()).isCloseTo(2 * once.l2Norm(), within(1e-5 * once.l2Norm()));
    }

    @Test
    void shouldRefuseAGradientThatIsNotFiniteThere() {
        Weights weights = RaggedBatches.weights(SHAPE, 1);
        DeviceMemory memory = new DeviceMemory(Engine.cpuAsDevice());
        Gradients gradients = new Gradients(SHAPE);
        String name = SHAPE.tensors().get(1).name();
        gradients.tensor(name).put(3, Float.NaN);
        memory.forWriting(gradients.tensors(), false).own();
        assertThat(gradients.l2Norm()).isNaN();
        AdamW adam = new AdamW(new AdamW.Config(0.9, 0.99, 1e-8, 0), SHAPE);
        assertThatThrownBy(() -> adam.step(weights, gradients, 1e-2))
                .hasMessage("the gradient of " + name + " must be finite: NaN at element 3");
        assertThat(adam.state().steps()).isZero();
    }

    @Test
    void shouldFreeWhatWasWrittenThereOnceItsSetIsWrittenElsewhere() {
        DeviceMemory memory = new DeviceMemory(Engine.cpuAsDevice());
        TensorSet set = new TensorSet(SHAPE.tensors());
        String name = SHAPE.tensors().get(0).name();
        DeviceMemory.Copy first = memory.forWriting(set, true);
        Tensor written = first.tensors().get(name);
        first.own();
        memory.of(set, false).close();
        assertThat(written.isClosed()).as("newer than the set's own").isFalse();
        set.tensor(name).put(0, 1f);
        try (Engine.Bound anew = memory.of(set, false)) {
            assertThat(anew.tensors().get(name).floats()[0]).isEqualTo(1f);
        }
        assertThat(written.isClosed()).as("the set was written").isTrue();
    }

    @Test
    void shouldNotGiveBackWhatAFailedStepLeft() {
        DeviceMemory memory = new DeviceMemory(Engine.cpuAsDevice());
        TensorSet gradient = new TensorSet(SHAPE.tensors());
        TensorSet weights = new TensorSet(SHAPE.tensors());
        memory.forWriting(weights, true).own();
        DeviceMemory.Copy values = memory.forWriting(gradient, true);
        GraphBuilder graph = new GraphBuilder("half");
        Shape flat = Shape.of(Dim.symbol("N"));
        Value in = graph.input(DeviceValues.VALUES, ElementType.FLOAT, flat);
        Value weight = graph.input("weight", ElementType.FLOAT, flat);
        graph.output(DeviceValues.next("weight"), new Operators(graph).add(in, weight));
        TensorSpec last = SHAPE.tensors().get(SHAPE.tensors().size() - 1);
        assertThatThrownBy(() -> values.update(graph.whole(), Map.of("weight", weights), Map.of("factor", spec -> {
                    if (spec.equals(last)) {
                        throw new IllegalStateException("out of memory");
                    }
                    return 1;
                })))
                .hasMessage("out of memory");
        assertThatThrownBy(() -> weights.values(last.name()))
                .hasMessageStartingWith("a step failed on device cpu after it had written some tensors");
    }

    @Test
    void shouldMakeZeros() {
        try (Tensor made = new DeviceMemory(Engine.cpu()).zeros(2, 1, 3, 1)) {
            assertThat(made.floats()).containsOnly(0f).hasSize(6);
        }
    }
}
