package dev.millrace.stages;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.staleness.BatchVersions;
import dev.millrace.corrections.staleness.VersionSpan;
import dev.millrace.schemas.StageReport;
import java.util.List;
import org.junit.jupiter.api.Test;

class StalenessDampingTest {
    private static final TokenBatch BATCH = new TokenBatch(new int[] {0, 3, 5}, new byte[] {1, 1, 0, 1, 1});
    private static final BatchVersions VERSIONS = new BatchVersions(
            BATCH,
            List.of(List.of(new VersionSpan(6, 0, 1), new VersionSpan(8, 1, 3)), List.of(new VersionSpan(10, 0, 2))));

    @Test
    void shouldHalveWeightsForEveryHalfLifeAndCountTrainedTokens() {
        float[] weights = {2f, 1f, 1f, 1f, 3f};
        StageReport report = new StalenessDamping(new StalenessConfig(8, 0, 2.0))
                .apply(VERSIONS, BATCH, 10, weights)
                .orElseThrow();
        assertThat(weights).containsExactly(2f / 4, 1f / 2, 1f / 2, 1f, 3f); // 4, 2, 2, 0 and 0 versions behind
        assertThat(report.getStage()).isEqualTo("staleness_weights");
        assertThat(report.getTokensSeen()).isEqualTo(4);
        assertThat(report.getTokensChanged()).isEqualTo(2);
        assertThat(report.getSequencesSeen()).isEqualTo(2);
        assertThat(report.getSequencesChanged()).isEqualTo(1);
        assertThat(report.getValues()).containsEntry("mean_factor", (0.25 + 0.5 + 1 + 1) / 4);
    }

    @Test
    void shouldLeaveWeightsAloneWhereNothingIsConfigured() {
        float[] weights = {2f, 1f, 1f, 1f, 3f};
        assertThat(new StalenessDamping(StalenessConfig.defaults()).apply(VERSIONS, BATCH, 10, weights))
                .isEmpty();
        assertThat(weights).containsExactly(2f, 1f, 1f, 1f, 3f);
    }
}
