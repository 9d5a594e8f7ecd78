package dev.millrace.corrections.objective;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import java.util.Arrays;
import java.util.Random;
import org.junit.jupiter.api.Test;

class QueryMultipliersTest {
    private final QueryMultipliers multipliers = new QueryMultipliers(0.05, 1e-3);

    @Test
    void shouldSolveTwoAnswersByHand() {
        // ratios 1 + x and 1 - x with KL ((1 + x) log(1 + x) + (1 - x) log(1 - x)) / 2 = budget, here for x = 0.5
        double budget = (1.5 * Math.log(1.5) + 0.5 * Math.log(0.5)) / 2;
        QueryTrustRegion region = new QueryMultipliers(budget, 1e-6).solve(new double[] {1, 0});

        assertThat(Math.exp(target(region, 1))).isCloseTo(1.5, within(1e-9));
        assertThat(Math.exp(target(region, 0))).isCloseTo(0.5, within(1e-9));
        assertThat(region.multiplier()).isCloseTo(1 / Math.log(3), within(1e-9));
        assertThat(region.kl()).isCloseTo(budget, within(1e-12));
        assertThat(region.binds()).isTrue();
    }

    @Test
    void shouldSpendTheBudgetAndKeepTheMeanRatioOne() {
        Random random = new Random(4);
        for (int round = 0; round < 200; round++) {
            double[] advantages =
                    random.doubles(2 + random.nextInt(10)).map(u -> 6 * u - 3).toArray();
            QueryTrustRegion region = multipliers.solve(advantages);
            double[] ratios = Arrays.stream(advantages)
                    .map(a -> Math.exp(target(region, a)))
                    .toArray();

            assertThat(Arrays.stream(ratios).average().orElseThrow()).isCloseTo(1, within(1e-9));
            assertThat(Arrays.stream(ratios).map(r -> r * Math.log(r)).average().orElseThrow())
                    .isCloseTo(0.05, within(1e-9));
            for (double advantage : advantages) {
                assertThat(region.coefficient(advantage, target(region, advantage)))
                        .isCloseTo(0, within(1e-9));
                assertThat(region.coefficient(advantage, target(region, advantage) + 0.1))
                        .isNegative();
                assertThat(region.coefficient(advantage, target(region, advantage) - 0.1))
                        .isPositive();
            }
        }
    }

    @Test
    void shouldScaleWithAdvantagesAndIgnoreTheirOffset() {
        QueryTrustRegion region = multipliers.solve(new double[] {1, 0, -2});
        QueryTrustRegion tenfold = multipliers.solve(new double[] {10, 0, -20});
        QueryTrustRegion shifted = multipliers.solve(new double[] {101, 100, 98});

        assertThat(tenfold.multiplier()).isCloseTo(10 * region.multiplier(), within(1e-6));
        assertThat(shifted.multiplier()).isCloseTo(region.multiplier(), within(1e-9));
        assertThat(target(shifted, 101)).isCloseTo(target(region, 1), within(1e-9));
    }

    @Test
    void shouldGetALargerMultiplierFromATighterBudget() {
        double previous = 0;
        for (double budget : new double[] {0.5, 0.1, 0.01, 1e-4}) {
            double multiplier = new QueryMultipliers(budget, 1e-6)
                    .solve(new double[] {1, 0, -1})
                    .multiplier();
            assertThat(multiplier).isGreaterThan(previous);
            previous = multiplier;
        }
    }

    @Test
    void shouldNotBindWhereThereIsNothingToChooseOrTheBudgetSuffices() {
        QueryTrustRegion equal = multipliers.solve(new double[] {2, 2, 2});
        assertThat(equal.binds()).isFalse();
        assertThat(target(equal, 2)).isCloseTo(0, within(1e-9));
        assertThat(multipliers.solve(new double[] {-1}).binds()).isFalse();

        QueryTrustRegion free = new QueryMultipliers(10, 1e-3).solve(new double[] {1, 0});
        assertThat(free.binds()).isFalse();
        assertThat(free.kl()).isCloseTo(Math.log(2), within(1e-9));
    }

    @Test
    void shouldRefuseWhatHasNoSolution() {
        assertThatThrownBy(() -> new QueryMultipliers(0, 1)).hasMessageContaining("budget=0.0");
        assertThatThrownBy(() -> new QueryMultipliers(1, 0)).hasMessageContaining("smallestMultiplier=0.0");
        assertThatThrownBy(() -> multipliers.solve(new double[0])).hasMessageContaining("at least one");
        assertThatThrownBy(() -> multipliers.solve(new double[] {0, Double.NaN}))
                .hasMessageContaining("answer=1");
    }

    /** Log of the ratio to which the solution moves an answer of this advantage. */
    private static double target(QueryTrustRegion region, double advantage) {
        return (advantage - region.offset()) / region.multiplier();
    }
}
