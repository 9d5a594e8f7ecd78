package dev.millrace.policy.weights;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.policy.autodiff.AdamW;
import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.decoder.LoraShape;
import dev.millrace.policy.decoder.Shapes;
import dev.millrace.policy.decoder.TensorSpec;
import java.nio.FloatBuffer;
import java.util.List;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

class LoraAdapterTest {
    private static final DecoderShape SHAPE = Shapes.GROUPED_UNTIED_BIASED;
    private static final LoraShape LORA = new LoraShape(3, 6, List.of("q_proj", "v_proj", "up_proj", "down_proj"));

    @ParameterizedTest
    @EnumSource(Dtype.class)
    void shouldBeginAsTheBaseBitForBit(Dtype dtype) {
        Weights base = Weights.random(SHAPE, 1).as(dtype);
        base.tensor("model.layers.0.self_attn.q_proj.weight").put(5, -0f);
        Weights adapted = begun(base);

        adapted.merge();

        assertThat(adapted.dtype()).isEqualTo(Dtype.F32);
        for (TensorSpec spec : SHAPE.tensors()) {
            assertThat(bits(adapted.tensor(spec.name())))
                    .as(spec.name())
                    .containsExactly(bits(base.tensor(spec.name())));
        }
    }

    /** Kaiming's uniform with a = sqrt(5), as PEFT has it: the bound is 1/sqrt(in). */
    @Test
    void shouldDrawABetweenItsBoundsBySeedAndLeaveBAtZero() {
        FrozenWeights base = new FrozenWeights(Weights.random(SHAPE, 1), "hash");
        LoraAdapter one = LoraAdapter.initial(LORA, base, 7);
        LoraAdapter same = LoraAdapter.initial(LORA, base, 7);
        LoraAdapter other = LoraAdapter.initial(LORA, base, 8);
        for (TensorSpec spec : LORA.tensors(SHAPE)) {
            FloatBuffer values = one.parameters().tensor(spec.name());
            assertThat(bits(values)).containsExactly(bits(same.parameters().tensor(spec.name())));
            if (spec.name().contains("lora_B")) {
                assertThat(bits(values)).containsOnly(0);
                continue;
            }
            assertThat(bits(values)).isNotEqualTo(bits(other.parameters().tensor(spec.name())));
            double bound = 1 / Math.sqrt(spec.dims().get(1));
            double squares = 0;
            for (int i = 0; i < values.limit(); i++) {
                assertThat((double) values.get(i)).isBetween(-bound, bound);
                squares += values.get(i) * (double) values.get(i);
            }
            assertThat(squares / values.limit()).isCloseTo(bound * bound / 3, within(bound * bound / 8));
        }
    }

    @ParameterizedTest
    @EnumSource(Dtype.class)
    void shouldMergeAsTheNaiveTwinDoes(Dtype dtype) {
        Weights base = Weights.random(SHAPE, 1).as(dtype);
        Weights adapted = begun(base);
        fill(adapted, 2);

        adapted.merge();

        for (TensorSpec spec : SHAPE.tensors()) {
            boolean isTarget = LORA.adapted(SHAPE).contains(spec);
            int in = Math.toIntExact(spec.dims().get(spec.dims().size() - 1));
            FloatBuffer found = adapted.tensor(spec.name());
            FloatBuffer before = base.tensor(spec.name());
            for (int i = 0; i < found.limit(); i++) {
                double product = 0;
                for (int k = 0; isTarget && k < LORA.rank(); k++) {
                    product += (double) adapted.trained()
                                    .tensor(LoraShape.b(spec.name()))
                                    .get(i / in * LORA.rank() + k)
                            * adapted.trained().tensor(LoraShape.a(spec.name())).get(k * in + i % in);
                }
                assertThat((double) found.get(i))
                        .as(spec.name())
                        .isCloseTo(before.get(i) + 2 * product, within(isTarget ? 1e-6 : 0));
            }
        }
        Weights again = begun(base);
        fill(again, 2);
        again.merge();
        for (TensorSpec spec : SHAPE.tensors()) {
            assertThat(bits(again.tensor(spec.name()))).containsExactly(bits(adapted.tensor(spec.name())));
        }
    }

    @Test
    void shouldStepTheAdapterAloneAndMergeIt() {
        Weights base = Weights.random(SHAPE, 1).as(Dtype.BF16);
        Weights adapted = begun(base);
        AdamW adam = new AdamW(new AdamW.Config(0.9, 0.999, 1e-8, 0), LORA.tensors(SHAPE));
        Gradients gradients = new Gradients(LORA.tensors(SHAPE));
        for (TensorSpec spec : gradients.specs()) {
            FloatBuffer gradient = gradients.tensor(spec.name());
            while (gradient.hasRemaining()) {
                gradient.put(1f);
            }
        }

        adam.step(adapted, gradients, 1e-3);

        assertThat(adapted.trained().dtype()).isEqualTo(Dtype.BF16);
        assertThat(adam.state().masters()).isPresent();
        String b = "model.layers.0.mlp.up_proj.lora_B.weight";
        assertThat(adapted.trained().tensor(b).get(0)).isEqualTo(Bfloat16.value(Bfloat16.of(-1e-3f)));
        assertThat(adapted.tensor("model.layers.0.mlp.up_proj.weight"))
                .isNotEqualTo(base.tensor("model.layers.0.mlp.up_proj.weight"));
        assertThat(adapted.tensor("model.layers.0.mlp.gate_proj.weight"))
                .isEqualTo(base.tensor("model.layers.0.mlp.gate_proj.weight"));

        Weights copy = adapted.copy();
        adam.step(adapted, gradients, 1e-3);
        assertThat(copy.trained().tensor(b)).isNotEqualTo(adapted.trained().tensor(b));
        copy.copyFrom(adapted);
        assertThat(copy.trained().tensor(b)).isEqualTo(adapted.trained().tensor(b));
        assertThat(copy.tensor("model.layers.0.mlp.up_proj.weight"))
                .isEqualTo(adapted.tensor("model.layers.0.mlp.up_proj.weight"));
    }

    @Test
    void shouldRefuseWhatItIsNotPutUpon() {
        Weights base = Weights.random(SHAPE, 1);
        Weights adapted = begun(base);
        assertThatThrownBy(() -> new FrozenWeights(adapted, "other"))
                .hasMessage("an adapter needs plain weights, and these already have one");
        assertThatThrownBy(() -> base.copyFrom(adapted))
                .hasMessage("weights with an adapter and weights without one are no copies of each other");
        LoraAdapter foreign = LoraAdapter.zeros(
                new LoraShape(1, 1, List.of("q_proj")), new FrozenWeights(Weights.random(Shapes.TIED, 1), "hash"));
        assertThatThrownBy(() -> base.with(foreign)).hasMessageStartingWith("the adapter belongs to plain weights of");
    }

    private static Weights begun(Weights base) {
        return base.copy().with(LoraAdapter.initial(LORA, new FrozenWeights(base, "hash"), 3));
    }

    private static void fill(Weights adapted, long seed) {
        SplittableRandom random = new SplittableRandom(seed);
        for (TensorSpec spec : adapted.trained().specs()) {
            FloatBuffer values = adapted.trained().tensor(spec.name());
            for (int i = 0; i < values.limit(); i++) {
                values.put(i, Bfloat16.value(Bfloat16.of((float) random.nextDouble(-0.3, 0.3))));
            }
        }
    }

    private static int[] bits(FloatBuffer values) {
        int[] bits = new int[values.limit()];
        for (int i = 0; i < bits.length; i++) {
            bits[i] = Float.floatToRawIntBits(values.get(i));
        }
        return bits;
    }
}
