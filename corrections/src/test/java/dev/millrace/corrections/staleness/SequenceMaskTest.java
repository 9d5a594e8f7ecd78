package dev.millrace.corrections.staleness;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.millrace.corrections.NonFiniteLogProbException;
import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.ratio.LogRatio;
import java.util.Arrays;
import org.junit.jupiter.api.Test;

class SequenceMaskTest {
    /** Mean of log behavior - log current over trained tokens: 0.5, 0.5, -0.5, 0.25. */
    private final TokenBatch batch = new TokenBatch(new int[] {0, 3, 5, 6, 8}, new byte[] {1, 0, 1, 1, 1, 1, 1, 1});

    private final float[] behavior = {-1f, Float.NaN, -1f, -1f, -1f, -1f, -1f, -1f};
    private final float[] current = {-1.25f, 0f, -1.75f, -2f, -1f, -0.5f, -1.5f, -1f};

    @Test
    void shouldRejectDriftedSequencesOfNegativeAdvantageOnly() {
        byte[] mask = new byte[8];
        int negative = new SequenceMask(0.4)
                .compute(batch, LogRatio.full(current, behavior), new double[] {-1, 1, -1, -1}, mask);

        assertThat(mask).containsExactly(0, 0, 0, 1, 1, 1, 1, 1);
        assertThat(negative).isEqualTo(3);
    }

    @Test
    void shouldKeepSequencesExactlyAtTheThreshold() {
        byte[] mask = new byte[8];
        new SequenceMask(0.5).compute(batch, LogRatio.full(current, behavior), new double[] {-1, -1, -1, -1}, mask);

        assertThat(mask).isEqualTo(batch.mask());
    }

    @Test
    void shouldNotRejectWhatThePolicyNowFindsMoreLikely() {
        byte[] mask = new byte[8];
        new SequenceMask(0).compute(batch, LogRatio.full(current, behavior), new double[] {1, 1, -5, 0}, mask);

        assertThat(mask).isEqualTo(batch.mask());
    }

    @Test
    void shouldNotDependOnLength() {
        float[] old = new float[1000];
        float[] now = new float[1000];
        byte[] trained = new byte[1000];
        Arrays.fill(now, -0.25f);
        Arrays.fill(trained, (byte) 1);
        byte[] mask = new byte[1000];
        TokenBatch lengths = new TokenBatch(new int[] {0, 1, 1000}, trained);

        new SequenceMask(0.25).compute(lengths, LogRatio.full(now, old), new double[] {-1, -1}, mask);
        assertThat(mask).isEqualTo(trained);
        new SequenceMask(0.24).compute(lengths, LogRatio.full(now, old), new double[] {-1, -1}, mask);
        assertThat(mask).containsOnly(0);
    }

    @Test
    void shouldIgnoreAdvantagesOfSequencesWithoutTrainedTokens() {
        TokenBatch context = new TokenBatch(new int[] {0, 0, 1}, new byte[1]);

        assertThat(new SequenceMask(0.1)
                        .compute(
                                context,
                                LogRatio.full(new float[1], new float[1]),
                                new double[] {Double.NaN, Double.NaN},
                                new byte[1]))
                .isZero();
    }

    @Test
    void shouldRefuseWhatHasNoAnswer() {
        assertThatThrownBy(() -> new SequenceMask(0.1)
                        .compute(
                                batch,
                                LogRatio.full(current, behavior),
                                new double[] {0, Double.NaN, 0, 0},
                                new byte[8]))
                .hasMessageContaining("sequence=1");
        assertThatThrownBy(() -> new SequenceMask(0.1)
                        .compute(batch, LogRatio.full(current, behavior), new double[3], new byte[8]))
                .hasMessageContaining("advantages=3");
        assertThatThrownBy(() -> new SequenceMask(Double.NaN)).hasMessageContaining("threshold=NaN");
        current[3] = Float.NEGATIVE_INFINITY;
        assertThatThrownBy(() -> new SequenceMask(0.1)
                        .compute(batch, LogRatio.full(current, behavior), new double[4], new byte[8]))
                .isInstanceOf(NonFiniteLogProbException.class)
                .hasMessageContaining("sequence=1, token=0");
    }
}
