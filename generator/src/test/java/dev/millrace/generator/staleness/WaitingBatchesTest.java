package dev.millrace.generator.staleness;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.generator.staleness.ReleasedSamples.WaitingBatches;
import dev.millrace.schemas.rollout.SampleName;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;

class WaitingBatchesTest {
    private static final SampleName A = new SampleName("a", 0);
    private static final SampleName B = new SampleName("b", 0);
    private static final SampleName C = new SampleName("c", 1);

    private final WaitingBatches batches = new WaitingBatches(-1, List.of());

    private List<SampleName> settled() {
        List<SampleName> settled = new ArrayList<>();
        batches.settle(settled::add);
        return settled;
    }

    @Test
    void shouldConsumeBatchesInTheOrderOfTheirIdsUpToTheNewestManifest() {
        batches.add(1, 30, Set.of(B));
        batches.add(0, 10, Set.of(A));
        batches.add(2, 50, Set.of(C));

        batches.consumedThrough(1);

        assertThat(settled()).containsExactly(A, B);
        assertThat(batches.settledThrough()).isEqualTo(1);
        assertThat(batches.firstOffset()).hasValue(50);
        assertThat(List.of(A, B, C)).extracting(batches::has).containsExactly(false, false, true);
    }

    @Test
    void shouldConsumeAStarvedBatchOnlyBehindTheOneBeforeIt() {
        batches.starved(1);
        batches.add(0, 10, Set.of(A));
        batches.add(1, 30, Set.of(B));

        assertThat(settled()).as("batch 0 waits for its step").isEmpty();
        assertThat(batches.starved()).containsExactly(1L);
        batches.starved(0);

        assertThat(settled()).containsExactly(A, B);
        assertThat(batches.starved()).as("told, and of no further use").isEmpty();
    }

    @Test
    void shouldConsumeWhatACopyOrAForgeryOfABatchHasWithIt() {
        assertThat(batches.add(0, 10, Set.of(A))).isTrue();
        assertThat(batches.add(0, 12, Set.of(B))).isFalse();

        batches.consumedThrough(0);

        assertThat(settled()).containsExactlyInAnyOrder(A, B);
    }

    @Test
    void shouldTakeNoBatchThatWasConsumedNorAnyBeyondWhatItCanHold() {
        WaitingBatches later = new WaitingBatches(7, List.of());

        assertThat(later.takes(7)).isFalse();
        assertThat(later.takes(8)).isTrue();
        for (long batch = 8; batch < 8 + 4096; batch++) {
            later.add(batch, batch, Set.of());
        }
        assertThat(later.takes(5000)).isFalse();
    }
}
