package dev.millrace.gateway;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.millrace.gateway.HttpListener.Certificate;
import dev.millrace.log.SecretText;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Clock;
import java.time.Instant;
import java.time.ZoneOffset;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The files are of OpenSSL; the certificate is of localhost, from 2020 to 2120. */
class HttpTlsTest {
    static final Path FILES = Path.of("src", "test", "resources", "tls");
    private static final Clock NOW = Clock.fixed(Instant.parse("2026-07-01T00:00:00Z"), ZoneOffset.UTC);

    static HttpTls pem(String key, String password) {
        return new HttpTls(
                FILES.resolve("certificate.pem").toString(),
                FILES.resolve(key).toString(),
                "",
                SecretText.ofSetting("password", password));
    }

    private static HttpTls store(String file, String password) {
        return new HttpTls("", "", FILES.resolve(file).toString(), SecretText.ofSetting("password", password));
    }

    @Test
    void shouldReadAKeyAsPemPlainOrEncryptedAndAsPkcs12() {
        assertThat(Certificate.context(pem("key.pem", ""), NOW).getProtocol()).isEqualTo("TLS");
        assertThat(Certificate.context(pem("encrypted-key.pem", "changeit-now"), NOW)
                        .getProtocol())
                .isEqualTo("TLS");
        assertThat(Certificate.context(store("store.p12", "changeit-now"), NOW).getProtocol())
                .isEqualTo("TLS");
    }

    @Test
    void shouldRefuseWhatIsHalfConfigured() {
        SecretText none = SecretText.ofSetting("password", "");
        SecretText some = SecretText.ofSetting("password", "x");
        assertThatThrownBy(() -> new HttpTls("a.pem", "", "", none))
                .hasMessage("certificate and key must be given both or neither, and only certificate is: 'a.pem';"
                        + " they may name the same file");
        assertThatThrownBy(() -> new HttpTls("", "k.pem", "", none)).hasMessageContaining("only key is: 'k.pem'");
        assertThatThrownBy(() -> new HttpTls("a.pem", "k.pem", "s.p12", some))
                .hasMessageStartingWith("key_store must be empty where certificate and key are given: 's.p12'");
        assertThatThrownBy(() -> new HttpTls("", "", "s.p12", none))
                .hasMessageStartingWith("password must be given for key_store 's.p12'");
        assertThatThrownBy(() -> new HttpTls("", "", "", some))
                .hasMessageStartingWith("password must be empty where there is neither key_store nor key");
        assertThat(HttpTls.none().isOn()).isFalse();
    }

    @Test
    void shouldSayWhatIsWrongWithAFile(@TempDir Path folder) throws Exception {
        assertThatThrownBy(() -> Certificate.context(pem("nowhere.pem", ""), NOW))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("http.tls.key names '")
                .hasMessageContaining("no such file can be read");
        assertThatThrownBy(() -> Certificate.context(pem("other-key.pem", ""), NOW))
                .hasMessageEndingWith("the key is not that of the certificate of CN=localhost; name the key that it was"
                        + " made with");
        assertThatThrownBy(() -> Certificate.context(store("store.p12", "wrong-one"), NOW))
                .hasMessageContaining("http.tls.password must be its password")
                .hasMessageNotContaining("wrong-one");
        assertThatThrownBy(() -> Certificate.context(pem("encrypted-key.pem", "wrong-one"), NOW))
                .hasMessageContaining("cannot be read")
                .hasMessageNotContaining("wrong-one");
        assertThatThrownBy(() -> Certificate.context(store("key.pem", "changeit-now"), NOW))
                .hasMessageContaining("it must be PKCS12");
        Path garbage = Files.writeString(folder.resolve("garbage.pem"), "not a key");
        assertThatThrownBy(() -> Certificate.context(
                        new HttpTls(
                                FILES.resolve("certificate.pem").toString(),
                                garbage.toString(),
                                "",
                                SecretText.ofSetting("password", "")),
                        NOW))
                .hasMessageContaining("a key is PEM in PKCS#8");
        Clock late = Clock.fixed(Instant.parse("2126-01-01T00:00:00Z"), ZoneOffset.UTC);
        assertThatThrownBy(() -> Certificate.context(pem("key.pem", ""), late))
                .hasMessageContaining(
                        "is valid from 2020-01-01T00:00:00Z to 2120-01-01T00:00:00Z, and now is 2126-01-01T00:00:00Z");
    }
}
