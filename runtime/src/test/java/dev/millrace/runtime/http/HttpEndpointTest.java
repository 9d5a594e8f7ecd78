package dev.millrace.runtime.http;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.millrace.runtime.RefusedRequestException;
import io.micrometer.prometheusmetrics.PrometheusConfig;
import io.micrometer.prometheusmetrics.PrometheusMeterRegistry;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import org.junit.jupiter.api.Test;

class HttpEndpointTest {
    private final PrometheusMeterRegistry metrics = new PrometheusMeterRegistry(PrometheusConfig.DEFAULT);

    @Test
    void shouldServeTheMeters() throws Exception {
        metrics.counter("millrace.learner.steps").increment(3);
        try (HttpEndpoint endpoint = HttpEndpoint.open(0, metrics, server -> {})) {
            HttpResponse<String> response = HttpClient.newHttpClient()
                    .send(
                            HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + endpoint.port() + "/metrics"))
                                    .build(),
                            HttpResponse.BodyHandlers.ofString());
            assertThat(response.statusCode()).isEqualTo(200);
            assertThat(response.body()).contains("millrace_learner_steps_total 3.0");
        }
    }

    @Test
    void shouldSayThatThePortIsTaken() {
        try (HttpEndpoint endpoint = HttpEndpoint.open(0, metrics, server -> {})) {
            int port = endpoint.port();
            assertThatThrownBy(
                            () -> HttpEndpoint.open(port, metrics, server -> {}).close())
                    .isInstanceOf(RefusedRequestException.class)
                    .hasMessageStartingWith("port " + port + " on loopback is taken");
        }
    }
}
