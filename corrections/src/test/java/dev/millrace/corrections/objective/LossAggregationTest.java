package dev.millrace.corrections.objective;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.millrace.corrections.TokenBatch;
import org.junit.jupiter.api.Test;

class LossAggregationTest {
    /** Trained tokens per sequence: 2, 0, 1, none at all in an empty one. */
    private final TokenBatch batch = new TokenBatch(new int[] {0, 3, 5, 6, 6}, new byte[] {1, 0, 1, 0, 0, 1});

    private final TokenBatch nothingTrained = new TokenBatch(new int[] {0, 2}, new byte[] {0, 0});

    @Test
    void shouldDivideByTrainedTokensOrBySequencesThatHaveOne() {
        assertThat(new LossAggregation.TokenMean().coefficients(batch)).containsExactly(1 / 3.0, 0, 1 / 3.0, 0);
        assertThat(new LossAggregation.TokenSum().coefficients(batch)).containsExactly(1, 0, 1, 0);
        assertThat(new LossAggregation.SeqMeanTokenSum().coefficients(batch)).containsExactly(0.5, 0, 0.5, 0);
        assertThat(new LossAggregation.SeqMeanTokenSumNorm(10).coefficients(batch))
                .containsExactly(0.05, 0, 0.05, 0);
        assertThat(new LossAggregation.SeqMeanTokenMean().coefficients(batch)).containsExactly(0.25, 0, 0.5, 0);
    }

    @Test
    void shouldDivideByTheWholeBatchWhenThisIsAPartOfIt() {
        GlobalBatch whole = new GlobalBatch(12, 4, 2);

        assertThat(new LossAggregation.TokenMean().coefficients(batch, whole))
                .containsExactly(2 / 12.0, 0, 2 / 12.0, 0);
        assertThat(new LossAggregation.TokenSum().coefficients(batch, whole)).containsExactly(2, 0, 2, 0);
        assertThat(new LossAggregation.SeqMeanTokenMean().coefficients(batch, whole))
                .containsExactly(0.25, 0, 0.5, 0);
        assertThat(new LossAggregation.TokenMean().coefficients(nothingTrained, whole))
                .containsExactly(0);
    }

    @Test
    void shouldRefuseAMeanOverNothing() {
        assertThatThrownBy(() -> new LossAggregation.TokenMean().coefficients(nothingTrained))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("no trained token in the batch: a mean over no tokens");
        assertThatThrownBy(() -> new LossAggregation.SeqMeanTokenMean().coefficients(nothingTrained))
                .hasMessageContaining("a mean over no sequences");
        assertThat(new LossAggregation.TokenSum().coefficients(nothingTrained)).containsExactly(0);
    }

    @Test
    void shouldRefuseShardsThatWouldDivideByTheirOwnCount() {
        GlobalBatch sequencesOnly = new GlobalBatch(GlobalBatch.OF_THIS_BATCH, 8, 2);

        assertThatThrownBy(() -> new LossAggregation.TokenMean().coefficients(batch, sequencesOnly))
                .hasMessageContaining("with 2 shards the tokens of the whole batch must be given");
        assertThat(new LossAggregation.SeqMeanTokenSum().coefficients(batch, sequencesOnly))
                .containsExactly(0.25, 0, 0.25, 0);
    }

    @Test
    void shouldRefuseCountsAndLengthsThatDivideByNothing() {
        assertThatThrownBy(() -> new GlobalBatch(0, 1, 1)).hasMessageContaining("tokens of the whole batch");
        assertThatThrownBy(() -> new GlobalBatch(1, 1, 0)).hasMessageContaining("shards");
        assertThatThrownBy(() -> new LossAggregation.SeqMeanTokenSumNorm(0))
                .hasMessageContaining("loss_scale_factor must be above 0 and finite");
        assertThatThrownBy(() -> new LossAggregation.SeqMeanTokenSumNorm(Double.NaN))
                .hasMessageContaining("loss_scale_factor must be above 0 and finite");
    }
}
