package dev.millrace.learner.step;

import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import org.junit.jupiter.api.Test;

class StepConfigTest {

    @Test
    void shouldRefuseValuesOutOfRangeByTheirKey() {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> StepConfig.defaults().withCut(0, 1))
                .withMessage("tokens_per_microbatch must be at least 1: 0");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> StepConfig.defaults().withCut(1, 0))
                .withMessage("shards must be at least 1: 0");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> new StepConfig(OptimizerConfig.defaults(), 1, 0, 1))
                .withMessage("logits_mb must be at least 1: 0");
    }
}
