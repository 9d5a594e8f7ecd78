package dev.millrace.schemas.run;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.schemas.Examples;
import java.nio.charset.StandardCharsets;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class RecordKeysTest {

    @Test
    void shouldNamePolicyEpochAndVersionOfAManifest() {
        VersionKey key = VersionKey.of(Examples.policyVersion());

        assertThat(key.bytes()).asString(StandardCharsets.UTF_8).isEqualTo("default/2/9");
        assertThat(VersionKey.parse(key.bytes())).contains(key);
        assertThat(VersionKey.of(new RunIdentity("run-1", 2, "default"), 9)).isEqualTo(key);
    }

    @Test
    void shouldTellEpochsApartThatHaveTheSameVersion() {
        assertThat(VersionKey.of(new RunIdentity("run-1", 1, "default"), 0).bytes())
                .isNotEqualTo(
                        VersionKey.of(new RunIdentity("run-1", 0, "default"), 0).bytes());
    }

    @Test
    void shouldNameTensorAndChunkBehindTheVersion() {
        byte[] key = VersionKey.of(Examples.weightChunk());

        assertThat(key).asString(StandardCharsets.UTF_8).isEqualTo("default/2/9/lm_head.weight/1");
        assertThat(VersionKey.parse(key)).contains(new VersionKey("default", 2, 9));
    }

    @Test
    void shouldNameServerAndEpochOfAHeartbeat() {
        assertThat(ServerKey.of(Examples.serving()))
                .asString(StandardCharsets.UTF_8)
                .isEqualTo("generator-0/2");
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "default/9", "default/2/9x", "default/02/9", "default/-1/9", "/2/9", "a b/2/9"})
    void shouldTakeNothingElseForAKey(String text) {
        assertThat(VersionKey.parse(text.getBytes(StandardCharsets.UTF_8))).isEmpty();
        assertThat(VersionKey.parse(null)).isEmpty();
    }
}
