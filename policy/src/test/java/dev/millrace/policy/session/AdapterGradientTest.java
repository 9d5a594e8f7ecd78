package dev.millrace.policy.session;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.decoder.LayerGradient.Activations;
import dev.millrace.policy.decoder.LoraShape;
import dev.millrace.policy.decoder.NaiveDecoder;
import dev.millrace.policy.decoder.Shapes;
import dev.millrace.policy.decoder.TensorSpec;
import dev.millrace.policy.weights.FrozenWeights;
import dev.millrace.policy.weights.Gradients;
import dev.millrace.policy.weights.LoraAdapter;
import dev.millrace.policy.weights.Weights;
import java.nio.FloatBuffer;
import java.util.List;
import java.util.Optional;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.FieldSource;

class AdapterGradientTest {
    static final List<DecoderShape> SHAPES = Shapes.VARIED;
    private static final LoraShape LORA = new LoraShape(2, 3, LoraShape.MODULES);
    private static final LogitsMemory FOUR_ROWS = new LogitsMemory(1);
    private static final int[] LENGTHS = {6, 2, 9, 1, 13, 6};
    private static final float[] TEMPERATURES = RaggedBatches.temperatures(3, LENGTHS.length);

    @ParameterizedTest
    @FieldSource("SHAPES")
    void shouldAgreeWithFiniteDifferencesOfTheNaiveTwin(DecoderShape shape) {
        SequenceBatch batch = RaggedBatches.random(shape, 2, LENGTHS);
        requireFiniteDifferences(shape, batch, 20, LogitsMemory.DEFAULT);
        requireFiniteDifferences(shape, batch, 100, FOUR_ROWS);
        requireFiniteDifferences(shape, RaggedBatches.cut(shape, 7, batch), 100, FOUR_ROWS);
    }

    /** A direction of A or B is one of W: that of the product. */
    private static void requireFiniteDifferences(
            DecoderShape shape, SequenceBatch batch, int budget, LogitsMemory logits) {
        Weights weights = adapted(shape, LORA);
        float[] c = GradientSessionTest.coefficients(4, batch);
        float[] e = GradientSessionTest.coefficients(5, batch);
        Gradients gradients = gradients(weights, batch, budget, logits);
        NaiveDecoder twin = new NaiveDecoder(weights);
        SplittableRandom random = new SplittableRandom(6);
        for (TensorSpec target : LORA.adapted(shape)) {
            double[] tensor = twin.tensor(target.name());
            for (String factor : List.of(LoraShape.a(target.name()), LoraShape.b(target.name()))) {
                float[] gradient = gradients.values(factor);
                double[] direction = random.doubles(gradient.length, -1, 1).toArray();
                double claimed = 0;
                double scale = 0;
                for (int i = 0; i < gradient.length; i++) {
                    claimed += gradient[i] * direction[i];
                    scale += gradient[i] * gradient[i];
                }
                boolean isA = factor.contains("lora_A");
                double[] ofProduct = product(weights, target, isA ? direction : null, isA ? null : direction);
                double step = 1e-5;
                double up = GradientSessionTest.nudged(
                        tensor, ofProduct, step, () -> GradientSessionTest.objective(twin, batch, TEMPERATURES, c, e));
                double down = GradientSessionTest.nudged(
                        tensor, ofProduct, -step, () -> GradientSessionTest.objective(twin, batch, TEMPERATURES, c, e));
                assertThat(Math.sqrt(scale)).as(factor).isGreaterThan(1e-4);
                assertThat(claimed)
                        .as(factor)
                        .isCloseTo((up - down) / (2 * step), within(2e-5 * (1 + Math.sqrt(scale))));
            }
        }
    }

    @Test
    void shouldBeTheWholeGradientProjected() {
        DecoderShape shape = Shapes.ALL_TRAITS;
        LoraShape lora = new LoraShape(3, 5, List.of("v_proj", "o_proj", "gate_proj"));
        SequenceBatch batch = RaggedBatches.random(shape, 2, LENGTHS);
        Weights weights = adapted(shape, lora);
        Gradients found = gradients(weights, batch, 64, LogitsMemory.DEFAULT);
        Gradients whole = new Gradients(shape);
        try (GradientSession session = new GradientSession(Engine.cpu(), shape, 64)) {
            session.accumulate(
                    weights.as(weights.dtype()),
                    batch,
                    TEMPERATURES,
                    GradientSessionTest.coefficients(4, batch),
                    GradientSessionTest.coefficients(5, batch),
                    whole);
        }
        assertThat(found.specs()).isEqualTo(lora.tensors(shape));
        for (TensorSpec target : lora.adapted(shape)) {
            float[] dW = whole.values(target.name());
            int out = Math.toIntExact(target.dims().get(0));
            int in = Math.toIntExact(target.dims().get(1));
            FloatBuffer a = weights.trained().tensor(LoraShape.a(target.name()));
            FloatBuffer b = weights.trained().tensor(LoraShape.b(target.name()));
            double[] dA = new double[3 * in];
            double[] dB = new double[out * 3];
            for (int o = 0; o < out; o++) {
                for (int i = 0; i < in; i++) {
                    for (int k = 0; k < 3; k++) {
                        dA[k * in + i] += lora.scale() * (double) b.get(o * 3 + k) * dW[o * in + i];
                        dB[o * 3 + k] += lora.scale() * (double) dW[o * in + i] * a.get(k * in + i);
                    }
                }
            }
            requireClose(found.values(LoraShape.a(target.name())), dA);
            requireClose(found.values(LoraShape.b(target.name())), dB);
        }
        Gradients onDevice =
                gradients(Engine.cpuAsDevice(), weights, batch, 64, LogitsMemory.DEFAULT, Activations.KEPT);
        found.specs()
                .forEach(spec -> assertThat(onDevice.values(spec.name()))
                        .containsExactly(found.values(spec.name()), within(1e-5f)));
        Gradients recomputed =
                gradients(Engine.cpu(), weights, batch, 64, LogitsMemory.DEFAULT, Activations.RECOMPUTED);
        found.specs()
                .forEach(spec -> assertThat(recomputed.values(spec.name()))
                        .containsExactly(found.values(spec.name()), within(1e-6f)));
        Gradients again = gradients(weights, batch, 64, LogitsMemory.DEFAULT);
        found.specs().forEach(spec -> assertThat(again.values(spec.name())).containsExactly(found.values(spec.name())));
    }

    @Test
    void shouldRefuseWeightsWithoutTheAdapterItDifferentiatesBy() {
        DecoderShape shape = Shapes.TIED;
        SequenceBatch batch = RaggedBatches.random(shape, 2, 3);
        float[] none = new float[batch.scoredCount()];
        try (GradientSession session = new GradientSession(
                Engine.cpu(),
                shape,
                Optional.of(LORA),
                MicrobatchLimit.ofTokens(20),
                LogitsMemory.DEFAULT,
                Activations.KEPT)) {
            assertThatThrownBy(() -> session.accumulate(
                            Weights.random(shape, 1),
                            batch,
                            new float[] {1},
                            none,
                            none,
                            new Gradients(LORA.tensors(shape))))
                    .hasMessageStartingWith(
                            "the weights have no adapter, and differentiated is by one of LoraShape[rank=2");
        }
    }

    private static void requireClose(float[] found, double[] expected) {
        assertThat(found).hasSize(expected.length);
        for (int i = 0; i < found.length; i++) {
            assertThat((double) found[i]).isCloseTo(expected[i], within(1e-5 * (1 + Math.abs(expected[i]))));
        }
    }

    private static Gradients gradients(Weights weights, SequenceBatch batch, int budget, LogitsMemory logits) {
        return gradients(Engine.cpu(), weights, batch, budget, logits, Activations.KEPT);
    }

    private static Gradients gradients(
            Engine engine,
            Weights weights,
            SequenceBatch batch,
            int budget,
            LogitsMemory logits,
            Activations activations) {
        LoraShape lora = weights.adapter().orElseThrow().shape();
        Gradients gradients = new Gradients(lora.tensors(weights.shape()));
        try (GradientSession session = new GradientSession(
                engine, weights.shape(), Optional.of(lora), MicrobatchLimit.ofTokens(budget), logits, activations)) {
            session.accumulate(
                    weights,
                    batch,
                    TEMPERATURES,
                    GradientSessionTest.coefficients(4, batch),
                    GradientSessionTest.coefficients(5, batch),
                    gradients);
        }
        return gradients;
    }

    /** With A and B random, so that neither gradient is zero. */
    private static Weights adapted(DecoderShape shape, LoraShape lora) {
        Weights base = RaggedBatches.weights(shape, 1);
        Weights weights = base.copy().with(LoraAdapter.zeros(lora, new FrozenWeights(base, "hash")));
        SplittableRandom random = new SplittableRandom(9);
        for (TensorSpec spec : weights.trained().specs()) {
            FloatBuffer values = weights.trained().tensor(spec.name());
            while (values.hasRemaining()) {
                values.put((float) random.nextDouble(-0.3, 0.3));
            }
        }
        weights.merge();
        return weights;
    }

    /** scale * B A, with a direction in the place of A or of B. */
    private static double[] product(Weights weights, TensorSpec target, double[] ofA, double[] ofB) {
        LoraShape lora = weights.adapter().orElseThrow().shape();
        int out = Math.toIntExact(target.dims().get(0));
        int in = Math.toIntExact(target.dims().get(1));
        double[] a = ofA == null ? values(weights, LoraShape.a(target.name())) : ofA;
        double[] b = ofB == null ? values(weights, LoraShape.b(target.name())) : ofB;
        double[] product = new double[out * in];
        for (int o = 0; o < out; o++) {
            for (int i = 0; i < in; i++) {
                for (int k = 0; k < lora.rank(); k++) {
                    product[o * in + i] += lora.scale() * b[o * lora.rank() + k] * a[k * in + i];
                }
            }
        }
        return product;
    }

    private static double[] values(Weights weights, String name) {
        FloatBuffer values = weights.trained().tensor(name);
        double[] found = new double[values.limit()];
        for (int i = 0; i < found.length; i++) {
            found[i] = values.get(i);
        }
        return found;
    }
}
