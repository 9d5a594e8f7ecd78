package dev.millrace.corrections.control;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.corrections.control.LengthGuard.Outcome;
import dev.millrace.corrections.control.LengthGuardConfig.Off;
import dev.millrace.corrections.control.LengthGuardConfig.Proportional;
import java.util.Optional;
import org.junit.jupiter.api.Test;

class LengthGuardTest {
    private final LengthGuard guard = new LengthGuard(new Proportional(1.25, 0.75, 0.25));

    @Test
    void shouldLowerTheStepInProportionToTheSurgeAndRememberTheMean() {
        Outcome first = guard.see(100, ControlState.initial());
        assertThat(first.scale()).as("the first batch sets the mean").isEqualTo(1);

        Outcome tolerated = guard.see(125, first.state());
        assertThat(tolerated.scale()).isEqualTo(1);
        assertThat(tolerated.state().get(LengthGuard.MEAN)).hasValue(106.25); // 0.75 * 100 + 0.25 * 125

        Outcome surge = guard.see(250, first.state());
        assertThat(surge.scale()).isCloseTo(0.5, within(1e-15)); // 1.25 * 100 / 250
        assertThat(surge.seen()).contains(new LengthGuard.Seen(250, 100));

        assertThat(guard.see(10_000, first.state()).scale())
                .as("never below the smallest")
                .isEqualTo(0.25);
        assertThat(guard.see(10, first.state()).scale())
                .as("shorter answers are no surge")
                .isEqualTo(1);
    }

    @Test
    void shouldDoAndRememberNothingWhenItIsOff() {
        assertThat(new LengthGuard(new Off()).see(100, ControlState.initial()))
                .isEqualTo(new Outcome(1, Optional.empty(), ControlState.initial()));
    }

    @Test
    void shouldRefuseValuesOutOfRangeByTheirKey() {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> new Proportional(0.9, 0.9, 0.1))
                .withMessage("tolerated must be at least 1 and finite: 0.9");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> new Proportional(2, 1, 0.1))
                .withMessage("decay must be at least 0 and below 1: 1.0");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> new Proportional(2, 0.9, 0))
                .withMessage("smallest_scale must be above 0 and at most 1: 0.0");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> guard.see(0, ControlState.initial()))
                .withMessage("a mean response length must be above 0 and finite: 0.0");
    }
}
