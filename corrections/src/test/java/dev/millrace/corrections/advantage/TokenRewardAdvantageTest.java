package dev.millrace.corrections.advantage;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.corrections.NonFiniteLogProbException;
import dev.millrace.corrections.TokenBatch;
import org.junit.jupiter.api.Test;

/** Estimators with rewards per token. */
class TokenRewardAdvantageTest {
    private static final float NAN = Float.NaN;
    /** One turn, a tool's output, another turn; and one answer of a single token. */
    private final TokenBatch batch =
            new TokenBatch(new int[] {0, 5, 6}, new byte[] {1, 1, 0, 1, 0, 1}, new int[] {0, 0});

    private static double[] whitened(double... x) {
        double mean = 0;
        for (double v : x) {
            mean += v / x.length;
        }
        double variance = 0;
        for (double v : x) {
            variance += (v - mean) * (v - mean) / (x.length - 1);
        }
        double[] result = new double[x.length];
        for (int i = 0; i < x.length; i++) {
            result[i] = (x[i] - mean) / Math.sqrt(variance + 1e-8);
        }
        return result;
    }

    @Test
    void shouldStepOverContextInGae() {
        float[] rewards = {0, 0, NAN, 1, NAN, 3};
        float[] values = {0.5f, 0.25f, NAN, 0.5f, NAN, 1};
        // γ = 0.5, λ = 0.5: token 3: 1 − 0.5 = 0.5; token 1: 0.25 − 0.25 + 0.25·0.5 = 0.125;
        // token 0: 0.125 − 0.5 + 0.25·0.125 = −0.34375; the other sequence: 2
        double[] w = whitened(-0.34375, 0.125, 0.5, 2);

        AdvantagesAndReturns result = new Gae(0.5, 0.5, Credit.OUTCOME).compute(batch, rewards, values);

        assertThat(result.advantages())
                .containsExactly(
                        new float[] {(float) w[0], (float) w[1], 0, (float) w[2], 0, (float) w[3]}, within(1e-6f));
        assertThat(result.returns()).containsExactly(new float[] {0.15625f, 0.375f, 0, 1, 0, 3}, within(1e-6f));
    }

    @Test
    void shouldCarryTheNextAdvantageIntoContextAsReference() {
        float[] rewards = {0, 0, 0, 1, 0, 3};
        float[] values = {0.5f, 0.25f, 9, 0.5f, 0, 1};
        double[] w = whitened(-0.34375, 0.125, 0.5, 2);

        AdvantagesAndReturns result = new Gae(0.5, 0.5, Credit.OUTCOME).computeAsReference(batch, rewards, values);

        assertThat(result.advantages()[2]).isCloseTo((float) w[2], within(1e-6f));
        assertThat(result.returns()[2]).isEqualTo(9.5f);
    }

    @Test
    void shouldCarryTheReturnAcrossContextInReinforcePlusPlus() {
        AdvantagesAndReturns result =
                new ReinforcePlusPlus(0.5, Credit.OUTCOME).compute(batch, new float[] {0, 0, NAN, 1, NAN, 3});

        assertThat(result.returns()).containsExactly(0.25f, 0.5f, 0, 1, 0, 3);
        double[] w = whitened(0.25, 0.5, 1, 3);
        assertThat(result.advantages())
                .containsExactly(
                        new float[] {(float) w[0], (float) w[1], 0, (float) w[2], 0, (float) w[3]}, within(1e-6f));
    }

    @Test
    void shouldSubtractTheGreedyRewardInRemax() {
        float[] rewards = {1, 0, 7, 2, 0, 3};

        AdvantagesAndReturns own = Remax.defaults().compute(batch, rewards, new double[] {0.5, 1});
        AdvantagesAndReturns reference = Remax.defaults().computeAsReference(batch, rewards, new double[] {0.5, 1});

        assertThat(own.returns()).containsExactly(3, 2, 0, 2, 0, 3);
        assertThat(own.advantages()).containsExactly(2.5f, 1.5f, 0, 1.5f, 0, 2);
        assertThat(reference.returns()).containsExactly(3, 2, 2, 2, 0, 3);
        assertThat(reference.advantages()).containsExactly(2.5f, 1.5f, 2, 1.5f, 0, 2);
    }

    @Test
    void shouldWeighBaselinesByAccumulatedVarianceAtEachPosition() {
        TokenBatch pair = new TokenBatch(new int[] {0, 2, 3}, new byte[] {1, 1, 1}, new int[] {0, 0});
        float[] rewards = {0, 1, 3};
        float[] logProbs = {(float) Math.log(0.5), (float) Math.log(0.5), (float) Math.log(0.25)};
        float[] squares = {0.5f, 0.5f, 0.25f};
        // w: 1 − 1 + 0.5 = 0.5, again 0.5; 1 − 0.5 + 0.25 = 0.75. W: 0.5, 1; 0.75. G: 1, 1; 3.
        double first = (0.5 * 1 + 0.75 * 3) / 1.25;

        float[] free = new OptimalTokenBaseline(true, 0, Credit.OUTCOME)
                .compute(pair, rewards, logProbs, squares, null)
                .advantages();
        float[] held = new OptimalTokenBaseline(false, 0, Credit.OUTCOME)
                .compute(pair, rewards, logProbs, squares, null)
                .advantages();

        assertThat(free).containsExactly(new float[] {(float) (1 - first), 1, (float) (3 - first)}, within(1e-6f));
        assertThat(held).containsExactly(new float[] {(float) (1 - first), 0, (float) (3 - first)}, within(1e-6f));
    }

    @Test
    void shouldSquareImportanceWeightsInTheVariance() {
        TokenBatch pair = new TokenBatch(new int[] {0, 1, 2}, new byte[] {1, 1}, new int[] {0, 0});
        float[] logProbs = {(float) Math.log(0.5), (float) Math.log(0.5)};
        float[] squares = {0.5f, 0.5f};
        double baseline = (4 * 1 + 1 * 3) / 5.0;

        float[] advantages = new OptimalTokenBaseline(true, 0, Credit.OUTCOME)
                .compute(pair, new float[] {1, 3}, logProbs, squares, new float[] {2, 1})
                .advantages();

        assertThat(advantages)
                .containsExactly(new float[] {(float) (1 - baseline), (float) (3 - baseline)}, within(1e-6f));
    }

    @Test
    void shouldAlignTurnsByTrainedTokensInTheMultiTurnBaseline() {
        // trained, context, trained against trained, trained: the same numbers in the same order
        TokenBatch turns = new TokenBatch(new int[] {0, 3, 5}, new byte[] {1, 0, 1, 1, 1}, new int[] {0, 0});
        TokenBatch plain = new TokenBatch(new int[] {0, 2, 4}, new byte[] {1, 1, 1, 1}, new int[] {0, 0});
        float[] rewards = {0, 1, 0, 2};
        float[] logProbs = {-0.5f, -0.7f, -0.2f, -1.1f};
        float[] squares = {0.5f, 0.4f, 0.7f, 0.3f};

        float[] expected = new OptimalTokenBaseline(true, 0, Credit.OUTCOME)
                .compute(plain, rewards, logProbs, squares, null)
                .advantages();
        float[] actual = new TirOptimalTokenBaseline(true, 0, Credit.OUTCOME)
                .compute(turns, spread(rewards), spread(logProbs), spread(squares), null)
                .advantages();

        assertThat(actual).containsExactly(expected[0], 0, expected[1], expected[2], expected[3]);
    }

    private static float[] spread(float[] four) {
        return new float[] {four[0], NAN, four[1], four[2], four[3]};
    }

    @Test
    void shouldKeepTheReturnOfALoneTrajectory() {
        TokenBatch alone = new TokenBatch(new int[] {0, 2, 3}, new byte[] {1, 1, 0}, new int[] {0, 0});
        float[] rewards = {1, 2, 0};
        float[] zeros = {-1, -1, NAN};

        assertThat(new TirOptimalTokenBaseline(false, 0, Credit.OUTCOME)
                        .compute(alone, rewards, zeros, new float[] {0.5f, 0.5f, NAN}, null)
                        .advantages())
                .containsExactly(3, 2, 0);
    }

    @Test
    void shouldNormaliseOutcomeAndProcessRewardsSeparatelyAndKeepTokens() {
        TokenBatch pair = new TokenBatch(new int[] {0, 3, 5}, new byte[] {1, 1, 1, 1, 1}, new int[] {0, 0});
        double[] outcomes = {1, 0}; // ±1/√2
        float[] process = {10, 0, 20, 0, 30};
        byte[] rewarded = {1, 0, 1, 0, 1}; // mean 20, deviation 10: −1, 0, 1
        double o = Math.sqrt(0.5);

        float[] advantages = new TokenPreservingGrpo(1, 0.5, Credit.TOKEN).compute(pair, outcomes, process, rewarded);

        // to go: −1 + 0, 0, 0; 1, 1
        assertThat(advantages)
                .containsExactly(
                        new float[] {(float) (o - 0.5), (float) o, (float) o, (float) (0.5 - o), (float) (0.5 - o)},
                        within(1e-5f));
    }

    @Test
    void shouldRefuseRewardsThatCannotBeCredited() {
        assertThatThrownBy(() -> new TokenPreservingGrpo(1, 1, Credit.TOKEN)
                        .compute(batch, new double[] {1, 0}, new float[6], new byte[] {0, 0, 1, 0, 0, 0}))
                .hasMessageContaining("at a trained token: sequence=0, token=2");
        assertThatThrownBy(() ->
                        new Gae(1, 1, Credit.OUTCOME).compute(batch, new float[] {0, NAN, 0, 0, 0, 0}, new float[6]))
                .isInstanceOf(NonFiniteLogProbException.class)
                .hasMessageContaining("rewards");
        assertThatThrownBy(() -> new Gae(1.5, 1, Credit.OUTCOME)).hasMessageContaining("gamma must be in [0, 1]");
        assertThatThrownBy(() -> new ReinforcePlusPlus(Double.NaN, Credit.OUTCOME))
                .hasMessageContaining("gamma");
        TokenBatch nothing = new TokenBatch(new int[] {0, 1}, new byte[] {0});
        assertThatThrownBy(() -> new Gae(1, 1, Credit.OUTCOME).compute(nothing, new float[1], new float[1]))
                .hasMessageContaining("at least 2 trained tokens: 0");
    }
}
