package dev.millrace.corrections.advantage;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.corrections.TokenBatch;
import org.junit.jupiter.api.Test;

class GrpoTest {
    /** Groups 0: sequences 0, 2, 3; group 1: sequence 1 alone. */
    private final TokenBatch batch =
            new TokenBatch(new int[] {0, 2, 3, 4, 5}, new byte[] {1, 0, 1, 1, 0}, new int[] {0, 1, 0, 0});

    @Test
    void shouldCentreEachGroupAndDivideByItsSampleDeviation() {
        double[] rewards = {1, 5, 2, 3}; // group 0: mean 2, sample deviation 1

        assertThat(Grpo.withoutStandardDeviation().perSequence(batch, rewards)).containsExactly(-1, 5, 0, 1);
        assertThat(Grpo.withStandardDeviation().perSequence(batch, rewards))
                .containsExactly(new double[] {-1 / 1.000001, 5 / 1.000001, 0, 1 / 1.000001}, within(1e-15));
    }

    @Test
    void shouldGiveNoAdvantageWhereAllRewardsAgree() {
        assertThat(Grpo.withStandardDeviation().perSequence(batch, new double[] {0.1, 0, 0.1, 0.1}))
                .containsExactly(new double[] {0, 0, 0, 0}, within(1e-9));
    }

    @Test
    void shouldSpreadOverTrainedTokensOnly() {
        assertThat(TokenAdvantages.spread(batch, new double[] {1, 2, 3, 4})).containsExactly(1, 0, 2, 3, 0);
    }

    @Test
    void shouldNameTheSequenceOfANonFiniteReward() {
        assertThatThrownBy(() -> Grpo.withStandardDeviation().perSequence(batch, new double[] {1, 2, Double.NaN, 4}))
                .hasMessageContaining("rewards must be finite: sequence=2, value=NaN");
        assertThatThrownBy(() -> Grpo.withStandardDeviation().perSequence(batch, new double[3]))
                .hasMessageContaining("length=3, sequences=4");
    }
}
