package dev.millrace.corrections.objective;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import java.util.Set;
import org.junit.jupiter.api.Test;

class VerlNamesTest {

    @Test
    void shouldKnowVerlsLossesAndAggregationsByTheirKindHere() {
        assertThat(VerlNames.objective("vanilla", Set.of())).isEqualTo("ppo_clip");
        assertThat(VerlNames.objective("geo_mean", Set.of())).isEqualTo("gmpo");
        assertThat(VerlNames.objective("gpg", Set.of())).isEqualTo("reinforce");
        assertThat(VerlNames.objective("gspo", Set.of())).isEqualTo("gspo_token");
        assertThat(VerlNames.objective("dro", Set.of("dro_beta"))).isEqualTo("dro");
        assertThat(VerlNames.aggregation("seq-mean-token-sum-norm")).isEqualTo("seq_mean_token_sum_norm");
    }

    @Test
    void shouldRefuseNamesThatVerlHasNotAndDroWithoutItsLeash() {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> VerlNames.objective("dro", Set.of("clip_ratio")))
                .withMessageContaining("loss_mode dro needs dro_beta");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> VerlNames.objective("ppo", Set.of()))
                .withMessageStartingWith("loss_mode must be one of vanilla, dppo_tv")
                .withMessageEndingWith(": 'ppo'");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> VerlNames.aggregation("token_mean"))
                .withMessageContainingAll("loss_agg_mode must be one of", "token-mean", "'token_mean'");
    }
}
