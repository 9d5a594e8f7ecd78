package dev.millrace.schemas.run;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.millrace.schemas.run.EpochLineage.Ancestor;
import dev.millrace.schemas.run.ManifestChain.Link;
import dev.millrace.schemas.run.ManifestChain.Taken;
import java.util.Optional;
import java.util.Set;
import org.junit.jupiter.api.Test;

/** {@code ManifestHistoryTest} and {@code VersionHistoryTest} hold what readers with and without hashes rely on. */
class ManifestChainTest {
    private static final long FORGED = 1_000_000;

    private final ManifestChain<String> chain = new ManifestChain<>(Optional.empty());

    private static Link link(long version, long batchId, String sha256) {
        return new Link(version, version - 1, null, batchId, sha256, null, null);
    }

    private static Link delta(long version, String sha256, String baseSha256) {
        return new Link(version, version - 1, null, version - 1, sha256, version - 1, baseSha256);
    }

    private Taken<String> add(long version, String sha256) {
        return chain.add(link(version, version - 1, sha256), sha256);
    }

    @Test
    void shouldPassOverAForgedVersionFarAhead() {
        add(0, "a");
        assertThat(add(FORGED, "z").versions()).isEmpty();
        assertThat(chain.isAhead(FORGED)).isTrue();
        add(1, "b");

        assertThat(chain.newest()).hasValue(1);
        assertThat(chain.settle()).singleElement().satisfies(refused -> {
            assertThat(refused.version()).isEqualTo(FORGED);
            assertThat(refused.why())
                    .isEqualTo("version 2 is due, after version 1 with the weights b, and this is version"
                            + " 1000000 of parent 999999");
        });
        assertThat(add(FORGED, "z").whyNot()).isPresent();
    }

    @Test
    void shouldForgetWhatWaitsOnItsTombstoneAndKeepWhatCounts() {
        add(0, "a");
        add(FORGED, "z");
        chain.deleted(FORGED);
        chain.deleted(0);

        assertThat(chain.isAhead(FORGED)).isFalse();
        assertThat(chain.newest()).hasValue(0);
        assertThat(chain.settle()).isEmpty();
    }

    @Test
    void shouldTakeAnExactSuccessorWhateverItsWeightsAreAndThenPassOverTheRightOne() {
        add(0, "a");
        chain.settle();
        assertThat(add(1, "forged").versions()).containsKey(1L);

        assertThat(add(1, "b").whyNot()).contains("version 1 has the weights forged on the chain, this record says b");
        assertThat(chain.add(delta(2, "c", "b"), "c").whyNot())
                .contains(
                        "version 2 is due, after version 1 with the weights forged, and this is version 2 of parent 1,"
                                + " a delta against version 1 with the weights b");
    }

    @Test
    void shouldPassOverASuccessorOfTheSameBatchWithoutHashes() {
        ManifestChain<String> batches = ManifestChain.ofBatches(0);
        batches.add(Link.ofBatch(0, -1), "a");
        batches.add(Link.ofBatch(1, 0), "b");
        batches.settle();

        assertThat(batches.add(Link.ofBatch(2, 0), "c").whyNot())
                .contains(
                        "version 2 is due, after version 1 of batch 0, and this is version 2 of parent 1 and batch 0");
        assertThat(batches.add(Link.ofBatch(2, 1), "c").versions()).containsEntry(2L, "c");
    }

    @Test
    void shouldPreferOfTwoThatWaitTheOneThatADeltaConfirms() {
        add(0, "a");
        chain.add(delta(3, "d", "right"), "d");
        add(2, "forged");
        add(2, "right");
        add(1, "b");

        assertThat(chain.newest()).hasValue(3);
        assertThat(chain.settle()).extracting(ManifestChain.Refused::value).containsExactly("forged");
    }

    @Test
    void shouldTakeWhatWaitedForAVersionThatWasWrittenAgainWithItsBatch() {
        ManifestChain<String> batches = ManifestChain.ofBatches(0);
        batches.add(Link.ofBatch(0, -1), "a");
        batches.add(Link.ofBatch(1, 70), "forged");
        assertThat(batches.add(Link.ofBatch(2, 1), "c").versions()).isEmpty();

        assertThat(batches.add(Link.ofBatch(1, 0), "b").versions()).containsOnlyKeys(1L, 2L);
        assertThat(batches.newest()).hasValue(2);
    }

    @Test
    void shouldBeginALaterEpochOnlyWithTheVersionOfItsClaim() {
        ManifestChain<String> later = new ManifestChain<>(Optional.of(new Ancestor(0, 5, "e")));
        Link right = new Link(5, 5, 0, 4, "e", null, null);
        assertThat(right.dueParent()).isEqualTo(5);

        later.add(link(5, 4, "e"), "of no older epoch");
        later.add(new Link(5, 5, 0, 4, "other", null, null), "of other weights");
        assertThat(later.newest()).isEmpty();
        assertThat(later.add(right, "e").versions()).containsOnlyKeys(5L);
    }

    @Test
    void shouldBeginWithTheOldestOnlyWhereItIsToldTo() {
        add(7, "h");
        add(8, "i");
        assertThat(chain.newest()).isEmpty();

        assertThat(chain.beginWithOldest()).containsOnlyKeys(7L, 8L);
        assertThat(chain.beginWithOldest()).isEmpty();
        assertThatThrownBy(() -> chain.begin(link(0, -1, "a"), "a"))
                .isInstanceOf(IllegalStateException.class)
                .hasMessage("the chain has begun and ends with version 8");
    }

    @Test
    void shouldBelieveADeltaAgainstALinkThatIsForgotten() {
        for (int version = 0; version < 4; version++) {
            add(version, "hash-" + version);
        }
        chain.forgetBefore(3);
        assertThat(chain.forgottenUpTo()).isEqualTo(2);
        assertThat(chain.add(new Link(4, 3, null, 3, "e", 1L, "hash-1"), "e").versions())
                .containsOnlyKeys(4L);
        assertThat(chain.only(Set.of(3L)).newest()).hasValue(3);
    }
}
