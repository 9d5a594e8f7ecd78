package dev.millrace.learner.step;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.decoder.LayerGradient.Activations;
import dev.millrace.policy.session.MicrobatchLimit;
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
                .isThrownBy(() -> new StepConfig(OptimizerConfig.defaults(), 1, 0, false, 0, 1))
                .withMessage("logits_mb must be at least 1: 0");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> new StepConfig(OptimizerConfig.defaults(), 1, -1, false, 1, 1))
                .withMessage("memory_mb must be at least 1, or 0 to derive it from the model: -1");
    }

    /** 2 GB, or a copy of the weights where that is more; each shard has its part. */
    @Test
    void shouldGiveTheGradientMemoryByTheModelUnlessItIsTold() {
        DecoderShape small = shape(16);
        DecoderShape large = shape(1 << 21);
        assertThat(large.parameterCount()).isGreaterThan(1L << 29);
        assertThat(StepConfig.defaults().passBytes(small)).isEqualTo(2048L << 20);
        assertThat(StepConfig.defaults().passBytes(large)).isEqualTo(4 * large.parameterCount());
        assertThat(StepConfig.defaults().limit(small)).isEqualTo(new MicrobatchLimit(4096, 1024L << 20));
        StepConfig told = new StepConfig(OptimizerConfig.defaults(), 64, 300, true, 256, 3);
        assertThat(told.limit(large)).isEqualTo(new MicrobatchLimit(64, 100L << 20));
        assertThat(told.activations()).isEqualTo(Activations.RECOMPUTED);
    }

    private static DecoderShape shape(int vocabulary) {
        return new DecoderShape(vocabulary, 240, 1, 4, 4, 60, 8, 32, 10_000, 1e-5, false, false);
    }
}
