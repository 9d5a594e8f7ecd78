package dev.millrace.replay.retrain;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.millrace.replay.retrain.Rescoring.Proximal;
import org.junit.jupiter.api.Test;

class RescoringTest {
    @Test
    void shouldReadWhatIsComputedAgain() {
        assertThat(Rescoring.parse("own")).isEqualTo(new Rescoring(true, new Proximal.Kept()));
        assertThat(Rescoring.parse("own,recorded")).isEqualTo(new Rescoring(true, new Proximal.Recorded()));
        assertThat(Rescoring.parse("at-step")).isEqualTo(new Rescoring(false, new Proximal.AtStep()));
        assertThat(Rescoring.parse("12,own")).isEqualTo(new Rescoring(true, new Proximal.Fixed(12)));
        assertThat(Rescoring.parse("12,own")).hasToString("own,version 12");
    }

    @Test
    void shouldRefuseWhatSaysNothingOrTwoThings() {
        for (String text : new String[] {"", "newest", "-1", "own,", "1.5"}) {
            assertThatThrownBy(() -> Rescoring.parse(text))
                    .as(text)
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessageContaining("'" + text + "' names no recomputation")
                    .hasMessageContaining("at-step");
        }
        for (String text : new String[] {"own,own", "3,4", "recorded,at-step"}) {
            assertThatThrownBy(() -> Rescoring.parse(text))
                    .as(text)
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessageContaining("names a recomputation twice");
        }
    }

    @Test
    void shouldTellSameBitsFromOthers() {
        float[] recorded = {-1f, -0f, Float.NaN, -2f};
        assertThat(Agreement.of(recorded, recorded.clone(), 0, 4)).isEqualTo(new Agreement(1, 0, 0, 1));
        assertThat(Agreement.of(recorded, new float[] {-1f, -0f, Float.NaN, -2.5f}, 0, 4))
                .isEqualTo(new Agreement(0, 1, 0.5, 1));
        assertThat(Agreement.of(recorded, new float[] {-1f, -0f, Float.NaN, -2.5f}, 0, 3)
                        .plus(Agreement.incomparable()))
                .isEqualTo(new Agreement(1, 0, 0, 2));
    }
}
