package dev.millrace.corrections.rollout;

import static dev.millrace.corrections.stage.StageExamples.decide;
import static dev.millrace.corrections.stage.StageExamples.facts;
import static dev.millrace.corrections.stage.StageExamples.last;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.corrections.CorrectionUnit;
import dev.millrace.corrections.ratio.ComparedPolicies;
import dev.millrace.corrections.stage.Decision;
import dev.millrace.corrections.stage.StageBatch;
import dev.millrace.corrections.stage.StageExamples;
import dev.millrace.corrections.stage.StageInput;
import java.util.List;
import org.junit.jupiter.api.Test;

class RejectionTest {
    @Test
    void shouldReportVerlsMetricsAlsoWhereNothingIsRejected() {
        Decision decision = decide(facts(0.5, 0, 0, 0, 0, 0, 0, -0.5), Rejection.defaults());

        assertThat(last(decision).stage()).isEqualTo("rollout_correction");
        assertThat(last(decision).tokensActed()).isZero();
        assertThat(last(decision).values().get("rollout_corr/kl")).isCloseTo(0, within(1e-9));
    }

    @Test
    void shouldRejectTokensByTheirOwnDivergence() {
        // k2 = (log ratio)^2 / 2: 0.5, 0.02, ...
        Rejection tokens = new Rejection("token_k2", "0.1", ComparedPolicies.ANCHOR);
        Decision decision = decide(facts(1, 0.2, 0, 0, 0, 0, 0, -1), tokens);

        assertThat(decision.left().mask()).containsExactly(0, 1, 1, 1, 1, 1, 1, 0);
        assertThat(decision.maskedBy()).containsOnlyNulls();
        assertThat(last(decision).tokensActed()).isEqualTo(2);
        assertThat(tokens.unit()).isEqualTo(CorrectionUnit.TOKEN);
    }

    @Test
    void shouldRejectWholeSequencesByTheirMean() {
        // k3 = e^x - 1 - x: of 0.3 it is 0.0499, above 0.01 on average over the two tokens
        Rejection sequences = new Rejection("seq_mean_k3", "0.01", ComparedPolicies.ANCHOR);
        Decision decision = decide(facts(0.3, 0, 0, 0, 0, 0.01, 0, 0), sequences);

        assertThat(decision.left().mask()).containsExactly(0, 0, 1, 1, 1, 1, 1, 1);
        assertThat(decision.maskedBy()).containsExactly("rollout_correction", null, null, null);
        assertThat(sequences.unit()).isEqualTo(CorrectionUnit.SEQUENCE);
    }

    @Test
    void shouldCompareThePoliciesItNames() {
        Rejection engines = new Rejection("token_k2", "0.1", ComparedPolicies.ENGINE_MISMATCH);

        assertThat(engines.inputs()).containsExactlyInAnyOrder(StageInput.OLD, StageInput.BEHAVIOR);
        assertThat(decide(facts(1, 1, 1, 1, 1, 1, 1, 1), engines).left().trainedTokens())
                .as("one engine agrees with the other")
                .isEqualTo(8);
    }

    @Test
    void shouldRejectNothingOfNothing() {
        Decision decision = StageBatch.decide(StageExamples.starved(), List.of(Rejection.defaults()));

        assertThat(last(decision).values()).isEmpty();
        assertThat(last(decision).tokensActed()).isZero();
    }

    @Test
    void shouldRefuseTextsThatSayNothing() {
        assertThatThrownBy(() -> new Rejection("token_k2", "", ComparedPolicies.ANCHOR))
                .hasMessageContaining("rollout_rs=token_k2 needs rollout_rs_threshold");
        assertThatThrownBy(() -> new Rejection("", "0.1", ComparedPolicies.ANCHOR))
                .hasMessageContaining("does nothing without rollout_rs");
        assertThatThrownBy(() -> new Rejection("seq_max_k1", "0.1", ComparedPolicies.ANCHOR))
                .hasMessageContaining("unknown rollout_rs option 'seq_max_k1'");
    }
}
