package dev.millrace.policy.weights;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.decoder.Shapes;
import dev.millrace.policy.decoder.TensorSpec;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import java.nio.ReadOnlyBufferException;
import org.junit.jupiter.api.Test;

class WeightsTest {
    private static final DecoderShape SHAPE = Shapes.DEFAULT_TASK;
    private static final String EMBEDDING = "model.embed_tokens.weight";
    private static final String DOWN = "model.layers.1.mlp.down_proj.weight";

    @Test
    void shouldMakeTheSameBitsFromTheSameSeed() {
        Weights weights = Weights.random(SHAPE, 42);
        SHAPE.tensors()
                .forEach(spec -> assertThat(weights.bytes(spec.name()))
                        .isEqualTo(Weights.random(SHAPE, 42).bytes(spec.name())));
        assertThat(weights.bytes(EMBEDDING))
                .isNotEqualTo(Weights.random(SHAPE, 43).bytes(EMBEDDING));
        assertThat(weights.tensor(EMBEDDING).get(0))
                .as("pinned: a change here changes every recorded run")
                .isEqualTo(-0.045046493f);
    }

    @Test
    void shouldScaleRandomWeightsByTheirInputsAndDepth() {
        Weights weights = Weights.random(SHAPE, 1);
        assertThat(deviation(weights.tensor("model.layers.0.mlp.up_proj.weight")))
                .isCloseTo(1 / Math.sqrt(64), within(0.005));
        assertThat(deviation(weights.tensor(DOWN))).isCloseTo(1 / Math.sqrt(128) / 2, within(0.002));
        assertThat(weights.tensor("model.norm.weight").get(5)).isEqualTo(1f);
        assertThat(Weights.random(Shapes.GROUPED_UNTIED_BIASED, 1)
                        .tensor("model.layers.0.self_attn.q_proj.bias")
                        .get(3))
                .isZero();
    }

    @Test
    void shouldBeginAValueHeadAtZeroBesideTheSameWeights() {
        Weights without = Weights.random(SHAPE, 1);
        Weights with = Weights.random(SHAPE.withValueHead(true), 1);
        without.shape()
                .tensors()
                .forEach(spec -> assertThat(with.bytes(spec.name())).isEqualTo(without.bytes(spec.name())));
        assertThat(with.shape().parameterCount()).isEqualTo(SHAPE.parameterCount() + SHAPE.hiddenSize() + 1);
        for (String name : new String[] {"value_head.weight", "value_head.bias"}) {
            assertThat(with.tensor(name))
                    .isEqualTo(FloatBuffer.allocate(with.tensor(name).limit()));
        }
    }

    @Test
    void shouldShowAWriteInBytesButNotInACopy() {
        Weights weights = Weights.zeros(SHAPE);
        Weights copy = weights.copy();
        weights.tensor(EMBEDDING).put(1, 1.5f);
        ByteBuffer bytes = weights.bytes(EMBEDDING);
        assertThat(bytes.remaining()).isEqualTo(16 * 64 * 4);
        assertThat(bytes.order()).isEqualTo(ByteOrder.LITTLE_ENDIAN);
        assertThat(new byte[] {bytes.get(4), bytes.get(5), bytes.get(6), bytes.get(7)})
                .containsExactly(0, 0, 0xC0, 0x3F);
        assertThat(copy.tensor(EMBEDDING).get(1)).isZero();
        assertThatThrownBy(() -> bytes.put(0, (byte) 1)).isInstanceOf(ReadOnlyBufferException.class);
    }

    @Test
    void shouldLoadWhatAnotherGaveAsBytes() {
        Weights from = Weights.random(SHAPE, 1);
        Weights to = Weights.zeros(SHAPE);
        SHAPE.tensors().forEach(spec -> to.load(spec.name(), from.bytes(spec.name())));
        SHAPE.tensors().forEach(spec -> assertThat(to.bytes(spec.name())).isEqualTo(from.bytes(spec.name())));
    }

    @Test
    void shouldRefuseBytesThatDoNotFitAndNamesItDoesNotHave() {
        Weights weights = Weights.zeros(SHAPE);
        assertThatThrownBy(() -> weights.load("model.norm.weight", ByteBuffer.allocate(255)))
                .hasMessage("model.norm.weight takes 256 bytes, not 255");
        assertThatThrownBy(() -> weights.tensor("lm_head.weight"))
                .hasMessageStartingWith("there is no tensor lm_head.weight among [model.embed");
        assertThatThrownBy(() -> weights.copyFrom(Weights.zeros(Shapes.TIED)))
                .hasMessageStartingWith("the tensors differ in name or shape");
    }

    @Test
    void shouldRoundToTheNearestBfloat16AndGoOverTheWireInHalfTheBytes() {
        Weights exact = Weights.random(SHAPE, 1);
        exact.tensor(DOWN)
                .put(0, 1 + 0x1p-8f)
                .put(1, 1 + 3 * 0x1p-8f)
                .put(2, -0f)
                .put(3, Float.MAX_VALUE);

        Weights rounded = exact.as(Dtype.BF16);

        assertThat(rounded.dtype()).isEqualTo(Dtype.BF16);
        assertThat(new float[] {
                    rounded.tensor(DOWN).get(0),
                    rounded.tensor(DOWN).get(1),
                    rounded.tensor(DOWN).get(3)
                })
                .as("ties go to the even neighbour, and what is beyond the largest is infinite")
                .containsExactly(1f, 1 + 2 * 0x1p-7f, Float.POSITIVE_INFINITY);
        assertThat(Float.floatToRawIntBits(rounded.tensor(DOWN).get(2))).isEqualTo(0x80000000);
        for (int i = 4; i < 100; i++) {
            float value = exact.tensor(DOWN).get(i);
            assertThat(Math.abs(rounded.tensor(DOWN).get(i) - value)).isLessThanOrEqualTo(Math.abs(value) * 0x1p-8f);
        }
        assertThat(rounded.bytes(DOWN).remaining()).isEqualTo(exact.bytes(DOWN).remaining() / 2);
        Weights loaded = Weights.zeros(SHAPE, Dtype.BF16);
        SHAPE.tensors().forEach(spec -> loaded.load(spec.name(), rounded.bytes(spec.name())));
        SHAPE.tensors().forEach(spec -> assertThat(loaded.tensor(spec.name())).isEqualTo(rounded.tensor(spec.name())));
        assertThat(rounded.as(Dtype.F32).tensor(EMBEDDING)).isEqualTo(rounded.tensor(EMBEDDING));
    }

    @Test
    void shouldRefuseAValueThatIsNoneOfTheType() {
        Weights weights = Weights.zeros(SHAPE, Dtype.BF16);
        weights.tensor(DOWN).put(5, 0.1f);
        assertThatThrownBy(() -> weights.bytes(DOWN))
                .hasMessage(DOWN + " has 0.1, which is not a bfloat16; round weights before writing them");
        assertThatThrownBy(() -> weights.copyFrom(Weights.zeros(SHAPE)))
                .hasMessage("weights of F32 into weights of BF16");
        assertThatThrownBy(() -> weights.load("model.norm.weight", ByteBuffer.allocate(256)))
                .hasMessage("model.norm.weight takes 128 bytes, not 256");
    }

    @Test
    void shouldThawIntoMemoryThatIsLent() {
        Weights weights = Weights.random(SHAPE, 1).as(Dtype.BF16);
        Gradients lent = new Gradients(SHAPE);
        Weights thawed = new FrozenWeights(weights, "hash").thawedInto(lent.tensors());
        assertThat(thawed.dtype()).isEqualTo(Dtype.BF16);
        for (TensorSpec spec : SHAPE.tensors()) {
            assertThat(thawed.tensor(spec.name())).isEqualTo(weights.tensor(spec.name()));
            assertThat(lent.tensor(spec.name())).isEqualTo(weights.tensor(spec.name()));
        }
        lent.zero();
        assertThat(thawed.tensor(DOWN).get(8)).isZero();
        assertThatThrownBy(() -> new FrozenWeights(weights, "hash")
                        .thawedInto(new TensorSet(SHAPE.tensors().subList(0, 2))))
                .hasMessageStartingWith("the memory is of other tensors: it has 2, and ");
    }

    @Test
    void shouldAddScaleAndMeasureGradients() {
        Gradients gradients = new Gradients(SHAPE);
        gradients.tensor(EMBEDDING).put(0, 3);
        gradients.tensor(DOWN).put(8, 4);
        assertThat(gradients.l2Norm()).isEqualTo(5);
        gradients.scale(0.5f);
        Gradients other = new Gradients(SHAPE);
        other.tensor(EMBEDDING).put(0, 1);
        other.add(gradients);
        assertThat(other.tensor(EMBEDDING).get(0)).isEqualTo(2.5f);
        assertThat(other.tensor(DOWN).get(8)).isEqualTo(2f);
        other.zero();
        assertThat(other.l2Norm()).isZero();
        other.tensor(DOWN).put(0, Float.NaN);
        assertThat(other.l2Norm()).isNaN();
    }

    private static double deviation(FloatBuffer tensor) {
        double sum = 0;
        double squares = 0;
        int count = tensor.remaining();
        while (tensor.hasRemaining()) {
            double value = tensor.get();
            sum += value;
            squares += value * value;
        }
        return Math.sqrt(squares / count - (sum / count) * (sum / count));
    }
}
