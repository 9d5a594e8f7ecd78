package dev.millrace.policy.autodiff;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.decoder.Shapes;
import dev.millrace.policy.decoder.TensorSpec;
import dev.millrace.policy.weights.Dtype;
import dev.millrace.policy.weights.Gradients;
import dev.millrace.policy.weights.TensorSet;
import dev.millrace.policy.weights.Weights;
import java.nio.FloatBuffer;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;

class AdamWTest {
    private static final DecoderShape SHAPE = Shapes.TIED;
    private static final String MATRIX = "model.layers.0.mlp.up_proj.weight";
    private static final String NORM = "model.norm.weight";

    @Test
    void shouldTakeTheStepsWorkedOutByHand() {
        // b1 = 0.5, b2 = 0.75, eps = 0.1, lr = 0.2, wd = 0.5; w = 1, gradients 2 then -1
        // t=1: m = 1, v = 1; m/(1-.5) = 2, v/(1-.75) = 4; w = 1 - .2*.5*1 - .2*2/(2+.1) = 0.9 - 0.190476 = 0.709524
        // t=2: m = .5*1+.5*-1 = 0, v = .75*1+.25*1 = 1; w = 0.709524*(1-.1) - 0 = 0.638571
        // t=3 with gradient 1: m = .5, v = 1; m/(1-.125) = .571429, v/(1-.421875) = 1.729730, root 1.315192
        //      w = 0.638571*.9 - .2*.571429/1.415192 = 0.574714 - 0.080756 = 0.493958
        AdamW adam = new AdamW(new AdamW.Config(0.5, 0.75, 0.1, 0.5), SHAPE);
        Weights weights = Weights.zeros(SHAPE);
        weights.tensor(MATRIX).put(7, 1f);
        weights.tensor(NORM).put(2, 1f);
        Gradients gradients = new Gradients(SHAPE);

        step(adam, weights, gradients, 2f);
        assertThat(weights.tensor(MATRIX).get(7)).isCloseTo(0.709524f, within(1e-6f));
        assertThat(weights.tensor(NORM).get(2)).as("norms are not decayed").isCloseTo(0.809524f, within(1e-6f));
        step(adam, weights, gradients, -1f);
        assertThat(weights.tensor(MATRIX).get(7)).isCloseTo(0.638571f, within(1e-6f));
        step(adam, weights, gradients, 1f);
        assertThat(weights.tensor(MATRIX).get(7)).isCloseTo(0.493958f, within(1e-6f));
        assertThat(weights.tensor(MATRIX).get(8))
                .as("no gradient, no weight: nothing to do")
                .isZero();
        assertThat(adam.state().steps()).isEqualTo(3);
        assertThat(adam.state().first().tensor(MATRIX).get(7)).isEqualTo(0.5f);
        assertThat(adam.state().second().tensor(MATRIX).get(7)).isEqualTo(1f);
    }

    @Test
    void shouldGoOnFromARestoredStateBitForBit() {
        AdamW.Config config = new AdamW.Config(0.9, 0.999, 1e-5, 0.01);
        AdamW straight = new AdamW(config, SHAPE);
        Weights weights = Weights.random(SHAPE, 1);
        for (int step = 0; step < 3; step++) {
            straight.step(weights, random(step), 1e-2);
        }
        Weights resumedWeights = weights.copy();
        TensorSet first = new TensorSet(SHAPE.tensors());
        TensorSet second = new TensorSet(SHAPE.tensors());
        for (TensorSpec spec : SHAPE.tensors()) { // as bytes, the way a state travels
            first.load(spec.name(), straight.state().first().bytes(spec.name()));
            second.load(spec.name(), straight.state().second().bytes(spec.name()));
        }
        AdamW resumed = new AdamW(config, SHAPE);
        resumed.restore(new AdamW.State(3, first, second));
        for (int step = 3; step < 6; step++) {
            straight.step(weights, random(step), 1e-2);
            resumed.step(resumedWeights, random(step), 1e-2);
        }
        for (TensorSpec spec : SHAPE.tensors()) {
            assertThat(resumedWeights.bytes(spec.name())).isEqualTo(weights.bytes(spec.name()));
            assertThat(resumed.state().second().bytes(spec.name()))
                    .isEqualTo(straight.state().second().bytes(spec.name()));
        }
    }

    /** Steps that are too small to move a bfloat16 add up in the masters. */
    @Test
    void shouldStepFromMastersAndRoundTheWeightsToTheirType() {
        AdamW.Config config = new AdamW.Config(0.9, 0.999, 1e-8, 0.01);
        AdamW adam = new AdamW(config, SHAPE);
        Weights weights = Weights.random(SHAPE, 1).as(Dtype.BF16);
        AdamW twin = new AdamW(config, SHAPE);
        Weights exact = weights.as(Dtype.F32);
        Gradients gradients = random(2);
        assertThat(adam.state().masters()).isEmpty();

        for (int step = 0; step < 30; step++) {
            adam.step(weights, gradients, 1e-5);
            twin.step(exact, gradients, 1e-5);
        }

        for (TensorSpec spec : SHAPE.tensors()) {
            assertThat(adam.state().masters().orElseThrow().tensor(spec.name())).isEqualTo(exact.tensor(spec.name()));
            assertThat(weights.tensor(spec.name()))
                    .isEqualTo(exact.as(Dtype.BF16).tensor(spec.name()));
        }

        AdamW restored = new AdamW(config, SHAPE);
        restored.restore(adam.state());
        Weights again = weights.copy();
        restored.step(again, gradients, 1e-5);
        adam.step(weights, gradients, 1e-5);
        for (TensorSpec spec : SHAPE.tensors()) {
            assertThat(again.tensor(spec.name())).isEqualTo(weights.tensor(spec.name()));
        }
        assertThat(twin.state().masters()).isEmpty();
        AdamW foreign = new AdamW(config, SHAPE);
        foreign.restore(twin.state());
        assertThatThrownBy(() -> foreign.step(weights, gradients, 1e-5))
                .hasMessageStartingWith("after 30 steps the optimiser's state has no masters of the BF16 weights");
    }

    @Test
    void shouldAgreeWithANaiveTwinInDoublePrecision() {
        AdamW adam = new AdamW(new AdamW.Config(0.9, 0.99, 1e-6, 0.1), SHAPE);
        Weights weights = Weights.random(SHAPE, 1);
        FloatBuffer start = weights.copy().tensor(MATRIX);
        double[] w = new double[start.limit()];
        double[] m = new double[w.length];
        double[] v = new double[w.length];
        for (int i = 0; i < w.length; i++) {
            w[i] = start.get(i);
        }
        for (int t = 1; t <= 20; t++) {
            Gradients gradients = random(t);
            adam.step(weights, gradients, 3e-3);
            for (int i = 0; i < w.length; i++) {
                double g = gradients.tensor(MATRIX).get(i);
                m[i] = 0.9 * m[i] + 0.1 * g;
                v[i] = 0.99 * v[i] + 0.01 * g * g;
                double mHat = m[i] / (1 - Math.pow(0.9, t));
                double vHat = v[i] / (1 - Math.pow(0.99, t));
                w[i] = w[i] - 3e-3 * 0.1 * w[i] - 3e-3 * mHat / (Math.sqrt(vHat) + 1e-6);
            }
        }
        for (int i = 0; i < w.length; i++) {
            assertThat((double) weights.tensor(MATRIX).get(i)).isCloseTo(w[i], within(1e-6));
        }
    }

    @Test
    void shouldRefuseAGradientThatIsNotFiniteAndChangeNothing() {
        AdamW adam = new AdamW(new AdamW.Config(0.9, 0.999, 1e-8, 0), SHAPE);
        Weights weights = Weights.random(SHAPE, 1);
        Weights before = weights.copy();
        Gradients gradients = random(1);
        gradients.tensor(NORM).put(3, Float.NaN);
        assertThatThrownBy(() -> adam.step(weights, gradients, 1e-3))
                .hasMessage("the gradient of model.norm.weight must be finite: NaN at element 3");
        for (TensorSpec spec : SHAPE.tensors()) {
            assertThat(weights.bytes(spec.name())).isEqualTo(before.bytes(spec.name()));
        }
        assertThat(adam.state().steps()).isZero();
    }

    @Test
    void shouldRefuseSettingsOutsideTheirBounds() {
        assertThatThrownBy(() -> new AdamW.Config(1, 0.9, 1e-8, 0))
                .hasMessage("beta1 must be at least 0 and below 1: beta1=1.0");
        assertThatThrownBy(() -> new AdamW.Config(0.9, Double.NaN, 1e-8, 0))
                .hasMessage("beta2 must be at least 0 and below 1: beta2=NaN");
        assertThatThrownBy(() -> new AdamW.Config(0.9, 0.9, 0, 0))
                .hasMessage("epsilon must be finite and above 0: epsilon=0.0");
        assertThatThrownBy(() -> new AdamW.Config(0.9, 0.9, 1e-8, -1))
                .hasMessage("weightDecay must be finite and at least 0: weightDecay=-1.0");
        AdamW adam = new AdamW(new AdamW.Config(0.9, 0.9, 1e-8, 0), SHAPE);
        assertThatThrownBy(() -> adam.step(Weights.zeros(SHAPE), new Gradients(SHAPE), Double.NaN))
                .hasMessage("learningRate must be finite and at least 0: learningRate=NaN");
    }

    private static void step(AdamW adam, Weights weights, Gradients gradients, float value) {
        gradients.zero();
        gradients.tensor(MATRIX).put(7, value);
        gradients.tensor(NORM).put(2, value);
        adam.step(weights, gradients, 0.2);
    }

    private static Gradients random(long seed) {
        SplittableRandom random = new SplittableRandom(seed);
        Gradients gradients = new Gradients(SHAPE);
        for (TensorSpec spec : SHAPE.tensors()) {
            FloatBuffer tensor = gradients.tensor(spec.name());
            while (tensor.hasRemaining()) {
                tensor.put((float) random.nextDouble(-1, 1));
            }
        }
        return gradients;
    }
}
