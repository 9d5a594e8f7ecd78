package dev.millrace.learner.step;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.learner.step.EntropyConfig.Rule;
import dev.millrace.learner.step.ObjectiveConfig.AggregationKind;
import dev.millrace.learner.step.ObjectiveConfig.Kind;
import org.junit.jupiter.api.Test;

class StepConfigTest {

    @Test
    void shouldShrinkTheEntropyBonusWithTheRewardStillToBeHad() {
        EntropyConfig entropy = new EntropyConfig(0.03, Rule.REWARD_GAP);

        assertThat(entropy.coefficient(0)).isEqualTo(0.03);
        assertThat(entropy.coefficient(0.75)).isCloseTo(0.0075, within(1e-15));
        assertThat(entropy.coefficient(1)).isZero();
        assertThat(entropy.coefficient(1.5)).as("never a malus").isZero();
        assertThat(entropy.coefficient(-2)).as("never above the bonus").isEqualTo(0.03);
        assertThat(new EntropyConfig(0.03, Rule.CONSTANT).coefficient(0.9)).isEqualTo(0.03);
    }

    @Test
    void shouldRefuseSeveralStepsOnABatchWithoutATrustRegion() {
        assertThatIllegalArgumentException().isThrownBy(() -> config(Kind.REINFORCE, 1, 2))
            .withMessage("epochs above 1 needs an objective with a trust region, since later steps train on an older policy's"
                + " tokens: kind=reinforce, minibatches=1, epochs=2; choose kind=decoupled_ppo");
        assertThatIllegalArgumentException().isThrownBy(() -> config(Kind.REINFORCE, 4, 1))
            .withMessageStartingWith("minibatches above 1 needs an objective with a trust region");
        assertThat(config(Kind.DECOUPLED_PPO, 4, 2).epochs()).isEqualTo(2);
    }

    @Test
    void shouldRefuseValuesOutOfRangeByTheirKey() {
        assertThatIllegalArgumentException().isThrownBy(() -> config(Kind.PPO_CLIP, 0, 1))
            .withMessage("minibatches must be at least 1: 0");
        assertThatIllegalArgumentException()
            .isThrownBy(() -> new ObjectiveConfig(Kind.PPO_CLIP, -0.1, 0.2, 3, AggregationKind.TOKEN_MEAN, 0))
            .withMessage("clip_low must be at least 0 and finite: -0.1");
        assertThatIllegalArgumentException()
            .isThrownBy(() -> new ObjectiveConfig(Kind.PPO_CLIP, 0.2, 0.2, 1, AggregationKind.TOKEN_MEAN, 0))
            .withMessage("dual_clip must be above 1: 1.0");
        assertThatIllegalArgumentException()
            .isThrownBy(() -> new ObjectiveConfig(Kind.PPO_CLIP, 0.2, 0.2, 3, AggregationKind.SEQ_MEAN_TOKEN_SUM_NORM, 0))
            .withMessage("length_tokens must be at least 1 for aggregation=seq_mean_token_sum_norm: 0");
        assertThatIllegalArgumentException().isThrownBy(() -> new EntropyConfig(Double.NaN, Rule.CONSTANT))
            .withMessage("bonus must be at least 0 and finite (rule constant): NaN");
    }

    private static StepConfig config(Kind kind, int minibatches, int epochs) {
        ObjectiveConfig objective = new ObjectiveConfig(kind, 0.2, 0.2, 3, AggregationKind.TOKEN_MEAN, 0);
        return new StepConfig(OptimizerConfig.defaults(), objective, EntropyConfig.defaults(), minibatches, epochs, 64, 1);
    }
}
