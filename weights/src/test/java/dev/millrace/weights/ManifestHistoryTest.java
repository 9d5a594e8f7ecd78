package dev.millrace.weights;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.millrace.policy.decoder.LoraShape;
import dev.millrace.schemas.AdapterBase;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.TensorEntry;
import dev.millrace.schemas.TensorLocation;
import dev.millrace.schemas.run.EpochLineage.Ancestor;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Test;

class ManifestHistoryTest {
    private final ManifestHistory history = new ManifestHistory(Optional.empty(), 2);
    private long offset;

    private Optional<String> add(PolicyVersion manifest) {
        return history.add(manifest, offset++);
    }

    private Optional<String> add(long version, String hash) {
        return add(Manifests.of(version, hash));
    }

    private static PolicyVersion delta(long version, String hash, String baseHash) {
        PolicyVersion whole = Manifests.of(version, hash);
        return PolicyVersion.newBuilder(whole)
                .setWeights(TensorLocation.newBuilder(whole.getWeights())
                        .setBaseVersion(version - 1)
                        .setBaseSha256(baseHash)
                        .setAnchorVersion(0L)
                        .build())
                .build();
    }

    private long newest() {
        return history.newest().orElseThrow().getVersion();
    }

    @Test
    void shouldForgetAllButTheNewestManifests() {
        for (int version = 0; version < 4; version++) {
            assertThat(add(version, "hash-" + version)).isEmpty();
        }

        assertThat(newest()).isEqualTo(3);
        assertThat(history.get(2).getVersion()).isEqualTo(2);
        assertThatThrownBy(() -> history.get(1))
                .isInstanceOf(VersionUnavailableException.class)
                .hasMessage("version 1 is older than the 2 newest manifests that are kept (kept_manifests)");
    }

    @Test
    void shouldKeepWhatAdaptersArePutUponHoweverOldItIs() {
        add(0, "model");
        for (int version = 1; version < 6; version++) {
            assertThat(add(PolicyVersion.newBuilder(Manifests.of(version, "hash-" + version))
                            .setAdapter(new AdapterBase(8, 16.0, LoraShape.MODULES, 0L, "model"))
                            .build()))
                    .isEmpty();
        }

        assertThat(history.get(0).getWeights().getSha256()).isEqualTo("model");
        assertThat(history.before(5).orElseThrow().get(0).getVersion()).isZero();
        assertThatThrownBy(() -> history.get(1)).isInstanceOf(VersionUnavailableException.class);
    }

    /** As decoded by a reader, so that nothing is shared by accident. */
    private static PolicyVersion decoded(long version) {
        TensorEntry tensor = TensorEntry.newBuilder()
                .setName(new String("lm_head.weight".toCharArray()))
                .setDtype(new String("BF16".toCharArray()))
                .setDims(new ArrayList<>(List.of(16L, 8L)))
                .setBytes(256)
                .setChunks(1)
                .setSha256("hash " + version)
                .build();
        PolicyVersion whole = Manifests.of(version, "hash " + version);
        return PolicyVersion.newBuilder(whole)
                .setWeights(TensorLocation.newBuilder(whole.getWeights())
                        .setTensors(List.of(tensor))
                        .build())
                .build();
    }

    @Test
    void shouldKeepTheNamesOfTensorsOnceForAllManifests() {
        PolicyVersion second = decoded(1);
        add(decoded(0));
        add(second);

        TensorEntry one = history.get(0).getWeights().getTensors().get(0);
        TensorEntry other = history.get(1).getWeights().getTensors().get(0);
        assertThat(other.getName()).isSameAs(one.getName());
        assertThat(other.getDtype()).isSameAs(one.getDtype());
        assertThat(other.getDims()).isSameAs(one.getDims());
        assertThat(history.get(1)).as("every value stays").isEqualTo(decoded(1));
        assertThat(history.get(0)).isEqualTo(decoded(0));
    }

    @Test
    void shouldSayThatAVersionIsNotThereYet() {
        assertThatThrownBy(() -> history.get(0))
                .isInstanceOf(VersionUnavailableException.class)
                .hasMessage("version 0 is not among the published ones; the newest is none");
        add(0, "a");
        assertThatThrownBy(() -> history.get(9))
                .isInstanceOf(VersionUnavailableException.class)
                .hasMessage("version 9 is not among the published ones; the newest is 0");
    }

    @Test
    void shouldPassOverAnotherManifestOfAVersionOnTheChainButTakeACopy() {
        add(0, "a");
        assertThat(add(0, "a")).as("a copy").isEmpty();

        assertThat(add(0, "b")).contains("version 0 has the weights a on the chain, this record says b");
        assertThat(history.get(0).getWeights().getSha256()).isEqualTo("a");
    }

    @Test
    void shouldPassOverAVersionFarAheadOnceTheLogIsRead() {
        add(0, "a");
        assertThat(add(1_000_000, "z")).as("it may wait for those before it").isEmpty();
        assertThat(history.settle())
                .containsEntry(
                        1L,
                        "version 1 is due, after version 0 with the weights a, and this is version 1000000 of"
                                + " parent 999999");
        assertThat(add(1_000_000, "z")).isPresent();
        assertThat(add(1, "b")).isEmpty();

        assertThat(newest()).isEqualTo(1);
    }

    @Test
    void shouldNotBeginWithAnythingButTheFirstVersion() {
        add(7, "z");
        assertThat(history.newest()).isEmpty();
        assertThat(history.settle()).hasSize(1);
        add(0, "a");
        assertThat(newest()).isZero();
    }

    @Test
    void shouldPassOverADeltaAgainstOtherWeights() {
        history.settle();
        add(0, "a");
        assertThat(add(delta(1, "b", "other")))
                .contains("version 1 is due, after version 0 with the weights a, and this is version 1 of parent 0,"
                        + " a delta against version 0 with the weights other");
        assertThat(add(delta(1, "b", "a"))).isEmpty();
        assertThat(newest()).isEqualTo(1);
    }

    @Test
    void shouldPassOverAVersionOfAnotherParent() {
        history.settle();
        add(0, "a");
        PolicyVersion orphan = PolicyVersion.newBuilder(Manifests.of(1, "b"))
                .setParentVersion(9)
                .build();
        assertThat(add(orphan)).isPresent();
        assertThat(newest()).isZero();
    }

    /** Compaction keeps the last record per key, so a rewritten one follows its successors. */
    @Test
    void shouldTakeTheChainWhateverOrderCompactionLeaves() {
        add(0, "a");
        add(delta(2, "c", "b"));
        add(delta(3, "d", "c"));
        assertThat(newest()).isZero();
        add(delta(1, "b", "a"));

        assertThat(newest()).isEqualTo(3);
        assertThat(history.settle()).isEmpty();
    }

    @Test
    void shouldPreferTheVersionThatItsSuccessorIsADeltaAgainst() {
        add(0, "a");
        add(1, "foreign");
        add(delta(2, "c", "b"));
        add(1, "b");

        assertThat(newest()).isEqualTo(2);
        assertThat(history.get(1).getWeights().getSha256()).isEqualTo("b");
    }

    @Test
    void shouldGoOnFromWhereTheLogWasCutOff() {
        for (int version = 0; version < 4; version++) {
            add(version, "hash-" + version);
        }

        ManifestHistory cut = history.before(3).orElseThrow();
        assertThat(cut.newest().orElseThrow().getVersion()).isEqualTo(2);
        assertThat(cut.add(Manifests.of(3, "another"), 3)).isEmpty();
        assertThat(cut.has(Manifests.of(3, "another"))).isTrue();
        assertThat(cut.has(Manifests.of(3, "hash-3"))).isFalse();
        assertThat(history.before(1)).as("what lies before is forgotten").isEmpty();
    }

    @Test
    void shouldTakeTheOptimizersStateThatACopyComesWith() {
        for (int version = 0; version < 3; version++) {
            add(version, "hash-" + version);
        }
        PolicyVersion plain = Manifests.of(2, "hash-2");
        PolicyVersion state = PolicyVersion.newBuilder(plain)
                .setOptimizer(Manifests.of(2, "state").getWeights())
                .build();
        PolicyVersion other =
                PolicyVersion.newBuilder(state).setTokensTrained(7).build();

        assertThat(history.add(other, 3)).isEmpty();
        assertThat(history.newest()).as("which is none in all else").contains(plain);
        assertThat(history.add(state, 4)).isEmpty();
        assertThat(history.newest()).contains(state);
        assertThat(history.get(2)).isEqualTo(state);
        assertThat(history.add(plain, 5)).isEmpty();
        assertThat(history.newest()).as("it stays").contains(state);
        assertThat(history.add(Manifests.of(3, "hash-3"), 6)).isEmpty();
        assertThat(history.before(6).orElseThrow().newest()).contains(state);
        assertThat(history.before(4).orElseThrow().newest())
                .as("the log was cut off before it")
                .contains(plain);
    }

    @Test
    void shouldBeginALaterEpochWithTheVersionThatItsClaimNames() {
        ManifestHistory second = new ManifestHistory(Optional.of(new Ancestor(0, 5, "e")), 9);
        PolicyVersion right = PolicyVersion.newBuilder(Manifests.of(5, "e"))
                .setParentVersion(5)
                .setParentEpoch(0)
                .build();

        assertThat(second.add(Manifests.of(0, "a"), 0)).contains("""
                the epoch begins with version 5 of epoch 0, which has the weights e, and this is version 0 of parent -1""");
        second.settle();
        assertThat(second.add(PolicyVersion.newBuilder(right).setParentEpoch(1).build(), 1))
                .isPresent();
        assertThat(second.add(
                        PolicyVersion.newBuilder(Manifests.of(5, "other"))
                                .setParentEpoch(0)
                                .build(),
                        2))
                .isPresent();
        assertThat(second.add(right, 3)).isEmpty();
        assertThat(second.add(Manifests.of(6, "f"), 4)).isEmpty();
        assertThat(second.newest().orElseThrow().getVersion()).isEqualTo(6);
    }

    @Test
    void shouldNotBringBackWhatItHasForgotten() {
        for (int version = 0; version < 4; version++) {
            add(version, "hash-" + version);
        }
        add(0, "hash-0");

        assertThat(history.get(2).getVersion()).isEqualTo(2);
        assertThatThrownBy(() -> history.get(0)).hasMessageContaining("older than the 2 newest");
    }
}
