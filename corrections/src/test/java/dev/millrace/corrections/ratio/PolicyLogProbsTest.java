package dev.millrace.corrections.ratio;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.corrections.TokenBatch;
import org.junit.jupiter.api.Test;

class PolicyLogProbsTest {
    private static final float[] BEHAVIOR = {-1f, -2f};
    private static final float[] CURRENT = {-0.5f, -4f};

    @Test
    void shouldKeepFourPoliciesApartWhenDecoupled() {
        PolicyLogProbs policies = PolicyLogProbs.decoupled(BEHAVIOR)
                .withOld(new float[] {-1.5f, -2f})
                .withProximal(new float[] {-1f, -3f})
                .withCurrent(CURRENT);

        assertThat(policies.ratio(RatioKind.ENGINE_MISMATCH).at(0)).isEqualTo(-0.5);
        assertThat(policies.ratio(RatioKind.STALENESS).at(1)).isEqualTo(-1.0);
        assertThat(policies.ratio(RatioKind.ANCHOR).at(1)).isEqualTo(-1.0);
        assertThat(policies.ratio(RatioKind.TRUST_REGION).at(0)).isEqualTo(0.5);
        assertThat(policies.ratio(RatioKind.FULL).at(1)).isEqualTo(-2.0);
    }

    @Test
    void shouldHaveOnlyTheFullRatioInBypassMode() {
        PolicyLogProbs policies = PolicyLogProbs.bypass(BEHAVIOR, CURRENT);

        assertThat(policies.ratio(RatioKind.ENGINE_MISMATCH).at(1)).isZero();
        assertThat(policies.ratio(RatioKind.STALENESS).at(1)).isZero();
        assertThat(policies.ratio(RatioKind.TRUST_REGION).at(1))
                .isEqualTo(policies.ratio(RatioKind.FULL).at(1));
    }

    @Test
    void shouldInterpolateProximalByStaleness() {
        TokenBatch batch = new TokenBatch(new int[] {0, 2}, new byte[] {1, 1});

        // token 0 is 1 version old: proximal is behavior; token 1 is 4 old: three quarters of the way to current
        PolicyLogProbs policies = PolicyLogProbs.interpolated(batch, BEHAVIOR, CURRENT, new int[] {9, 6}, 10);

        assertThat(policies.ratio(RatioKind.ANCHOR).at(0)).isZero();
        assertThat(policies.ratio(RatioKind.ANCHOR).at(1)).isCloseTo(-1.5, within(1e-6));
        assertThat(policies.ratio(RatioKind.TRUST_REGION).at(1)).isCloseTo(-0.5, within(1e-6));
    }

    @Test
    void shouldRefuseARatioOfAPolicyThatIsNotKnown() {
        assertThatThrownBy(() -> PolicyLogProbs.decoupled(BEHAVIOR).ratio(RatioKind.ENGINE_MISMATCH))
                .hasMessage("the ratio old/behavior needs old log-probs, which are not known");
    }

    @Test
    void shouldRefuseVectorsThatTheModeFixes() {
        assertThatThrownBy(() -> PolicyLogProbs.bypass(BEHAVIOR, CURRENT).withOld(BEHAVIOR))
                .hasMessageContaining("old log-probs are fixed by mode BYPASS");
    }
}
