package dev.millrace.corrections;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.api.Test;

class TokenBatchTest {
    @Test
    void shouldCountTrainedTokensPerSequenceAndInAll() {
        TokenBatch batch = new TokenBatch(new int[] {0, 2, 2, 5}, new byte[] {1, 0, 1, 1, 0});

        assertThat(batch.sequenceCount()).isEqualTo(3);
        assertThat(batch.tokenCount()).isEqualTo(5);
        assertThat(batch.trainedTokens(0)).isEqualTo(1);
        assertThat(batch.trainedTokens(1)).isZero();
        assertThat(batch.trainedTokens(2)).isEqualTo(2);
        assertThat(batch.trainedTokens()).isEqualTo(3);
        assertThat(batch.start(2)).isEqualTo(2);
        assertThat(batch.end(2)).isEqualTo(5);
        assertThat(batch.length(1)).isZero();
        assertThat(batch.isTrained(0)).isTrue();
        assertThat(batch.isTrained(4)).isFalse();
    }

    @Test
    void shouldFindTheSequenceOfATokenAmongEmptyOnes() {
        TokenBatch batch = new TokenBatch(new int[] {0, 0, 2, 2, 2, 3, 3}, new byte[] {1, 1, 1});

        assertThat(batch.sequenceOf(0)).isEqualTo(1);
        assertThat(batch.sequenceOf(1)).isEqualTo(1);
        assertThat(batch.sequenceOf(2)).isEqualTo(4);
        assertThatThrownBy(() -> batch.sequenceOf(3)).isInstanceOf(IndexOutOfBoundsException.class);
    }

    @Test
    void shouldAcceptABatchWithoutSequences() {
        TokenBatch batch = new TokenBatch(new int[] {0}, new byte[0]);

        assertThat(batch.sequenceCount()).isZero();
        assertThat(batch.trainedTokens()).isZero();
        assertThat(batch.groupCount()).isZero();
    }

    @Test
    void shouldTreatEachSequenceAsItsOwnGroupWithoutGroups() {
        TokenBatch batch = new TokenBatch(new int[] {0, 1, 2}, new byte[] {1, 1});

        assertThat(batch.group(1)).isEqualTo(1);
        assertThat(batch.groupCount()).isEqualTo(2);
    }

    @Test
    void shouldKeepGroupsInAnyOrder() {
        TokenBatch batch = new TokenBatch(new int[] {0, 1, 2, 3}, new byte[] {1, 1, 1}, new int[] {4, 0, 4});

        assertThat(batch.group(0)).isEqualTo(4);
        assertThat(batch.group(1)).isZero();
        assertThat(batch.groupCount()).isEqualTo(5);
        assertThat(batch.withMask(new byte[] {0, 1, 0}).group(2)).isEqualTo(4);
    }

    @Test
    void shouldNotChangeWhenTheCallersArraysDo() {
        int[] offsets = {0, 2};
        byte[] mask = {1, 1};
        TokenBatch batch = new TokenBatch(offsets, mask);
        offsets[1] = 1;
        mask[0] = 0;
        batch.mask()[1] = 0;

        assertThat(batch.end(0)).isEqualTo(2);
        assertThat(batch.isTrained(0)).isTrue();
        assertThat(batch.isTrained(1)).isTrue();
    }

    @Test
    void shouldRefuseOffsetsThatDoNotAddUp() {
        assertThatThrownBy(() -> new TokenBatch(new int[0], new byte[0])).hasMessageContaining("length=0");
        assertThatThrownBy(() -> new TokenBatch(new int[] {1, 2}, new byte[2])).hasMessageContaining("offsets[0]=1");
        assertThatThrownBy(() -> new TokenBatch(new int[] {0, 2, 1}, new byte[1]))
                .hasMessageContaining("sequence=1")
                .hasMessageContaining("start=2")
                .hasMessageContaining("end=1");
        assertThatThrownBy(() -> new TokenBatch(new int[] {0, 2}, new byte[3]))
                .hasMessageContaining("last offset=2")
                .hasMessageContaining("tokens in the mask=3");
    }

    @Test
    void shouldNameSequenceAndTokenOfAMaskValueThatIsNeitherZeroNorOne() {
        assertThatThrownBy(() -> new TokenBatch(new int[] {0, 2, 4}, new byte[] {1, 1, 0, -1}))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("sequence=1")
                .hasMessageContaining("token=1")
                .hasMessageContaining("value=-1");
    }

    @Test
    void shouldRefuseGroupsThatDoNotFit() {
        assertThatThrownBy(() -> new TokenBatch(new int[] {0, 1}, new byte[] {1}, new int[] {0, 1}))
                .hasMessageContaining("length=2, sequences=1");
        assertThatThrownBy(() -> new TokenBatch(new int[] {0, 1}, new byte[] {1}, new int[] {-2}))
                .hasMessageContaining("sequence=0, group=-2");
    }

    @Test
    void shouldNameSequenceAndTokenOfNonFiniteLogProb() {
        TokenBatch batch = new TokenBatch(new int[] {0, 2, 5}, new byte[] {1, 1, 0, 1, 1});
        float[] logProbs = {-1f, -1f, Float.NaN, -1f, Float.NEGATIVE_INFINITY};

        assertThatThrownBy(() -> batch.requireFinite("old log-probs", logProbs))
                .isInstanceOfSatisfying(NonFiniteLogProbException.class, e -> {
                    assertThat(e.sequence()).isEqualTo(1);
                })
                .hasMessage("old log-probs must be finite at trained tokens: sequence=1, token=2, value=-Infinity");
    }

    @Test
    void shouldIgnoreContextTokensEvenWhenNaN() {
        TokenBatch batch = new TokenBatch(new int[] {0, 2}, new byte[] {0, 1});

        batch.requireFinite("old log-probs", new float[] {Float.NaN, -1f});
        batch.requireFinite("old log-probs", new double[] {Double.NaN, -1});
        assertThatThrownBy(() -> batch.requireFinite("old log-probs", new float[1]))
                .hasMessage("old log-probs: one element per token is needed: length=1, tokens=2");
    }
}
