package dev.millrace.view.http;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.millrace.view.RecordedArchive;
import dev.millrace.view.follow.ViewedRuns;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.Socket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The server answers what the page asks of a recorded run, and nobody else. */
class ViewServerTest {
    private static final HttpClient CLIENT = HttpClient.newHttpClient();

    @TempDir
    static Path indexes;

    private static ViewServer server;

    @BeforeAll
    static void open() throws Exception {
        ViewedRuns runs = RecordedArchive.runs(indexes);
        server = ViewServer.open(0, runs);
        RecordedArchive.indexed(runs);
    }

    @AfterAll
    static void close() {
        server.close();
    }

    private static HttpResponse<String> get(String path) throws Exception {
        return CLIENT.send(
                HttpRequest.newBuilder(URI.create(server.address() + path)).build(),
                HttpResponse.BodyHandlers.ofString());
    }

    private static JsonNode json(String path) throws Exception {
        HttpResponse<String> response = get("api/runs/contract-3/" + path);
        assertThat(response.statusCode()).as(response.body()).isEqualTo(200);
        return new ObjectMapper().readTree(response.body());
    }

    @Test
    void shouldSayWhichRunsThereAre() throws Exception {
        JsonNode runs = new ObjectMapper().readTree(get("api/runs").body()).path("runs");
        assertThat(runs).hasSize(1);
        assertThat(runs.path(0).path("name").asText()).isEqualTo("contract-3");
        assertThat(runs.path(0).path("state").asText()).isEqualTo("archived");
    }

    @Test
    void shouldSayHowTheRunDoes() throws Exception {
        JsonNode facts = json("facts");
        assertThat(facts.path("run_id").asText()).isEqualTo("recorded");
        assertThat(facts.at("/index/whole").asBoolean()).isTrue();
        assertThat(facts.path("stages").findValuesAsText("name")).contains("staleness", "grpo");
        assertThat(json("now").path("newest_version").asLong()).isEqualTo(6);
        JsonNode steps = json("steps").path("steps");
        assertThat(steps).hasSize(6);
        assertThat(steps.path(5).path("version").asLong()).isEqualTo(6);
        assertThat(steps.path(5).path("ess").asDouble()).isBetween(0.0, 1.0);
        assertThat(json("diagnosis").path("steps").asInt())
                .as("every batch, trained or not")
                .isGreaterThanOrEqualTo(6);
    }

    @Test
    void shouldCountRolloutsByTheirStalenessAtTheStep() throws Exception {
        JsonNode staleness = json("staleness");
        long rollouts = 0;
        for (JsonNode row : staleness.path("histogram")) {
            assertThat(row.path(0).asLong()).as("versions behind").isBetween(0L, 6L);
            rollouts += row.path(1).asLong();
        }
        assertThat(rollouts).isEqualTo(158);
    }

    @Test
    void shouldServeThePageWithNothingAllowedBesideIt() throws Exception {
        HttpResponse<String> page = get("");
        assertThat(page.headers().firstValue("Content-Security-Policy").orElseThrow())
                .startsWith("default-src 'none'");
        assertThat(page.body()).contains("<title>Millrace</title>");
    }

    @Test
    void shouldRefuseWhoeverCallsThisMachineByAnotherName() throws Exception {
        URI address = URI.create(server.address());
        try (Socket socket = new Socket(InetAddress.getLoopbackAddress(), address.getPort())) {
            OutputStream out = socket.getOutputStream();
            out.write("GET /api/runs HTTP/1.1\r\nHost: attacker.example\r\nConnection: close\r\n\r\n"
                    .getBytes(StandardCharsets.US_ASCII));
            out.flush();
            BufferedReader in =
                    new BufferedReader(new InputStreamReader(socket.getInputStream(), StandardCharsets.US_ASCII));
            assertThat(in.readLine()).contains("403");
        }
    }

    @Test
    void shouldOnlyRead() throws Exception {
        HttpResponse<String> response = CLIENT.send(
                HttpRequest.newBuilder(URI.create(server.address() + "api/runs"))
                        .POST(HttpRequest.BodyPublishers.ofString("{}"))
                        .build(),
                HttpResponse.BodyHandlers.ofString());
        assertThat(response.statusCode()).isEqualTo(405);
    }

    @Test
    void shouldSayWhatThereIsNot() throws Exception {
        assertThat(get("api/runs/nowhere/now").statusCode()).isEqualTo(404);
        assertThat(get("api/runs/nowhere/now").body()).contains("there is no run nowhere");
        assertThat(get("api/runs/contract-3/steps?after=x").body()).contains("after must be a whole number: x");
    }
}
