package dev.millrace.corrections.staleness;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.millrace.corrections.TokenBatch;
import java.util.List;
import java.util.Random;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

class StalenessLimitTest {
    /** Two sequences: one whose weights were swapped after two tokens, one sampled by version 7 throughout. */
    private final TokenBatch batch = new TokenBatch(new int[] {0, 5, 7}, new byte[] {1, 1, 0, 1, 1, 1, 1});

    private final BatchVersions versions = new BatchVersions(
            batch,
            List.of(List.of(new VersionSpan(3, 0, 2), new VersionSpan(6, 3, 5)), List.of(new VersionSpan(7, 0, 2))));

    @Test
    void shouldMaskTokensOlderThanTheLimit() {
        byte[] mask = new byte[7];
        StalenessSummary summary = new StalenessLimit(2).maskTokens(versions, 8, mask);

        assertThat(mask).containsExactly(0, 0, 0, 1, 1, 1, 1);
        // staleness 5 twice, 2 twice, 1 twice
        assertThat(summary).isEqualTo(new StalenessSummary(5, 16.0 / 6));
    }

    @Test
    void shouldKeepTokensExactlyAtTheLimit() {
        byte[] mask = new byte[7];
        new StalenessLimit(5).maskTokens(versions, 8, mask);

        assertThat(mask).isEqualTo(batch.mask());
    }

    @Test
    void shouldRejectWholeSequencesWithAnyTokenOlderThanTheLimit() {
        byte[] mask = new byte[7];
        new StalenessLimit(2).rejectSequences(versions, 8, mask);

        assertThat(mask).containsExactly(0, 0, 0, 0, 0, 1, 1);
    }

    @Test
    void shouldNotRejectForStaleSpansWithoutTrainedTokens() {
        TokenBatch prompted = new TokenBatch(new int[] {0, 3}, new byte[] {0, 1, 1});
        BatchVersions spans =
                new BatchVersions(prompted, List.of(List.of(new VersionSpan(0, 0, 1), new VersionSpan(9, 1, 3))));
        byte[] mask = new byte[3];
        StalenessSummary summary = new StalenessLimit(1).rejectSequences(spans, 9, mask);

        assertThat(mask).containsExactly(0, 1, 1);
        assertThat(summary.oldest()).isZero();
    }

    @Test
    void shouldHandleEmptyAndFullyMaskedSequences() {
        TokenBatch bare = new TokenBatch(new int[] {0, 0, 2}, new byte[2]);
        BatchVersions spans = new BatchVersions(bare, List.of(List.of(), List.of()));

        assertThat(new StalenessLimit(0).rejectSequences(spans, 4, new byte[2]))
                .isEqualTo(new StalenessSummary(0, 0.0));
    }

    @Test
    void shouldRefuseSpansNewerThanTheCurrentVersion() {
        assertThatThrownBy(() -> new StalenessLimit(2).maskTokens(versions, 6, new byte[7]))
                .hasMessageContaining("sequence=1")
                .hasMessageContaining("currentVersion=6");
    }

    @Test
    void shouldRefuseSpansThatOverlapOrLeaveATrainedTokenOut() {
        assertThatThrownBy(() -> new BatchVersions(
                        batch,
                        List.of(
                                List.of(new VersionSpan(3, 0, 4), new VersionSpan(6, 3, 5)),
                                List.of(new VersionSpan(7, 0, 2)))))
                .hasMessageContaining("in order")
                .hasMessageContaining("sequence=0");
        assertThatThrownBy(() -> new BatchVersions(
                        batch, List.of(List.of(new VersionSpan(3, 0, 4)), List.of(new VersionSpan(7, 0, 2)))))
                .hasMessageContaining("sequence=0, token=4");
        assertThatThrownBy(() -> new BatchVersions(
                        batch, List.of(List.of(new VersionSpan(3, 0, 5)), List.of(new VersionSpan(7, 0, 3)))))
                .hasMessageContaining("sequence=1");
        assertThatThrownBy(() -> new BatchVersions(batch, List.of())).hasMessageContaining("lists=0, sequences=2");
        assertThatThrownBy(() -> new VersionSpan(-1, 0, 1)).hasMessageContaining("version=-1");
        assertThatThrownBy(() -> new VersionSpan(1, 2, 1)).hasMessageContaining("start=2");
        assertThatThrownBy(() -> new StalenessLimit(-1)).hasMessageContaining("max_versions must be at least 0: -1");
    }

    @Test
    void shouldGiveFactorOneOnPolicyAndNeverMore() {
        StalenessDamping damping = new StalenessDamping(0.1);
        assertThat(damping.factor(0)).isEqualTo(1.0);
        IntStream.range(0, 50).forEach(s -> assertThat(damping.factor(s + 1)).isBetween(0.0, damping.factor(s)));
    }

    @Test
    void shouldKeepMoreUnderALargerLimitOnRandomBatches() {
        Random random = new Random(3);
        for (int round = 0; round < 100; round++) {
            int tokens = random.nextInt(30);
            byte[] trained = new byte[tokens];
            long[] perToken = new long[tokens];
            for (int t = 0; t < tokens; t++) {
                trained[t] = (byte) random.nextInt(2);
                perToken[t] = random.nextInt(6);
            }
            TokenBatch one = new TokenBatch(new int[] {0, tokens}, trained);
            BatchVersions spans = new BatchVersions(
                    one,
                    List.of(IntStream.range(0, tokens)
                            .mapToObj(t -> new VersionSpan(perToken[t], t, t + 1))
                            .toList()));
            for (int limit = 0; limit < 7; limit++) {
                byte[] mask = new byte[tokens];
                new StalenessLimit(limit).maskTokens(spans, 6, mask);
                byte[] whole = new byte[tokens];
                new StalenessLimit(limit).rejectSequences(spans, 6, whole);
                boolean anyStale = false;
                for (int t = 0; t < tokens; t++) {
                    assertThat(mask[t]).isEqualTo(6 - perToken[t] <= limit ? trained[t] : 0);
                    anyStale |= trained[t] == 1 && mask[t] == 0;
                }
                assertThat(whole).isEqualTo(anyStale ? new byte[tokens] : trained);
            }
        }
    }

    @Test
    void shouldTakeOneVersionPerSequence() {
        byte[] mask = new byte[7];
        new StalenessLimit(1).maskTokens(BatchVersions.wholeSequences(batch, new long[] {4, 7}), 8, mask);

        assertThat(mask).containsExactly(0, 0, 0, 0, 0, 1, 1);
        assertThatThrownBy(() -> BatchVersions.wholeSequences(batch, new long[1]))
                .hasMessageContaining("versions=1");
    }
}
