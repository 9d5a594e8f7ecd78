package dev.millrace.runtime.config;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.millrace.corrections.advantage.Gae;
import dev.millrace.corrections.advantage.Grpo;
import dev.millrace.corrections.advantage.Rloo;
import dev.millrace.corrections.algorithm.Algorithm;
import dev.millrace.corrections.algorithm.Mode;
import dev.millrace.corrections.kl.CoefficientConfig;
import dev.millrace.corrections.kl.KlConfig;
import dev.millrace.corrections.objective.Anchor;
import dev.millrace.corrections.objective.BypassReinforce;
import dev.millrace.corrections.objective.LossAggregation;
import dev.millrace.corrections.objective.PpoClip;
import dev.millrace.corrections.weights.None;
import dev.millrace.corrections.weights.Sequence;
import dev.millrace.corrections.weights.Token;
import org.junit.jupiter.api.Test;

class VerlKeysTest {

    private static Algorithm algorithm(String yaml) {
        return algorithm(yaml, "");
    }

    private static Algorithm algorithm(String yaml, String others) {
        return new ConfigLayers()
                .yaml("algorithm:\n" + yaml.indent(2) + others, "test")
                .resolve()
                .algorithm();
    }

    @Test
    void shouldReadAnActorsSettings() {
        Algorithm read = algorithm("""
                adv_estimator: grpo
                loss_mode: vanilla
                clip_ratio: 0.2
                clip_ratio_high: 0.28
                clip_ratio_c: 10
                loss_agg_mode: seq-mean-token-mean
                ppo_epochs: 2
                entropy_coeff: 0.001
                """);
        assertThat(read.advantage()).isEqualTo(new Grpo(true));
        assertThat(read.objective()).isEqualTo(new PpoClip(Anchor.OLD, 0.2, 0.28, 10));
        assertThat(read.lossAggMode()).isEqualTo(new LossAggregation.SeqMeanTokenMean());
        assertThat(read.epochs()).isEqualTo(2);
        assertThat(read.entropy().bonus()).isEqualTo(0.001);
    }

    @Test
    void shouldReadEstimatorsByTheirNames() {
        assertThat(algorithm("adv_estimator: rloo\n").advantage()).isEqualTo(Rloo.defaults());
        assertThat(algorithm("adv_estimator: grpo\nnorm_adv_by_std_in_grpo: false\n")
                        .advantage())
                .isEqualTo(new Grpo(false));
        for (String name :
                new String[] {"reinforce_plus_plus", "reinforce_plus_plus_baseline", "opo", "grpo_passk", "gpg", "gdpo"
                }) {
            assertThat(algorithm("adv_estimator: " + name + "\n").advantage())
                    .as(name)
                    .isNotNull();
        }
        for (String name : new String[] {"optimal_token_baseline", "tir_optimal_token_baseline"}) {
            assertThat(algorithm("adv_estimator: " + name + "\n", "scorer:\n  sum_squared_probs: true\n")
                            .advantage())
                    .as(name)
                    .isNotNull();
        }
        assertThatThrownBy(() -> algorithm("adv_estimator: optimal_token_baseline\n"))
                .hasMessageContaining("scorer.sum_squared_probs is false; set it to true");
        assertThatThrownBy(() -> algorithm("adv_estimator: gae\n"))
                .hasMessageContainingAll("gae", "values", "algorithm.critic is off", "set the former to value_head");
        assertThatThrownBy(() -> algorithm("adv_estimator: remax\n"))
                .hasMessageContainingAll("remax", "rewards of greedy answers", "topology.join.reward is false");
        assertThat(algorithm("adv_estimator: gae\n", "topology:\n  join:\n    reward: true\n")
                        .advantage())
                .isInstanceOf(Gae.class);
        assertThatThrownBy(() -> algorithm("adv_estimator: rlo\n"))
                .hasMessageContainingAll("algorithm.advantage", "rloo");
        assertThatThrownBy(() -> algorithm("norm_adv_by_std_in_grpo: false\n"))
                .hasMessageContaining("adv_estimator=grpo");
    }

    @Test
    void shouldReadARolloutCorrection() {
        Algorithm read = algorithm("""
                rollout_correction:
                  rollout_is: sequence
                  rollout_is_threshold: 3.0
                  rollout_is_batch_normalize: true
                  rollout_rs: seq_mean_k3
                  rollout_rs_threshold: 0.01
                """);
        assertThat(read.weights()).isEqualTo(new Sequence("3.0", true));
        assertThat(read.rejection().rolloutRs()).isEqualTo("seq_mean_k3");
        assertThat(read.rejection().rolloutRsThreshold()).isEqualTo("0.01");
        assertThat(algorithm("rollout_is: null\n").weights()).isEqualTo(new None());
        assertThat(algorithm("rollout_is: token\nrollout_is_threshold: 0.5_5.0\n")
                        .weights())
                .isEqualTo(new Token("0.5_5.0", false));
        assertThat(algorithm("rollout_correction: decoupled_geo_rs(0.99_1.01)\n")
                        .rejection())
                .isEqualTo(Algorithm.variant("decoupled_geo_rs(0.99_1.01)").rejection());
    }

    @Test
    void shouldReadBypassModeWithItsObjective() {
        Algorithm read = algorithm("""
                masks: []
                ess: {rule: none}
                rollout_correction: {bypass_mode: true, loss_type: reinforce, rollout_is: token, rollout_is_threshold: 2.0}
                """);
        assertThat(read.mode()).isEqualTo(Mode.BYPASS);
        assertThat(read.objective()).isEqualTo(new BypassReinforce("token", "2.0", false, "", ""));
    }

    @Test
    void shouldReadDivergences() {
        KlConfig.InLoss loss = (KlConfig.InLoss) new ConfigLayers()
                .yaml(
                        "algorithm: {use_kl_loss: true, kl_loss_coef: 0.05, kl_loss_type: low_var_kl+,"
                                + " kl: {reference: {kind: version}}}",
                        "test")
                .resolve()
                .algorithm()
                .kl();
        assertThat(loss.coefficient()).isEqualTo(new CoefficientConfig.Fixed(0.05));
        assertThat(loss.klLossType()).isEqualTo("low_var_kl+");
        assertThatThrownBy(() -> algorithm("kl_loss_coef: 0.1\n")).hasMessageContaining("use_kl_loss=true");
        assertThatThrownBy(() -> algorithm("use_kl_loss: true\nuse_kl_in_reward: true\n"))
                .hasMessageContaining("count twice");
    }

    @Test
    void shouldRefuseWhatIsSaidTwice() {
        assertThatThrownBy(() -> algorithm("adv_estimator: rloo\nadvantage: opo\n"))
                .hasMessageContainingAll("algorithm.advantage", "algorithm.adv_estimator", "leave one of them out");
        assertThatThrownBy(() -> algorithm("loss_mode: dro\n")).hasMessageContaining("dro_beta");
        assertThatThrownBy(() -> algorithm("loss_mode: vanila\n")).hasMessageContainingAll("loss_mode", "vanilla");
    }
}
