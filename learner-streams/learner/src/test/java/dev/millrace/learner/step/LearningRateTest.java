package dev.millrace.learner.step;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.within;

import org.junit.jupiter.api.Test;

class LearningRateTest {

    @Test
    void shouldRiseLinearlyAndStay() {
        OptimizerConfig rate = rate(2.0, 4, new DecayConfig.Constant());

        assertThat(rate.rateAt(0)).isEqualTo(0.5);
        assertThat(rate.rateAt(2)).isEqualTo(1.5);
        assertThat(rate.rateAt(3)).isEqualTo(2.0);
        assertThat(rate.rateAt(1_000_000)).isEqualTo(2.0);
    }

    @Test
    void shouldFallInAStraightLineAfterWarmUp() {
        OptimizerConfig rate = rate(2.0, 4, new DecayConfig.Linear(8));

        assertThat(rate.rateAt(3)).isEqualTo(2.0);
        assertThat(rate.rateAt(5)).isEqualTo(1.5); // one of four steps done
        assertThat(rate.rateAt(8)).isZero();
        assertThat(rate.rateAt(9)).isZero();
    }

    @Test
    void shouldFallAsHalfACosine() {
        OptimizerConfig rate = rate(2.0, 0, new DecayConfig.Cosine(4));

        assertThat(rate.rateAt(0)).isEqualTo(2.0);
        assertThat(rate.rateAt(1)).isCloseTo(1 + Math.sqrt(0.5), within(1e-12)); // 1 + cos(45 degrees)
        assertThat(rate.rateAt(2)).isCloseTo(1.0, within(1e-12));
        assertThat(rate.rateAt(4)).isCloseTo(0.0, within(1e-12));
    }

    @Test
    void shouldRefuseADecayThatEndsBeforeWarmUp() {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> rate(1, 4, new DecayConfig.Linear(4)))
                .withMessage("decay.steps must be above warm_up_steps=4: 4");
    }

    @Test
    void shouldRefuseValuesOutOfRangeByTheirKey() {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> rate(Double.NaN, 0, new DecayConfig.Constant()))
                .withMessage("learning_rate must be at least 0 and finite: NaN");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> rate(1, -1, new DecayConfig.Constant()))
                .withMessage("warm_up_steps must be at least 0: -1");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> new OptimizerConfig(1, 0, new DecayConfig.Constant(), 0.9, 1.0, 1e-8, 0, 1))
                .withMessage("beta2 must be at least 0 and below 1: 1.0");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> new OptimizerConfig(1, 0, new DecayConfig.Constant(), 0.9, 0.9, 0, 0, 1))
                .withMessage("epsilon must be above 0 and finite: 0.0");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> new OptimizerConfig(
                        1, 0, new DecayConfig.Constant(), 0.9, 0.9, 1e-8, 0, Double.POSITIVE_INFINITY))
                .withMessage("max_grad_norm must be at least 0 and finite: Infinity");
    }

    private static OptimizerConfig rate(double learningRate, int warmUp, DecayConfig decay) {
        return new OptimizerConfig(learningRate, warmUp, decay, 0.9, 0.999, 1e-8, 0, 1);
    }
}
