package dev.millrace.runtime.metrics;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.millrace.gateway.HttpConfig;
import dev.millrace.log.Pulse;
import dev.millrace.runtime.RefusedRequestException;
import io.micrometer.prometheusmetrics.PrometheusConfig;
import io.micrometer.prometheusmetrics.PrometheusMeterRegistry;
import java.io.IOException;
import java.net.InetAddress;
import java.net.Socket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.Test;

class HttpEndpointTest {
    private final PrometheusMeterRegistry metrics = new PrometheusMeterRegistry(PrometheusConfig.DEFAULT);

    @Test
    void shouldServeTheMeters() throws Exception {
        metrics.counter("millrace.learner.steps").increment(3);
        try (HttpEndpoint endpoint = HttpEndpoint.open(HttpConfig.defaults(), "--metrics-port", 0, metrics)) {
            HttpResponse<String> response = get(endpoint);
            assertThat(response.statusCode()).isEqualTo(200);
            assertThat(response.body()).contains("millrace_learner_steps_total 3.0");
        }
    }

    @Test
    void shouldAnswerProbesWithWhyNot() throws Exception {
        try (HttpEndpoint endpoint = HttpEndpoint.open(HttpConfig.defaults(), "--metrics-port", 0, metrics)) {
            assertThat(probed(endpoint, "/livez")).isEqualTo("200 ok\n");
            assertThat(probed(endpoint, "/readyz")).isEqualTo("503 the process is starting\n");
            Pulse learner = new Pulse(() -> 1);
            endpoint.answer(new Probes(Map.of("learner", learner), Duration.ofMinutes(1), () -> false));
            assertThat(probed(endpoint, "/readyz")).isEqualTo("503 learner: it is starting\n");
            learner.turn(Optional.empty());
            assertThat(probed(endpoint, "/readyz")).isEqualTo("200 ok\n");
            endpoint.answer(new Probes(Map.of(), Duration.ofMinutes(1), () -> true));
            assertThat(probed(endpoint, "/livez")).isEqualTo("503 a role has failed; see the log\n");
        }
    }

    private static String probed(HttpEndpoint endpoint, String path) throws Exception {
        HttpResponse<String> response = get(endpoint, path);
        return response.statusCode() + " " + response.body();
    }

    @Test
    void shouldSayThatThePortIsTaken() {
        try (HttpEndpoint endpoint = HttpEndpoint.open(HttpConfig.defaults(), "--metrics-port", 0, metrics)) {
            int port = port(endpoint);
            assertThatThrownBy(() -> HttpEndpoint.open(HttpConfig.defaults(), "--metrics-port", port, metrics)
                            .close())
                    .isInstanceOf(RefusedRequestException.class)
                    .hasMessageStartingWith("port " + port + " on loopback is taken");
        }
    }

    @Test
    void shouldAnswerBesideRequestsThatNobodyFinishes() throws Exception {
        List<Socket> half = new ArrayList<>();
        try (HttpEndpoint endpoint = HttpEndpoint.open(HttpConfig.defaults(), "--metrics-port", 0, metrics)) {
            for (int i = 0; i < 75; i++) {
                for (String begun :
                        List.of("GET /metrics HT", "GET /metrics HTTP/1.1\r\nHost: x\r\n", "G", "POST /metrics")) {
                    half.add(begin(endpoint, begun));
                }
            }
            assertThat(get(endpoint).statusCode()).isEqualTo(200);
        } finally {
            for (Socket socket : half) {
                socket.close();
            }
        }
    }

    @Test
    void shouldAnswerBesideMoreHalfOpenRequestsThanItTakesAtOnce() throws Exception {
        List<Socket> half = new ArrayList<>();
        try (HttpEndpoint endpoint =
                HttpEndpoint.open(HttpConfig.defaults(), "--metrics-port", 0, metrics, 8, Duration.ofMinutes(10))) {
            for (int i = 0; i < 80; i++) {
                half.add(begin(endpoint, "GET /metrics HTTP/1.1\r\nHost: x\r\n"));
            }
            assertThat(get(endpoint).statusCode()).isEqualTo(200);
        } finally {
            for (Socket socket : half) {
                socket.close();
            }
        }
    }

    @Test
    void shouldCloseARequestThatIsNotSentToItsEnd() throws Exception {
        try (HttpEndpoint endpoint = HttpEndpoint.open(
                        HttpConfig.defaults(), "--metrics-port", 0, metrics, 1024, Duration.ofSeconds(1));
                Socket half = begin(endpoint, "GET /metrics HTTP/1.1\r\nHost: x\r\n")) {
            assertThat(half.getInputStream().read())
                    .as("the end of the connection")
                    .isEqualTo(-1);
            assertThat(get(endpoint).statusCode()).isEqualTo(200);
        }
    }

    private static int port(HttpEndpoint endpoint) {
        return URI.create(endpoint.url().orElseThrow()).getPort();
    }

    private static Socket begin(HttpEndpoint endpoint, String begun) throws IOException {
        Socket socket = new Socket(InetAddress.getLoopbackAddress(), port(endpoint));
        socket.setSoTimeout(60_000);
        socket.getOutputStream().write(begun.getBytes(StandardCharsets.US_ASCII));
        socket.getOutputStream().flush();
        return socket;
    }

    private static HttpResponse<String> get(HttpEndpoint endpoint) throws Exception {
        return get(endpoint, "/metrics");
    }

    private static HttpResponse<String> get(HttpEndpoint endpoint, String path) throws Exception {
        return HttpClient.newHttpClient()
                .send(
                        HttpRequest.newBuilder(URI.create(endpoint.url().orElseThrow() + path))
                                .timeout(Duration.ofSeconds(60))
                                .build(),
                        HttpResponse.BodyHandlers.ofString());
    }
}
