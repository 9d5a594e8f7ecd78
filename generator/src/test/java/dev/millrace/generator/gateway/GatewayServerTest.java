package dev.millrace.generator.gateway;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.io.IOException;
import java.io.OutputStream;
import java.net.Socket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import java.time.Clock;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLException;
import javax.net.ssl.TrustManagerFactory;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The listener, with nobody behind it: what it refuses gets no further. */
@Timeout(60)
class GatewayServerTest {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final String TOKEN = "0123456789abcdef";

    private static GatewayServer server(GatewayTls tls, int calls, int bodyBytes) {
        GatewayConfig d = GatewayConfig.defaults();
        GatewayConfig config = new GatewayConfig(
                true,
                "127.0.0.1",
                0,
                "",
                "TOKEN",
                tls,
                d.sessions(),
                calls,
                bodyBytes,
                d.turns(),
                d.idleMs(),
                d.limitMs(),
                d.turnTimeoutMs(),
                d.claimWaitMs(),
                d.sampling(),
                0);
        SessionTable sessions = new SessionTable(10);
        SessionDesk desk = new SessionDesk(
                null, "g", config, sessions, null, null, null, null, null, null, null, null, Clock.systemUTC());
        GatewayServer server = new GatewayServer(
                config,
                GatewayToken.of(config, Map.of("TOKEN", TOKEN)),
                tls.isOn() ? Optional.of(GatewayCertificate.context(tls, Clock.systemUTC())) : Optional.empty(),
                desk,
                new GatewayMeters(new SimpleMeterRegistry(), sessions));
        server.start();
        return server;
    }

    private static HttpResponse<String> post(HttpClient client, String url, String token, String body)
            throws Exception {
        return client.send(
                HttpRequest.newBuilder(URI.create(url))
                        .header("Authorization", "Bearer " + token)
                        .POST(HttpRequest.BodyPublishers.ofString(body))
                        .build(),
                HttpResponse.BodyHandlers.ofString());
    }

    private static HttpClient trusting() throws Exception {
        KeyStore store = KeyStore.getInstance("PKCS12");
        store.load(null, null);
        try (var in = Files.newInputStream(GatewayTlsTest.FILES.resolve("certificate.pem"))) {
            store.setCertificateEntry(
                    "gateway", CertificateFactory.getInstance("X.509").generateCertificate(in));
        }
        TrustManagerFactory trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        trust.init(store);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(null, trust.getTrustManagers(), null);
        return HttpClient.newBuilder().sslContext(context).build();
    }

    @Test
    void shouldSpeakTlsWithWhoTrustsItsCertificateAndAskForTheTokenThere() throws Exception {
        try (GatewayServer server = server(GatewayTlsTest.pem("key.pem", ""), 4, 4096)) {
            assertThat(server.url()).startsWith("https://127.0.0.1:");
            HttpClient trusting = trusting();
            assertThat(post(trusting, server.url() + "/nowhere", TOKEN, "").statusCode())
                    .isEqualTo(404);
            assertThat(post(trusting, server.url() + "/v1/sessions", "0123456789abcdeg", "{}")
                            .statusCode())
                    .isEqualTo(401);
            assertThatThrownBy(() -> post(HttpClient.newHttpClient(), server.url() + "/nowhere", TOKEN, ""))
                    .isInstanceOf(SSLException.class);
            assertThatThrownBy(() -> post(
                            HttpClient.newHttpClient(), server.url().replace("https", "http") + "/nowhere", TOKEN, ""))
                    .as("plain text")
                    .isInstanceOf(IOException.class);
            assertThat(post(trusting, server.url() + "/nowhere", TOKEN, "").statusCode())
                    .as("after those")
                    .isEqualTo(404);
        }
    }

    @Test
    void shouldRefuseWhatIsTooLongOrNoJsonByAnErrorThatClientsKnow() throws Exception {
        try (GatewayServer server = server(GatewayTls.none(), 4, 4096)) {
            HttpClient client = HttpClient.newHttpClient();
            String sessions = server.url() + "/v1/sessions";
            HttpResponse<String> tooLarge =
                    post(client, sessions, TOKEN, "{\"agent\": \"" + "x".repeat(1 << 20) + "\"}");
            assertThat(tooLarge.statusCode()).isEqualTo(413);
            JsonNode error = JSON.readTree(tooLarge.body()).get("error");
            assertThat(error.get("message").asText())
                    .isEqualTo("the body must not be longer than 4096 bytes (gateway.body_bytes)");
            HttpResponse<String> noJson = post(client, sessions, TOKEN, "{\"agent\": ");
            assertThat(noJson.statusCode()).isEqualTo(400);
            assertThat(JSON.readTree(noJson.body()).at("/error/message").asText())
                    .startsWith("the body is no JSON: ");
            HttpResponse<String> noObject = post(client, sessions, TOKEN, "[1, 2]");
            assertThat(noObject.statusCode()).isEqualTo(400);
            assertThat(JSON.readTree(noObject.body()).at("/error/message").asText())
                    .isEqualTo("the body must be a JSON object");
            HttpResponse<String> deep = post(client, sessions, TOKEN, "[".repeat(2_000));
            assertThat(deep.statusCode()).isEqualTo(400);
        }
    }

    @Test
    void shouldGoOnAnsweringWhileOthersSendGarbageOrSayNothing() throws Exception {
        try (GatewayServer server = server(GatewayTls.none(), 2, 4096)) {
            URI at = URI.create(server.url());
            List<Socket> others = new ArrayList<>();
            try {
                for (String begun : List.of(
                        "", // says nothing
                        "POST /v1/sessions HTTP/1.1\r\nHost: x\r\nAuthor", // stops in a header
                        "\u0000\u0001\u0002\r\n\r\n",
                        "POST /v1/sessions HTTP/1.1\r\nContent-Length: -5\r\n\r\n",
                        "POST /v1/sessions HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n",
                        "GET /%zz HTTP/1.1\r\nHost: x\r\n\r\n",
                        "POST /v1/sessions HTTP/1.1\r\nAuthorization: Bearer \u00ff\u00fe\r\nContent-Length: 2\r\n\r\n{}",
                        "POST /v1/sessions HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
                        "GET / HTTP/1.1\r\n" + "X-A: b\r\n".repeat(5_000) + "\r\n")) {
                    Socket socket = new Socket(at.getHost(), at.getPort());
                    others.add(socket);
                    OutputStream out = socket.getOutputStream();
                    try {
                        out.write(begun.getBytes(StandardCharsets.ISO_8859_1));
                        out.flush();
                    } catch (IOException e) {
                        assertThat(e).as("it may have hung up").isNotNull();
                    }
                }
                HttpResponse<String> answer =
                        post(HttpClient.newHttpClient(), server.url() + "/v1/sessions/none/complete/more", TOKEN, "{}");
                assertThat(answer.statusCode()).isEqualTo(404);
            } finally {
                for (Socket each : others) {
                    each.close();
                }
            }
        }
    }
}
