package dev.millrace.weights;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.api.Test;

class ManifestHistoryTest {
    private final ManifestHistory history = new ManifestHistory(2);

    @Test
    void shouldForgetAllButTheNewestManifests() {
        for (int version = 0; version < 4; version++) {
            history.add(Manifests.of(version, "hash-" + version));
        }

        assertThat(history.newest()).get().extracting(m -> m.getVersion()).isEqualTo(3L);
        assertThat(history.get(2).getVersion()).isEqualTo(2);
        assertThatThrownBy(() -> history.get(1))
                .isInstanceOf(VersionUnavailableException.class)
                .hasMessage("version 1 is older than the 2 newest manifests that are kept (kept_manifests)");
    }

    @Test
    void shouldSayThatAVersionIsNotThereYet() {
        assertThatThrownBy(() -> history.get(0))
                .isInstanceOf(VersionUnavailableException.class)
                .hasMessage("version 0 is not among the published ones; the newest is none");
        history.add(Manifests.of(0, "a"));
        assertThatThrownBy(() -> history.get(9))
                .isInstanceOf(VersionUnavailableException.class)
                .hasMessage("version 9 is not among the published ones; the newest is 0");
    }

    @Test
    void shouldTakeTheSameManifestTwiceButNotAnotherOneOfItsVersion() {
        history.add(Manifests.of(0, "a"));
        history.add(Manifests.of(0, "a"));

        assertThatThrownBy(() -> history.add(Manifests.of(0, "b")))
                .isInstanceOf(IllegalStateException.class)
                .hasMessage(
                        "version 0 of policy was published twice, with weights a and b: two learners wrote to one run");
    }

    @Test
    void shouldNotBringBackWhatItHasForgotten() {
        for (int version = 0; version < 4; version++) {
            history.add(Manifests.of(version, "hash-" + version));
        }
        history.add(Manifests.of(0, "hash-0"));

        assertThat(history.get(2).getVersion()).isEqualTo(2);
        assertThatThrownBy(() -> history.get(0)).hasMessageContaining("older than the 2 newest");
    }
}
