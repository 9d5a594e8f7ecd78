package dev.millrace.gateway;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.millrace.gateway.HttpListener.HttpToken;
import dev.millrace.schemas.run.RunIdentity;
import io.micrometer.core.instrument.Counter;
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
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import java.util.function.LongSupplier;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLException;
import javax.net.ssl.TrustManagerFactory;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The listener without a handler: refused requests get no further. */
@Timeout(300)
class GatewayServerTest {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final String TOKEN = "0123456789abcdef";

    private static GatewayServer server(HttpTls tls, int calls, int bodyBytes) {
        return server(tls, calls, bodyBytes, new SimpleMeterRegistry());
    }

    private static GatewayServer server(HttpTls tls, int calls, int bodyBytes, SimpleMeterRegistry registry) {
        return server(tls, calls, bodyBytes, registry, System::nanoTime);
    }

    private static GatewayServer server(
            HttpTls tls, int calls, int bodyBytes, SimpleMeterRegistry registry, LongSupplier nanos) {
        GatewayConfig d = GatewayConfig.defaults();
        GatewayConfig config = new GatewayConfig(
                true,
                "127.0.0.1",
                0,
                "",
                "TOKEN",
                d.sessions(),
                calls,
                bodyBytes,
                d.bodyMs(),
                d.bodyBytesPerSecond(),
                d.turns(),
                d.idleMs(),
                d.limitMs(),
                d.turnTimeoutMs(),
                d.claimWaitMs(),
                d.sampling(),
                0);
        SessionTable sessions = new SessionTable(10);
        SessionDesk desk = new SessionDesk(
                new RunIdentity("run", 0, "policy"),
                "g",
                new SessionContext(config, new SessionFence(sessions, null), null, null, null, null, Clock.systemUTC()),
                null,
                null);
        GatewayServer server = new GatewayServer(
                config,
                HttpToken.of("gateway.token_variable", "TOKEN", Map.of("TOKEN", TOKEN)),
                HttpListener.context(tls, Clock.systemUTC()),
                desk,
                new GatewayMeters(registry, sessions),
                new CallBodies(config, nanos),
                new AnswerWrites());
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
        return HttpClient.newBuilder().sslContext(trustingContext()).build();
    }

    private static SSLContext trustingContext() throws Exception {
        KeyStore store = KeyStore.getInstance("PKCS12");
        store.load(null, null);
        try (var in = Files.newInputStream(HttpTlsTest.FILES.resolve("certificate.pem"))) {
            store.setCertificateEntry(
                    "gateway", CertificateFactory.getInstance("X.509").generateCertificate(in));
        }
        TrustManagerFactory trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        trust.init(store);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(null, trust.getTrustManagers(), null);
        return context;
    }

    @Test
    void shouldSpeakTlsWithWhoTrustsItsCertificateAndAskForTheTokenThere() throws Exception {
        try (GatewayServer server = server(HttpTlsTest.pem("key.pem", ""), 4, 4096)) {
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
    void listsThePolicyAsTheOneModel() throws Exception {
        try (GatewayServer server = server(HttpTls.none(), 4, 4096)) {
            String models = server.url() + "/sessions/s0-1-0/v1/models";
            JsonNode model = JSON.readTree(get(models + "/policy", 200));
            assertThat(model.get("id").asText()).isEqualTo("policy");
            assertThat(JSON.readTree(get(models, 200)).at("/data/0")).isEqualTo(model);
            JsonNode error = JSON.readTree(get(models + "/other", 404)).get("error");
            assertThat(error.get("code").asText()).isEqualTo("model_not_found");
            assertThat(error.get("message").asText())
                    .isEqualTo("cannot find the model 'other': expected 'policy'; list the models of the session");
        }
    }

    private static String get(String url, int status) throws Exception {
        HttpResponse<String> answer = HttpClient.newHttpClient()
                .send(
                        HttpRequest.newBuilder(URI.create(url))
                                .header("Authorization", "Bearer " + TOKEN)
                                .build(),
                        HttpResponse.BodyHandlers.ofString());
        assertThat(answer.statusCode()).as(answer.body()).isEqualTo(status);
        return answer.body();
    }

    @Test
    void shouldRefuseWhatIsTooLongOrNoJsonByAnErrorThatClientsKnow() throws Exception {
        try (GatewayServer server = server(HttpTls.none(), 4, 4096)) {
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
                    .startsWith("the body is not JSON: ");
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
        try (GatewayServer server = server(HttpTls.none(), 2, 4096)) {
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

    private static Socket begun(GatewayServer server, HttpTls tls) throws Exception {
        URI at = URI.create(server.url());
        Socket socket = tls.isOn()
                ? trustingContext().getSocketFactory().createSocket("localhost", at.getPort())
                : new Socket(at.getHost(), at.getPort());
        socket.getOutputStream()
                .write(("POST /v1/sessions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + TOKEN
                                + "\r\nContent-Length: 6\r\n\r\n[1")
                        .getBytes(StandardCharsets.ISO_8859_1));
        socket.getOutputStream().flush();
        return socket;
    }

    private static void await(String what, BooleanSupplier is) {
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(150);
        while (!is.getAsBoolean()) {
            assertThat(System.nanoTime()).as(what).isLessThan(deadline);
            LockSupport.parkNanos(1_000_000);
        }
    }

    /** Senders of unfinished bodies must not hold the places of calls. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void shouldAnswerEveryCallThatComesInOnePieceBesideAHundredThatDoNotEnd(boolean isTls) throws Exception {
        HttpTls tls = isTls ? HttpTlsTest.pem("key.pem", "") : HttpTls.none();
        SimpleMeterRegistry registry = new SimpleMeterRegistry();
        List<Socket> slow = new ArrayList<>();
        try (GatewayServer server = server(tls, 4, 4096, registry)) {
            for (int i = 1; i <= 100; i++) {
                int displaced = Math.max(0, i - 4);
                slow.add(begun(server, tls));
                await(
                        "body " + i,
                        () -> server.bodiesUnderWay() + displaced(registry) == Math.min(slow.size(), 4) + displaced);
            }
            HttpClient good = isTls ? trusting() : HttpClient.newHttpClient();
            for (int i = 0; i < 20; i++) {
                assertThat(post(good, server.url() + "/v1/sessions", TOKEN, "[1, 2]")
                                .statusCode())
                        .as("of a good call")
                        .isEqualTo(400);
            }
            await("the first 97 are given up", () -> displaced(registry) == 97);
            for (Socket each : slow.subList(0, 97)) {
                assertThat(isHungUp(each)).isTrue();
            }
            assertThat(server.bodiesUnderWay()).isEqualTo(3);
            for (Socket each : slow.subList(97, 100)) {
                each.getOutputStream().write(", 2]".getBytes(StandardCharsets.ISO_8859_1));
                each.getOutputStream().flush();
                assertThat(new String(each.getInputStream().readNBytes(12), StandardCharsets.ISO_8859_1))
                        .isEqualTo("HTTP/1.1 400");
            }
            assertThat(registry.find("millrace.gateway.refused.calls")
                            .tag("reason", "too_many_calls")
                            .counter())
                    .as("nobody wanted for a place among the calls")
                    .isNull();
        } finally {
            for (Socket each : slow) {
                each.close();
            }
        }
    }

    private static int displaced(SimpleMeterRegistry registry) {
        Counter counter = registry.find("millrace.gateway.refused.calls")
                .tag("reason", "too_many_bodies")
                .counter();
        return counter == null ? 0 : (int) counter.count();
    }

    private static boolean isHungUp(Socket socket) {
        try {
            return socket.getInputStream().read() < 0;
        } catch (IOException e) {
            return true; // reset
        }
    }

    @Test
    void shouldSayToWhoSendsALittleNowAndThenWhyItIsGivenUp() throws Exception {
        AtomicLong nanos = new AtomicLong();
        try (GatewayServer server = server(HttpTls.none(), 4, 4096, new SimpleMeterRegistry(), nanos::get);
                Socket drips = begun(server, HttpTls.none())) {
            await("its body", () -> server.bodiesUnderWay() == 1);
            nanos.addAndGet(TimeUnit.SECONDS.toNanos(10));
            drips.getOutputStream().write(',');
            drips.getOutputStream().flush();
            String answer = new String(drips.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
            assertThat(answer)
                    .startsWith("HTTP/1.1 408")
                    .contains(
                            "the body must come with at least 1024 bytes a second (gateway.body_bytes_per_second) after"
                                    + " the first 2, and 3 came in 10000 ms")
                    .contains("\"body_too_slow\"");
            assertThat(server.bodiesUnderWay()).isZero();
        }
    }
}
