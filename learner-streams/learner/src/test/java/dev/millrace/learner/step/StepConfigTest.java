package dev.millrace.learner.step;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.corrections.algorithm.EntropyConfig;
import dev.millrace.corrections.algorithm.EntropyConfig.Rule;
import dev.millrace.corrections.objective.Anchor;
import dev.millrace.corrections.objective.DecoupledPpo;
import dev.millrace.corrections.objective.LossAggregation;
import dev.millrace.corrections.objective.Oapl;
import dev.millrace.corrections.objective.PpoClip;
import dev.millrace.corrections.objective.Quatro;
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
        assertThatIllegalArgumentException()
                .isThrownBy(() -> StepConfig.defaults().withUpdates(1, 2))
                .withMessage(
                        "epochs above 1 needs an objective with a trust region, since later steps train on an older policy's"
                                + " tokens: objective.kind=reinforce, minibatches=1, epochs=2; choose objective.kind=decoupled_ppo");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> StepConfig.defaults().withUpdates(4, 1))
                .withMessageStartingWith("minibatches above 1 needs an objective with a trust region");
        assertThat(StepConfig.defaults()
                        .withObjective(DecoupledPpo.defaults())
                        .withUpdates(4, 2)
                        .epochs())
                .isEqualTo(2);
    }

    @Test
    void shouldRefuseARegressionOnWhatIsNoOptimalAdvantage() {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> StepConfig.defaults().withObjective(Oapl.defaults()))
                .withMessageContainingAll("objective.kind=oapl", "baseline.kind must be soft_maximum");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> StepConfig.defaults().withBaseline(new BaselineConfig.SoftMaximum(1)))
                .withMessageContainingAll("baseline.kind=soft_maximum", "oapl", "choose baseline.kind=group or opob");
    }

    @Test
    void shouldNotCutGroupsWhoseTrustRegionIsOne() {
        assertThatIllegalArgumentException()
                .isThrownBy(() ->
                        StepConfig.defaults().withObjective(Quatro.defaults()).withUpdates(2, 1))
                .withMessageContainingAll("objective.kind=quatro", "minibatches=2", "set it to 1");
        assertThat(StepConfig.defaults()
                        .withObjective(Quatro.defaults())
                        .withUpdates(1, 3)
                        .epochs())
                .isEqualTo(3);
    }

    @Test
    void shouldRefuseValuesOutOfRangeByTheirKey() {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> StepConfig.defaults().withUpdates(0, 1))
                .withMessage("minibatches must be at least 1: 0");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> new PpoClip(Anchor.OLD, -0.1, 0.2, 3))
                .withMessage("clip_ratio_low must be at least 0 and finite: -0.1");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> new DecoupledPpo(0.2, 0.2, 1))
                .withMessage("clip_ratio_c must be above 1: 1.0");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> new LossAggregation.SeqMeanTokenSumNorm(0))
                .withMessage("loss_scale_factor must be above 0 and finite: 0.0");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> new EntropyConfig(Double.NaN, Rule.CONSTANT))
                .withMessage("bonus must be at least 0 and finite (rule constant): NaN");
    }
}
