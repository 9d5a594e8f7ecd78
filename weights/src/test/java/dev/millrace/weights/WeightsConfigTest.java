package dev.millrace.weights;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.decoder.LoraShape;
import dev.millrace.policy.weights.Dtype;
import java.util.Optional;
import org.junit.jupiter.api.Test;

class WeightsConfigTest {
    private static final VersionSize SMALL = VersionSize.of(SmallDecoder.SHAPE);
    /** 113 million parameters. */
    private static final DecoderShape LARGE_SHAPE =
            new DecoderShape(16, 768, 16, 12, 12, 64, 2048, 64, 10_000, 1e-5, true, false);

    private static final VersionSize LARGE = VersionSize.of(LARGE_SHAPE);

    @Test
    void shouldKeepAStepOfAnAdapterSmallerStill() {
        VersionSize adapter = VersionSize.of(LARGE_SHAPE, Optional.of(new LoraShape(8, 16, LoraShape.MODULES)));
        WeightsConfig rounded = WeightsConfig.defaults().with(Dtype.BF16);

        assertThat(adapter).isEqualTo(new VersionSize(1_867_776, true));
        assertThat(rounded.versionBytes(adapter)).isEqualTo(3_735_552);
        assertThat(rounded.anchorEvery(adapter)).isEqualTo(8);
        assertThat(rounded.checkpointEvery(adapter)).isEqualTo(22);
        assertThat(rounded.versionBytes(adapter) + rounded.stateBytes(adapter) / 22)
                .as("bytes a step at most")
                .isLessThan(5_000_000);
    }

    @Test
    void shouldKeepAStepOfALargeModelSmallOnTheLog() {
        WeightsConfig rounded = WeightsConfig.defaults().with(Dtype.BF16);
        assertThat(rounded.anchorEvery(LARGE)).isEqualTo(16);
        assertThat(rounded.checkpointEvery(LARGE)).isEqualTo(64);
        long delta = 14_000_000; // measured at steps of 1e-5
        long version = rounded.versionBytes(LARGE);
        assertThat((version + 15 * delta) / 16 + rounded.stateBytes(LARGE) / 64)
                .as("bytes a step")
                .isLessThan(60_000_000);
    }

    @Test
    void shouldDecideByTheModelsSizeUnlessSomebodyDoes() {
        assertThat(WeightsConfig.defaults().anchorEvery(SMALL)).isEqualTo(8);
        assertThat(WeightsConfig.defaults().anchorEvery(LARGE))
                .as("deltas of float32 are half of it, and a chain of 16 would be read for long")
                .isEqualTo(8);
        assertThat(WeightsConfig.defaults().checkpointEvery(SMALL)).isEqualTo(1);
        WeightsConfig given =
                new WeightsConfig("kafka", "", Dtype.BF16, 3, 2, 0, 1, BrokenVersionPolicy.STOP, 4, 100, 1, 1);
        assertThat(given.anchorEvery(LARGE)).isEqualTo(3);
        assertThat(given.checkpointEvery(LARGE)).isEqualTo(2);
        assertThatThrownBy(() ->
                        new WeightsConfig("kafka", "", Dtype.BF16, -1, 2, 0, 1, BrokenVersionPolicy.STOP, 4, 100, 1, 1))
                .hasMessage("anchor_every must be at least 1, or 0 to decide by the model's size: -1");
    }
}
