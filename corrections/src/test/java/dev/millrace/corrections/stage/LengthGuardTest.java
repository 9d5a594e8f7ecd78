package dev.millrace.corrections.stage;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import dev.millrace.corrections.stage.LengthGuard.Outcome;
import dev.millrace.corrections.stage.LengthGuard.Seen;
import dev.millrace.corrections.stage.LengthGuardConfig.Off;
import dev.millrace.corrections.stage.LengthGuardConfig.Surge;
import java.util.Optional;
import java.util.OptionalDouble;
import org.junit.jupiter.api.Test;

class LengthGuardTest {
    private final LengthGuard guard = new LengthGuard(Surge.defaults());

    /** Returns the state after {@code steps} batches of these lengths; the last length repeats. */
    private ControlState after(int steps, double... lengths) {
        ControlState state = ControlState.initial();
        for (int i = 0; i < steps; i++) {
            state = guard.see(lengths[Math.min(i, lengths.length - 1)], state).state();
        }
        return state;
    }

    @Test
    void shouldHalveTheStepAboveAFifthInAHundredStepsAndNotAtAFifth() {
        ControlState hundred = after(100, 100);

        assertThat(guard.see(120, hundred).scale()).isEqualTo(1); // 120 / 100 is not above 1.2
        assertThat(guard.see(120.0001, hundred).scale()).isEqualTo(0.5);
        assertThat(guard.see(120.0001, hundred).seen()).contains(new Seen(120.0001, OptionalDouble.of(100), 100));
        assertThat(guard.see(10, hundred).scale())
                .as("shorter answers are no surge")
                .isEqualTo(1);
    }

    @Test
    void shouldCompareNothingBeforeThereAreAHundredSteps() {
        Outcome early = guard.see(1000, after(99, 100));

        assertThat(early.scale()).isEqualTo(1);
        assertThat(early.seen()).contains(new Seen(1000, OptionalDouble.empty(), 99));
        assertThat(guard.see(1000, early.state()).scale()).isEqualTo(0.5);
    }

    @Test
    void shouldSeeASlowSurgeThatNoTenStepsShow() {
        ControlState state = ControlState.initial();
        double length = 100;
        for (int i = 0; i < 100; i++, length *= 1.002) { // 2 % in ten steps, 22.1 % in a hundred
            state = guard.see(length, state).state();
        }

        assertThat(guard.see(length, state).scale()).isEqualTo(0.5);
    }

    @Test
    void shouldLookBackAHundredStepsFromEveryStep() {
        ControlState state = after(250, 50, 100); // step 0 was 50, all others 100

        assertThat(guard.see(119, state).seen()).contains(new Seen(119, OptionalDouble.of(100), 100));
        for (int i = 0; i < 100; i++) {
            state = guard.see(200, state).state();
        }
        Outcome used = guard.see(210, state);
        assertThat(used.scale())
                .as("long answers are the measure after a hundred steps of them")
                .isEqualTo(1);
        assertThat(used.seen()).contains(new Seen(210, OptionalDouble.of(200), 100));
    }

    @Test
    void shouldForgetWhatWasRememberedForAnotherNumberOfSteps() {
        ControlState hundred = after(100, 100).with("r2vpo.multiplier", 2);
        Outcome other = new LengthGuard(new Surge(1.2, 7, 0.5)).see(500, hundred);

        assertThat(other.scale()).isEqualTo(1);
        assertThat(other.seen()).contains(new Seen(500, OptionalDouble.empty(), 0));
        assertThat(other.state().values())
                .containsOnlyKeys(
                        "length_guard.remembered", "length_guard.steps", "length_guard.tokens.0", "r2vpo.multiplier");
    }

    @Test
    void shouldDoAndRememberNothingWhenItIsOff() {
        assertThat(new LengthGuard(new Off()).see(100, ControlState.initial()))
                .isEqualTo(new Outcome(1, Optional.empty(), ControlState.initial()));
    }

    @Test
    void shouldRefuseValuesOutOfRangeByTheirKey() {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> new Surge(0.9, 100, 0.5))
                .withMessage("growth must be at least 1 and finite: 0.9");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> new Surge(1.2, 0, 0.5))
                .withMessageStartingWith("steps must be 1 to 1000");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> new Surge(1.2, 100, 1))
                .withMessage("scale must be above 0 and below 1: 1.0");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> guard.see(0, ControlState.initial()))
                .withMessage("a mean response length must be above 0 and finite: 0.0");
    }
}
