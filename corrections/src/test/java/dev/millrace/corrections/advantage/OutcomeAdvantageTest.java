package dev.millrace.corrections.advantage;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.corrections.RandomBatches;
import dev.millrace.corrections.TokenBatch;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Estimators with one reward per sequence. */
class OutcomeAdvantageTest {
    /** Trained tokens 2, 1, 1, 0, 3; groups {0, 2, 3}, {1}, {4}. */
    private final TokenBatch batch = new TokenBatch(
            new int[] {0, 3, 4, 5, 6, 9}, new byte[] {1, 0, 1, 1, 1, 0, 1, 1, 1}, new int[] {0, 1, 0, 0, 4});

    private final double[] rewards = {1, 5, 2, 3, 0};

    @Test
    void shouldCompareWithTheMeanOfTheOthers() {
        // others of 0: (2+3)/2; of 2: (1+3)/2; of 3: (1+2)/2
        assertThat(new Rloo(LoneSequence.KEEPS_ITS_REWARD).perSequence(batch, rewards))
                .containsExactly(new double[] {-1.5, 5, 0, 1.5, 0}, within(1e-12));
        assertThat(new Rloo(LoneSequence.TEACHES_NOTHING).perSequence(batch, rewards))
                .containsExactly(new double[] {-1.5, 0, 0, 1.5, 0}, within(1e-12));
    }

    @Test
    void shouldWeighTheBaselineByLength() {
        // (2·1 + 1·2 + 0·3) / 3 = 4/3
        assertThat(new Opo().perSequence(batch, rewards))
                .containsExactly(new double[] {-1 / 3.0, 5, 2 / 3.0, 5 / 3.0, 0}, within(1e-12));
    }

    @Test
    void shouldScaleUpWhereRewardsAreZero() {
        // 5 sequences, 4 of them with a reward
        assertThat(new Gpg(2.0).perSequence(batch, rewards))
                .containsExactly(new double[] {-0.625, 3.125, 0, 0.625, 0}, within(1e-12));
    }

    @Test
    void shouldGiveOnlyTheBestItsLead() {
        TokenBatch pairs =
                new TokenBatch(new int[] {0, 1, 2, 3, 4, 5}, new byte[] {1, 1, 1, 1, 1}, new int[] {0, 0, 0, 1, 1});
        double[] r = {1, 4, 2, 7, 7};

        assertThat(new GrpoPassk(false).perSequence(pairs, r)).containsExactly(0, 2, 0, 0, 0);
        double deviation = Math.sqrt(7 / 3.0); // of 1, 4, 2 around 7/3: (16 + 25 + 1)/9 / 2
        assertThat(new GrpoPassk(true).perSequence(pairs, r)[1]).isCloseTo(2 / (deviation + 1e-6), within(1e-12));
        assertThatThrownBy(() -> new GrpoPassk(true).perSequence(batch, rewards))
                .hasMessageContaining("at least 2 sequences in a group: sequence=1, group=1");
    }

    @Test
    void shouldWhitenGroupCentredRewardsOverTokens() {
        // centred −1, 5, 0, 1, 0 on 2, 1, 1, 0, 3 tokens: mean 3/7, squares 2·(10/7)² + (32/7)² + 4·(3/7)² over 6
        double variance = (2 * 100 + 1024 + 4 * 9) / 49.0 / 6;
        double[] advantages = new ReinforcePlusPlusBaseline().perSequence(batch, rewards);

        assertThat(advantages[0]).isCloseTo((-1 - 3 / 7.0) / Math.sqrt(variance + 1e-8), within(1e-12));
        assertThat(advantages[1]).isCloseTo((5 - 3 / 7.0) / Math.sqrt(variance + 1e-8), within(1e-12));
    }

    @Test
    void shouldRefuseToWhitenASingleToken() {
        TokenBatch single = new TokenBatch(new int[] {0, 2}, new byte[] {1, 0});

        assertThatThrownBy(() -> new ReinforcePlusPlusBaseline().perSequence(single, new double[] {1}))
                .hasMessageContaining("at least 2 trained tokens: 1");
    }

    @Test
    void shouldNormaliseEachComponentBeforeAddingThem() {
        TokenBatch pair = new TokenBatch(new int[] {0, 1, 2}, new byte[] {1, 1}, new int[] {0, 0});
        // the components become ∓1/√2 and ±1/√2 at any scale, so the heavier weight decides
        double[] unequal = Gdpo.perSequence(pair, new double[][] {{0, 100}, {0.1, 0}}, new double[] {1, 0.5});

        assertThat(unequal).containsExactly(new double[] {-Math.sqrt(0.5), Math.sqrt(0.5)}, within(1e-6));
        assertThatThrownBy(() -> Gdpo.perSequence(pair, new double[][] {{0, 1}, {0, 1}}, new double[] {1}))
                .hasMessageContaining("weights=1, components=2");
    }

    @Test
    void shouldTakeTheSoftMaximumOfTheGroupAsValue() {
        TokenBatch pair = new TokenBatch(new int[] {0, 1, 2}, new byte[] {1, 1}, new int[] {0, 0});
        double value = 0.5 * Math.log((Math.exp(0) + Math.exp(2)) / 2); // rewards 0 and 1, beta 0.5

        assertThat(new SoftMaximum(0.5).perSequence(pair, new double[] {0, 1}))
                .containsExactly(new double[] {-value, 1 - value}, within(1e-12));
        assertThat(new SoftMaximum(1e-3).perSequence(pair, new double[] {1000, 3000}))
                .containsExactly(new double[] {-2000, 0}, within(1e-2));
        assertThat(new SoftMaximum(1e9).perSequence(pair, new double[] {0, 1}))
                .containsExactly(new double[] {-0.5, 0.5}, within(1e-6));
    }

    static Stream<OutcomeAdvantage> shiftInvariant() {
        return Stream.of(new Grpo(true), new Grpo(false), new Rloo(LoneSequence.TEACHES_NOTHING), new SoftMaximum(0.7));
    }

    @ParameterizedTest
    @MethodSource("shiftInvariant")
    void shouldSumToAtMostNothingInEachGroupAndNotCareForAShiftOfAllRewards(OutcomeAdvantage estimator) {
        Random random = new Random(5);
        for (int trial = 0; trial < 30; trial++) {
            int n = 6;
            TokenBatch groups =
                    new TokenBatch(IntStream.rangeClosed(0, n).toArray(), ones(n), new int[] {0, 0, 1, 1, 1, 0});
            double[] r = random.doubles(n).toArray();
            double[] shifted = Arrays.stream(r).map(x -> x + 10).toArray();
            double[] advantages = estimator.perSequence(groups, r);

            assertThat(estimator.perSequence(groups, shifted)).containsExactly(advantages, within(1e-5));
            assertThat(advantages[0] + advantages[1] + advantages[5]).isLessThan(1e-9);
        }
    }

    static Stream<OutcomeAdvantage> all() {
        return Stream.concat(
                shiftInvariant(),
                Stream.of(
                        new Opo(),
                        new Gpg(1),
                        new ReinforcePlusPlusBaseline(),
                        new Rloo(LoneSequence.KEEPS_ITS_REWARD)));
    }

    @ParameterizedTest
    @MethodSource("all")
    void shouldNotDependOnTheOrderOfSequences(OutcomeAdvantage estimator) {
        RandomBatches batches = new RandomBatches(11);
        Random random = new Random(11);
        for (int trial = 0; trial < 40; trial++) {
            TokenBatch forward = batches.next();
            if (forward.trainedTokens() < 2) {
                continue;
            }
            double[] r = random.doubles(forward.sequenceCount()).toArray();
            int n = forward.sequenceCount();
            int[] offsets = new int[n + 1];
            byte[] mask = new byte[forward.tokenCount()];
            int[] groups = new int[n];
            double[] reversedRewards = new double[n];
            for (int s = 0; s < n; s++) {
                int old = n - 1 - s;
                offsets[s + 1] = offsets[s] + forward.length(old);
                forward.copyMask(forward.start(old), mask, offsets[s], forward.length(old));
                groups[s] = forward.group(old);
                reversedRewards[s] = r[old];
            }
            double[] expected = estimator.perSequence(forward, r);
            double[] actual = estimator.perSequence(new TokenBatch(offsets, mask, groups), reversedRewards);

            for (int s = 0; s < n; s++) {
                assertThat(actual[s]).isCloseTo(expected[n - 1 - s], within(1e-9 * (1 + Math.abs(actual[s]))));
            }
        }
    }

    @ParameterizedTest
    @MethodSource("all")
    void shouldRefuseNonFiniteRewardsAndWrongCounts(OutcomeAdvantage estimator) {
        for (double bad : List.of(Double.NaN, Double.POSITIVE_INFINITY)) {
            assertThatThrownBy(() -> estimator.perSequence(batch, new double[] {1, 2, bad, 4, 5}))
                    .hasMessageContaining("rewards must be finite: sequence=2");
        }
        assertThatThrownBy(() -> estimator.perSequence(batch, new double[2])).hasMessageContaining("length=2");
    }

    private static byte[] ones(int n) {
        byte[] mask = new byte[n];
        Arrays.fill(mask, (byte) 1);
        return mask;
    }
}
