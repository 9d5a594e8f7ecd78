package dev.millrace.gateway;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.net.BindException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import java.time.Duration;
import java.util.Base64;
import java.util.Map;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;
import org.junit.jupiter.api.Test;

class HttpListenerTest {
    private static final String TOKEN = "0123456789abcdef";

    private static RequestThreads threads() {
        return new RequestThreads("http-listener-test", 4, null);
    }

    private static HttpListener open(HttpConfig config) {
        HttpListener listener = HttpListener.open(config, 0, "--port", threads(), Map.of("TOKEN", TOKEN));
        listener.serve("/numbers", exchange -> {
            exchange.sendResponseHeaders(204, -1);
            exchange.close();
        });
        listener.serveEveryone("/livez", exchange -> {
            exchange.sendResponseHeaders(204, -1);
            exchange.close();
        });
        listener.start();
        return listener;
    }

    private static int status(HttpClient client, String url, String... headers) throws Exception {
        HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(url)).timeout(Duration.ofSeconds(60));
        if (headers.length > 0) {
            request.headers(headers);
        }
        return client.send(request.build(), HttpResponse.BodyHandlers.discarding())
                .statusCode();
    }

    private static String basic(String password) {
        return "Basic " + Base64.getEncoder().encodeToString(("me:" + password).getBytes(StandardCharsets.UTF_8));
    }

    @Test
    void shouldLetInByTokenOrPasswordOnEveryAddress() throws Exception {
        HttpClient client = HttpClient.newHttpClient();
        try (HttpListener listener = open(new HttpConfig("0.0.0.0", "TOKEN", HttpTls.none()))) {
            assertThat(listener.url()).isEqualTo("http://0.0.0.0:" + listener.port());
            String url = "http://127.0.0.1:" + listener.port();
            assertThat(status(client, url + "/livez")).isEqualTo(204);
            assertThat(status(client, url + "/numbers")).isEqualTo(401);
            assertThat(status(client, url + "/numbers", "Authorization", "Bearer " + TOKEN))
                    .isEqualTo(204);
            assertThat(status(client, url + "/numbers", "Authorization", "Bearer 0123456789abcdeg"))
                    .isEqualTo(401);
            assertThat(status(client, url + "/numbers", "Authorization", basic(TOKEN)))
                    .isEqualTo(204);
            assertThat(status(client, url + "/numbers", "Authorization", basic("guess")))
                    .isEqualTo(401);
        }
    }

    @Test
    void shouldLetInThisMachineAloneWithoutToken() throws Exception {
        HttpClient client = HttpClient.newHttpClient();
        try (HttpListener listener = open(HttpConfig.defaults())) {
            assertThat(status(client, listener.url() + "/numbers")).isEqualTo(204);
            assertThat(status(client, listener.url() + "/numbers", "Origin", "http://elsewhere.example"))
                    .isEqualTo(403);
        }
    }

    @Test
    void shouldSpeakTlsByCertificateAndKey() throws Exception {
        KeyStore known = KeyStore.getInstance(KeyStore.getDefaultType());
        known.load(null, null);
        try (var in = Files.newInputStream(HttpTlsTest.FILES.resolve("certificate.pem"))) {
            known.setCertificateEntry(
                    "it", CertificateFactory.getInstance("X.509").generateCertificate(in));
        }
        TrustManagerFactory trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        trust.init(known);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(null, trust.getTrustManagers(), null);
        HttpClient client = HttpClient.newBuilder().sslContext(context).build();
        try (HttpListener listener = open(new HttpConfig("127.0.0.1", "TOKEN", HttpTlsTest.pem("key.pem", "")))) {
            assertThat(listener.url()).startsWith("https://127.0.0.1:");
            String url = "https://localhost:" + listener.port();
            assertThat(status(client, url + "/livez")).isEqualTo(204);
            assertThat(status(client, url + "/numbers", "Authorization", "Bearer " + TOKEN))
                    .isEqualTo(204);
        }
    }

    @Test
    void shouldRefuseAnotherAddressWithoutToken() {
        assertThatThrownBy(() -> new HttpConfig("0.0.0.0", "", HttpTls.none()))
                .hasMessage(
                        "host must be on loopback, such as 127.0.0.1, where token_variable is empty: '0.0.0.0'; name a"
                                + " variable of the environment that holds a token, or listen on loopback");
        assertThatThrownBy(() -> open(new HttpConfig("0.0.0.0", "NOWHERE", HttpTls.none())))
                .hasMessage("http.token_variable is NOWHERE, and that environment variable holds 0 characters; a token"
                        + " has at least 16, so set it before the start: openssl rand -hex 32");
    }

    @Test
    void shouldSayWhyAPortCannotBeOpened() throws Exception {
        try (ServerSocket taken = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            int port = taken.getLocalPort();
            assertThatThrownBy(() -> HttpListener.open(HttpConfig.defaults(), port, "--port", threads()))
                    .hasMessage(
                            "port " + port + " on loopback is taken; give --port another one, or 0 for any free one")
                    .hasCauseInstanceOf(BindException.class);
        }
        HttpConfig elsewhere = new HttpConfig("192.0.2.1", "TOKEN", HttpTls.none()); // of documents, of no machine
        assertThatThrownBy(() -> HttpListener.open(elsewhere, 0, "--port", threads(), Map.of("TOKEN", TOKEN)))
                .hasMessage("http.host must be an address of this machine: '192.0.2.1'");
    }
}
