package dev.millrace.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import org.junit.jupiter.api.Test;

class TypedCommandTest {
    @Test
    void shouldShowWhatWasTypedWithoutItsSecrets() {
        assertThat(TypedCommand.of(List.of(
                        "replay",
                        "--set",
                        "kafka.ssl.truststore.password=hunter2",
                        "--set=kafka.producer.ssl.key.password=hunter3",
                        "--set",
                        "run.schema_registry_url=https://anna:hunter4@registry:8081")))
                .startsWith("./millrace replay --set kafka.ssl.truststore.password=")
                .contains("--set=kafka.producer.ssl.key.password=", "https://anna:", "@registry:8081")
                .doesNotContain("hunter");
    }

    @Test
    void shouldShowReferencesAndWhatIsNoSecret() {
        assertThat(TypedCommand.of(List.of(
                        "load-test",
                        "--set",
                        "kafka.ssl.truststore.password=${env:TRUST}",
                        "--set",
                        "rollouts.response_tokens.value=512",
                        "--set",
                        "kafka.linger.ms=5")))
                .isEqualTo("./millrace load-test --set kafka.ssl.truststore.password=${env:TRUST}"
                        + " --set rollouts.response_tokens.value=512 --set kafka.linger.ms=5");
    }
}
