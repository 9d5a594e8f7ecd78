package dev.millrace.replay.retrain;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.learner.SyntheticRollouts;
import dev.millrace.learner.step.BatchGradient;
import dev.millrace.policy.weights.Gradients;
import java.util.Optional;
import java.util.OptionalDouble;
import org.junit.jupiter.api.Test;

/** By hand, in the plane of two parameters. */
class VariantGradientTest {
    private static Gradients vector(float x, float y) {
        Gradients gradients = new Gradients(SyntheticRollouts.SHAPE);
        gradients.tensor(gradients.specs().get(0).name()).put(0, x).put(1, y);
        return gradients;
    }

    /** Parts (1, 0) and (0, 1) add up to (1, 1): all of it is noise. Parts (1, 0) and (1, 0): none. */
    @Test
    void shouldTellSignalFromNoiseByTheNormsOfTheParts() {
        BatchGradient apart = new BatchGradient(vector(1, 1), new double[] {1, 1}, 2, OptionalDouble.of(1), 1);
        assertThat(apart.noise()).isCloseTo(2, within(1e-12));
        assertThat(apart.signal()).isCloseTo(0, within(1e-12));
        BatchGradient together = new BatchGradient(vector(2, 0), new double[] {1, 1}, 2, OptionalDouble.of(1), 1);
        assertThat(together.noise()).isCloseTo(0, within(1e-12));
        assertThat(together.signal()).isCloseTo(4, within(1e-12));
        assertThat(new BatchGradient(vector(2, 0), new double[] {2}, 2, OptionalDouble.of(1), 1).noise())
                .as("one alone has no variance")
                .isNaN();
    }

    /** g = (2, 0) without noise, ĝ = (1, 1): ⟨g, ĝ⟩ = 2, ‖g‖² = 4, ‖ĝ‖² = 2. */
    @Test
    void shouldHoldAGradientAgainstTheOnPolicyOneAndTheUpdate() {
        Optional<BatchGradient> reference =
                Optional.of(new BatchGradient(vector(2, 0), new double[] {1, 1}, 2, OptionalDouble.of(1), 1));
        VariantGradient good = StepGradients.figures(
                new BatchGradient(vector(1, 1), new double[] {1, 1}, 2, OptionalDouble.of(0.5), 0.7),
                vector(-3, -3),
                reference);
        assertThat(good.cosineToReference()).isCloseTo(Math.sqrt(0.5), within(1e-9));
        assertThat(good.cosineToUpdate())
                .as("an update goes against the gradient of the loss")
                .isCloseTo(1, within(1e-9));
        assertThat(good.sga().alignment()).isCloseTo(0.5, within(1e-9));
        assertThat(good.sga().progress()).isCloseTo(0.5, within(1e-9));
        assertThat(good.essRatio()).isEqualTo(0.5);
        VariantGradient bad = StepGradients.figures(
                new BatchGradient(vector(-1, 0), new double[] {1}, 2, OptionalDouble.of(1), 1),
                vector(1, 0),
                reference);
        assertThat(bad.sga().progress()).as("the wrong way").isCloseTo(-1, within(1e-9));
        assertThat(bad.sga().alignment()).isCloseTo(-0.5, within(1e-9));
    }

    @Test
    void shouldHoldNothingAgainstAReferenceThatIsNoise() {
        // parts (2, 0) and (-1, 1)
        Optional<BatchGradient> noise = Optional.of(
                new BatchGradient(vector(1, 1), new double[] {2, Math.sqrt(2)}, 2, OptionalDouble.of(1), 1));
        assertThat(noise.get().signal()).isCloseTo(-8, within(1e-9));
        assertThat(StepGradients.figures(
                                new BatchGradient(vector(1, 1), new double[] {1, 1}, 2, OptionalDouble.of(1), 1),
                                vector(1, 0),
                                noise)
                        .sga()
                        .progress())
                .isNaN();
    }
}
