package dev.millrace.corrections.rollout;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.millrace.corrections.NonFiniteLogProbException;
import dev.millrace.corrections.RandomBatches;
import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.ratio.LogRatio;
import dev.millrace.corrections.rollout.RolloutCorrectionConfig.ObjectiveMode;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

class RejectionRuleTest {
    /** Log ratios 0.5, -0.5 | 0.1, (context), 0.1 | nothing trained. */
    private static final TokenBatch BATCH = new TokenBatch(new int[] {0, 2, 5, 6}, new byte[] {1, 1, 1, 0, 1, 0});

    private static final LogRatio RATIO =
            LogRatio.anchor(new float[] {0.5f, -0.5f, 0.1f, Float.NaN, 0.1f, 7f}, new float[6]);

    private static byte[] maskAfter(RejectionRule... rules) {
        return apply(BATCH, RATIO, rules).mask();
    }

    private static RolloutCorrectionResult apply(TokenBatch batch, LogRatio ratio, RejectionRule... rules) {
        return new RolloutCorrection(new RolloutCorrectionConfig(
                        Optional.empty(), false, List.of(rules), ObjectiveMode.DECOUPLED, Semantics.MILLRACE))
                .apply(batch, ratio);
    }

    @Test
    void shouldBoundMinusTheLogRatioForK1() {
        // k1 = -0.5, 0.5, -0.1, -0.1; the band [0.61, 1.2] in logs is [-0.494, 0.182]
        assertThat(maskAfter(RejectionRule.ratioBand(RejectionMode.TOKEN_K1, 0.61, 1.2)))
                .containsExactly(0, 0, 1, 0, 1, 0);
        assertThat(maskAfter(RejectionRule.ratioBand(RejectionMode.TOKEN_K1, 0.6, 1.2)))
                .containsExactly(1, 0, 1, 0, 1, 0);
    }

    @Test
    void shouldLetOppositeTokensCancelInSumsAndMeansOfK1() {
        // sums 0 and -0.2, means 0 and -0.1
        assertThat(maskAfter(RejectionRule.ratioBand(RejectionMode.SEQ_SUM_K1, 0.85, 1.2)))
                .containsExactly(1, 1, 0, 0, 0, 0);
        assertThat(maskAfter(RejectionRule.ratioBand(RejectionMode.SEQ_MEAN_K1, 0.85, 1.2)))
                .containsExactly(1, 1, 1, 0, 1, 0);
    }

    @Test
    void shouldBoundHalfTheSquareForK2() {
        // 0.125 each, and 0.005 each
        assertThat(maskAfter(RejectionRule.atMost(RejectionMode.TOKEN_K2, 0.1))).containsExactly(0, 0, 1, 0, 1, 0);
        assertThat(maskAfter(RejectionRule.atMost(RejectionMode.SEQ_SUM_K2, 0.2499)))
                .containsExactly(0, 0, 1, 0, 1, 0);
        assertThat(maskAfter(RejectionRule.atMost(RejectionMode.SEQ_SUM_K2, 0.2501)))
                .containsExactly(1, 1, 1, 0, 1, 0);
        assertThat(maskAfter(RejectionRule.atMost(RejectionMode.SEQ_MEAN_K2, 0.2)))
                .containsExactly(1, 1, 1, 0, 1, 0);
        assertThat(maskAfter(RejectionRule.atMost(RejectionMode.SEQ_MAX_K2, 0.12)))
                .containsExactly(0, 0, 1, 0, 1, 0);
    }

    @Test
    void shouldJudgeTokensAboveMoreHarshlyThanBelowWithK3() {
        // e^0.5 - 1.5 = 0.14872, e^-0.5 - 0.5 = 0.10653
        assertThat(maskAfter(RejectionRule.atMost(RejectionMode.TOKEN_K3, 0.12)))
                .containsExactly(0, 1, 1, 0, 1, 0);
        assertThat(maskAfter(RejectionRule.atMost(RejectionMode.SEQ_MEAN_K3, 0.1276)))
                .containsExactly(0, 0, 1, 0, 1, 0);
        assertThat(maskAfter(RejectionRule.atMost(RejectionMode.SEQ_MEAN_K3, 0.1277)))
                .containsExactly(1, 1, 1, 0, 1, 0);
        assertThat(maskAfter(RejectionRule.atMost(RejectionMode.SEQ_SUM_K3, 0.25)))
                .containsExactly(0, 0, 1, 0, 1, 0);
        assertThat(maskAfter(RejectionRule.atMost(RejectionMode.SEQ_MAX_K3, 0.14)))
                .containsExactly(0, 0, 1, 0, 1, 0);
    }

    @Test
    void shouldCountPerRuleAndInAll() {
        RolloutCorrectionResult result = apply(
                BATCH,
                RATIO,
                RejectionRule.atMost(RejectionMode.TOKEN_K3, 0.12),
                RejectionRule.ratioBand(RejectionMode.SEQ_SUM_K1, 0.85, 1.2));

        assertThat(result.mask()).containsExactly(0, 1, 0, 0, 0, 0);
        assertThat(result.rejectedTokens()).isEqualTo(3);
        assertThat(result.rejectedSequences()).isEqualTo(2);
        assertThat(result.metrics())
                .containsEntry("rollout_corr/rollout_rs_token_k3_masked_fraction", 0.25)
                .containsEntry("rollout_corr/rollout_rs_token_k3_seq_masked_fraction", 0.5)
                .containsEntry("rollout_corr/rollout_rs_seq_sum_k1_masked_fraction", 0.5)
                .containsEntry("rollout_corr/rollout_rs_seq_sum_k1_seq_masked_fraction", 0.5)
                .containsEntry("rollout_corr/rollout_rs_masked_fraction", 0.75);
    }

    private static RejectionRule rule(RejectionMode mode, double bound) {
        return mode.isTwoSided()
                ? RejectionRule.ratioBand(mode, Math.exp(-bound), Math.exp(bound))
                : RejectionRule.atMost(mode, bound);
    }

    @ParameterizedTest
    @EnumSource(RejectionMode.class)
    void shouldRejectNothingOnPolicyAndNoLessUnderATighterBound(RejectionMode mode) {
        for (long seed = 0; seed < 40; seed++) {
            RandomBatches random = new RandomBatches(seed);
            TokenBatch batch = random.next();
            float[] behavior = random.logProbs(batch);
            float[] old = random.near(batch, behavior, 0.3);
            if (batch.trainedTokens() == 0) {
                continue;
            }
            byte[] loose = apply(batch, LogRatio.anchor(old, behavior), rule(mode, 0.2))
                    .mask();
            byte[] tight = apply(batch, LogRatio.anchor(old, behavior), rule(mode, 0.02))
                    .mask();
            byte[] onPolicy =
                    apply(batch, LogRatio.anchor(old, old), rule(mode, 1e-300)).mask();

            for (int t = 0; t < tight.length; t++) {
                assertThat(tight[t]).isLessThanOrEqualTo(loose[t]);
                assertThat(onPolicy[t]).isEqualTo((byte) (batch.isTrained(t) ? 1 : 0));
            }
        }
    }

    @Test
    void shouldRefuseBoundsThatMakeNoSense() {
        assertThatThrownBy(() -> RejectionRule.atMost(RejectionMode.TOKEN_K1, 1))
                .hasMessageContaining("has a sign");
        assertThatThrownBy(() -> RejectionRule.atMost(RejectionMode.TOKEN_K2, 0))
                .hasMessageContaining("0.0");
        assertThatThrownBy(() -> RejectionRule.atMost(RejectionMode.TOKEN_K2, Double.NaN))
                .hasMessageContaining("NaN");
        assertThatThrownBy(() -> RejectionRule.ratioBand(RejectionMode.TOKEN_K3, 0.5, 2))
                .hasMessageContaining("single");
        assertThatThrownBy(() -> RejectionRule.ratioBand(RejectionMode.TOKEN_K1, 1.5, 2))
                .hasMessageContaining("1.5");
        assertThatThrownBy(() -> RejectionMode.labelled("seq_max_k1")).hasMessageContaining("known: token_k1, ");
    }

    @Test
    void shouldBeCalledLikeItsMode() {
        for (RejectionMode mode : RejectionMode.values()) {
            assertThat(RejectionRule.within(mode, 0, 1).label()).isEqualTo(mode.label());
        }
    }

    @Test
    void shouldNameSequenceAndTokenOfNonFiniteLogProb() {
        LogRatio broken = LogRatio.anchor(new float[] {0, 0, 0, 0, Float.NEGATIVE_INFINITY, 0}, new float[6]);
        assertThatThrownBy(() -> apply(BATCH, broken, RejectionRule.atMost(RejectionMode.SEQ_MAX_K2, 1)))
                .isInstanceOf(NonFiniteLogProbException.class)
                .hasMessageContaining("proximal log-probs")
                .hasMessageContaining("sequence=1, token=2");
    }
}
