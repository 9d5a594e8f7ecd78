package dev.millrace.corrections.stage;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.millrace.corrections.CorrectionUnit;
import dev.millrace.corrections.ratio.MissingOldLogProbs;
import org.junit.jupiter.api.Test;

class StageSettingsTest {
    /** One component of each sort. */
    public record MaxRl2Mask(double threshold, long maxVersions, boolean harmfulOnly, String text)
            implements MaskStage {
        @Override
        public CorrectionUnit unit() {
            return CorrectionUnit.TOKEN;
        }

        @Override
        public StageOutcome apply(StageBatch batch) {
            return batch.observed(this, StageSettings.of(this));
        }
    }

    @Test
    void shouldNameAStageAndItsNumbersAsAConfigurationDoes() {
        MaxRl2Mask stage = new MaxRl2Mask(0.5, 8, true, "x");

        assertThat(stage.name()).isEqualTo("max_rl2_mask");
        assertThat(StageSettings.of(stage))
                .containsOnlyKeys("threshold", "max_versions", "harmful_only")
                .containsEntry("threshold", 0.5)
                .containsEntry("max_versions", 8.0)
                .containsEntry("harmful_only", 1.0);
    }

    @Test
    void shouldRefuseAStageWhoseSettingsCannotBeRead() {
        assertThatThrownBy(() -> StageSettings.of(MissingOldLogProbs.MASK.stage()))
                .hasMessageContaining("a stage must be a public record")
                .hasMessageContaining("WithoutOldLogProbs");
    }
}
