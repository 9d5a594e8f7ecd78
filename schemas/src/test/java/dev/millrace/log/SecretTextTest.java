package dev.millrace.log;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class SecretTextTest {
    private static final String PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required ";

    private static String shown(String name, String written) {
        SecretText text = SecretText.ofSetting(name, written);
        assertThat(text.written()).isEqualTo(written);
        assertThat(text).hasToString(text.shown());
        return text.shown();
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "ssl.truststore.password",
                "ssl.keystore.password",
                "ssl.key.password",
                "ssl.keystore.key",
                "producer.ssl.key.password",
                "streams.main.consumer.ssl.key.password",
                "sasl.oauthbearer.client.credentials.client.secret",
                "plugin.basic.auth.user.info",
                "plugin.vault.token",
                "plugin.my.secret",
                "plugin.apiKey",
                "sasl.jaas.config"
            })
    void shouldHideWhatANameSaysIsSecret(String name) {
        assertThat(shown(name, "hunter2")).isEqualTo("[hidden]");
        assertThat(shown(name, "${env:SECRET}")).isEqualTo("${env:SECRET}");
        assertThat(shown(name, " ${file:/etc/a.properties:key}")).isEqualTo(" ${file:/etc/a.properties:key}");
        assertThat(shown(name, "hunter2${env:SECRET}"))
                .as("a literal next to a reference")
                .isEqualTo("[hidden]");
    }

    @ParameterizedTest
    @CsvSource({
        "security.protocol,SASL_SSL",
        "ssl.truststore.location,/etc/trust.jks",
        "sasl.oauthbearer.token.endpoint.url,https://idp/token",
        "consumer.fetch.max.bytes,1000",
        "compression.type,lz4"
    })
    void shouldShowWhatIsNoSecret(String name, String written) {
        assertThat(shown(name, written)).isEqualTo(written);
    }

    @Test
    void shouldHideTheSecretOptionsOfALoginLine() {
        assertThat(shown("sasl.jaas.config", PLAIN + "username=\"bob\" password=\"hunter2\";"))
                .isEqualTo(PLAIN + "username=\"bob\" password=\"[hidden]\";");
        assertThat(shown("consumer.sasl.jaas.config", PLAIN + "password='hunter2' username=bob;"))
                .isEqualTo(PLAIN + "password=\"[hidden]\" username=bob;");
        assertThat(shown("sasl.jaas.config", PLAIN + "username=\"bob\" password=\"a\\\"hunter2\";"))
                .isEqualTo(PLAIN + "username=\"bob\" password=\"[hidden]\";");
        assertThat(shown("sasl.jaas.config", PLAIN + "username=\"bob\" unheardOf=hunter2;"))
                .isEqualTo(PLAIN + "username=\"bob\" unheardOf=\"[hidden]\";");
    }

    @Test
    void shouldShowALoginLineWhoseSecretsAreReferences() {
        String line = PLAIN + "username=\"bob\" password=\"${env:KAFKA_PASSWORD}\";";
        assertThat(shown("sasl.jaas.config", line)).isEqualTo(line);
        assertThat(shown("sasl.jaas.config", PLAIN + "username=\"bob\" password=\"hunter2${env:KAFKA_PASSWORD}\";"))
                .doesNotContain("hunter2");
    }

    @ParameterizedTest
    @ValueSource(
            strings = {"hunter2", "Module required password=\"hunter2", "Module required hunter2;", "a b c hunter2"})
    void shouldHideAWholeLoginLineThatItCannotRead(String line) {
        assertThat(shown("sasl.jaas.config", line)).isEqualTo("[hidden]");
    }

    @ParameterizedTest
    @CsvSource({
        "http://registry:8081,http://registry:8081",
        "https://bob:hunter2@registry,https://bob:[hidden]@registry",
        "https://bob:hun/t@er2@registry:1/x,https://bob:[hidden]@registry:1/x",
        "https://hunter2@registry,https://[hidden]@registry",
        "https://bob:${env:PW}@registry,https://bob:${env:PW}@registry",
        "https://${env:USER}:${env:PW}@registry,https://${env:USER}:${env:PW}@registry",
        "https://${env:USER}:hunter2@registry,https://${env:USER}:[hidden]@registry",
        "https://${env:BOTH}@registry,https://${env:BOTH}@registry",
        "https://registry?token=hunter2&x=1,https://registry?token=[hidden]&x=1",
        "${env:ADDRESS},${env:ADDRESS}"
    })
    void shouldHideTheCredentialsOfAnAddress(String written, String shown) {
        assertThat(SecretText.ofAddress(written).shown()).isEqualTo(shown);
        assertThat(shown("plugin.url", written)).isEqualTo(shown);
    }

    @Test
    void shouldShowTheUserOfUserInfo() {
        assertThat(shown("plugin.basic.auth.user.info", "bob:hunter2")).isEqualTo("bob:[hidden]");
        assertThat(shown("plugin.basic.auth.user.info", "bob:${env:PW}")).isEqualTo("bob:${env:PW}");
    }

    @Test
    void shouldKnowACopyThatLacksItsSecret() {
        SecretText copy = SecretText.ofSetting("ssl.key.password", shown("ssl.key.password", "hunter2"));
        assertThat(copy.isIncomplete()).isTrue();
        assertThat(copy.shown()).as("a copy of a copy").isEqualTo("[hidden]");
        assertThat(SecretText.ofSetting("ssl.key.password", "${env:A}").isIncomplete())
                .isFalse();
    }

    @Test
    void shouldBeEqualIfWrittenAlike() {
        assertThat(SecretText.ofAddress("a")).isEqualTo(SecretText.ofSetting("x", "a"));
        assertThat(SecretText.ofSetting("ssl.key.password", "a"))
                .as("shown alike")
                .isNotEqualTo(SecretText.ofSetting("ssl.key.password", "b"));
    }
}
