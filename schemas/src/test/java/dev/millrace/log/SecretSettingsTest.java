package dev.millrace.log;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class SecretSettingsTest {
    private static final String NAME = "ssl.truststore.password";

    @TempDir
    private Path folder;

    private Path file;

    @BeforeEach
    void writeSecrets() throws Exception {
        file = folder.resolve("secrets.properties");
        Files.writeString(file, "trust=hunter2\nurl=http://registry:8081\nodd=p@ss/w:rd %\n");
    }

    private static Map<String, String> forClients(String name, String written) {
        return SecretSettings.forClients(Map.of(name, SecretText.ofSetting(name, written)), "kafka.");
    }

    private String reference(String key) {
        return "${file:" + file + ":" + key + "}";
    }

    @Test
    void shouldLeaveReferencesToTheClientsOfKafka() {
        Map<String, String> settings = forClients(NAME, reference("trust"));
        assertThat(settings)
                .containsEntry(NAME, reference("trust"))
                .containsEntry("config.providers", "file")
                .containsEntry(
                        "config.providers.file.class", "org.apache.kafka.common.config.provider.FileConfigProvider");
        Map<String, Object> consumer = new HashMap<>(settings);
        consumer.put("bootstrap.servers", "localhost:1");
        consumer.put("key.deserializer", "org.apache.kafka.common.serialization.ByteArrayDeserializer");
        consumer.put("value.deserializer", "org.apache.kafka.common.serialization.ByteArrayDeserializer");
        assertThat(new ConsumerConfig(consumer).getPassword(NAME).value())
                .as("what a client of Kafka's finds")
                .isEqualTo("hunter2");
    }

    @Test
    void shouldFollowReferencesInsideALongerText() {
        String line = "Module required username=\"bob\" password=\"" + reference("trust") + "\";";
        Map<String, Object> consumer = new HashMap<>(forClients("sasl.jaas.config", line));
        consumer.put("bootstrap.servers", "localhost:1");
        consumer.put("key.deserializer", "org.apache.kafka.common.serialization.ByteArrayDeserializer");
        consumer.put("value.deserializer", "org.apache.kafka.common.serialization.ByteArrayDeserializer");
        assertThat(new ConsumerConfig(consumer).getPassword("sasl.jaas.config").value())
                .isEqualTo("Module required username=\"bob\" password=\"hunter2\";");
    }

    @Test
    void shouldAddNothingWhereThereAreNoReferences() {
        assertThat(forClients(NAME, "hunter2")).isEqualTo(Map.of(NAME, "hunter2"));
    }

    @Test
    void shouldRefuseAReferenceThatLeadsNowhere() {
        assertThatThrownBy(() -> forClients(NAME, "${env:MILLRACE_NO_SUCH_VARIABLE}"))
                .isInstanceOf(SecretException.class)
                .hasMessage("kafka.ssl.truststore.password refers to ${env:MILLRACE_NO_SUCH_VARIABLE}, and there is no"
                        + " environment variable MILLRACE_NO_SUCH_VARIABLE; set it before the start");
        assertThatThrownBy(() -> forClients(NAME, "${file:" + folder + "/none:trust}"))
                .hasMessage("kafka.ssl.truststore.password refers to ${file:" + folder
                        + "/none:trust}, and there is no file " + folder
                        + "/none; create it with a line key=value for each secret, or correct the path");
        assertThatThrownBy(() -> forClients(NAME, reference("none")))
                .hasMessage("kafka.ssl.truststore.password refers to " + reference("none") + ", and the file " + file
                        + " has no key none; add it, or correct the key");
        assertThatThrownBy(() -> forClients(NAME, "${file:" + file + "}"))
                .hasMessageEndingWith("the key of the file is missing; write ${file:PATH:KEY}");
        assertThatThrownBy(() -> forClients(NAME, "${env:A:B}"))
                .hasMessageEndingWith("an environment variable has a name and no path; write ${env:NAME}");
        assertThatThrownBy(() -> forClients(NAME, "${vault:a:b}"))
                .hasMessageContaining("vault is not a provider of secrets; write ${env:NAME} or ${file:PATH:KEY}");
    }

    @Test
    void shouldRefuseAReferenceWithoutAProviderAndNotSayWhatItHolds() {
        assertThatThrownBy(() -> forClients(NAME, "${hunter2}"))
                .hasMessageStartingWith("kafka.ssl.truststore.password holds ${...} without a provider")
                .hasMessageNotContaining("hunter2");
    }

    @Test
    void shouldNotShowAFileThatHoldsNoProperties() throws Exception {
        Files.writeString(file, "trust=hunter2\\u00zz\n");
        assertThatThrownBy(() -> forClients(NAME, reference("trust")))
                .hasMessageEndingWith("it cannot be read; see that it holds lines of the form key=value")
                .hasMessageNotContaining("hunter2");
    }

    @Test
    void shouldRefuseACopyWithoutItsSecret() {
        assertThatThrownBy(() -> forClients(NAME, "[hidden]"))
                .hasMessage("kafka.ssl.truststore.password is [hidden]: a recorded configuration keeps no literal"
                        + " secret; give it again with --config or --set kafka.ssl.truststore.password=..., or as a"
                        + " reference, ${env:NAME} or ${file:PATH:KEY}, which is recorded");
    }

    @Test
    void shouldLeaveAProviderOfTheUsersOwnAlone() {
        Map<String, String> settings = SecretSettings.forClients(
                Map.of(
                        NAME,
                        SecretText.ofSetting(NAME, "${vault:a:b}"),
                        "ssl.key.password",
                        SecretText.ofSetting("ssl.key.password", reference("trust")),
                        "config.providers",
                        SecretText.ofSetting("config.providers", "vault")),
                "kafka.");
        assertThat(settings)
                .containsEntry("config.providers", "vault,file")
                .containsEntry(NAME, "${vault:a:b}")
                .containsKey("config.providers.file.class")
                .doesNotContainKey("config.providers.vault.class");
    }

    @Test
    void shouldEscapeWhatGoesIntoAnAddress() {
        assertThat(SecretSettings.address("url", "http://bob:" + reference("odd") + "@registry:8081"))
                .isEqualTo("http://bob:p%40ss%2Fw%3Ard+%25@registry:8081");
        assertThat(SecretSettings.address("url", reference("url")))
                .as("the whole address")
                .isEqualTo("http://registry:8081");
        assertThat(SecretSettings.address("url", "http://registry")).isEqualTo("http://registry");
        assertThatThrownBy(() -> SecretSettings.address("url", "http://bob:[hidden]@registry"))
                .hasMessageStartingWith(
                        "url is http://bob:[hidden]@registry: a recorded configuration keeps no literal secret");
    }

    @Test
    void shouldShowSettingsWithoutTheirSecrets() {
        assertThat(SecretSettings.shown(Map.of(NAME, "hunter2", "linger.ms", 5, "acks", "all"))
                        .toString())
                .doesNotContain("hunter2")
                .contains("linger.ms=5", "acks=all", NAME + "=[hidden]");
    }
}
