package dev.millrace.view.http;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.millrace.gateway.HttpConfig;
import dev.millrace.view.RecordedArchive;
import dev.millrace.view.follow.ViewedRun;
import dev.millrace.view.follow.ViewedRuns;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.Socket;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Iterator;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The server answers the page's requests about a recorded run, and no other callers. */
class ViewServerTest {
    private static final HttpClient CLIENT = HttpClient.newHttpClient();

    @TempDir
    static Path indexes;

    private static ViewServer server;

    @BeforeAll
    static void open() throws Exception {
        ViewedRuns runs = RecordedArchive.runs(indexes);
        server = ViewServer.open(HttpConfig.defaults(), 0, runs, new ReportShelf(List.of()));
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
        assertThat(facts.path("stages").toString())
                .contains(
                        "{\"name\":\"staleness\",\"does\":\"masks\"}",
                        "{\"name\":\"grpo\",\"does\":\"credits\"}",
                        "{\"name\":\"ess\",\"does\":\"scales\"}");
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
    void shouldFindRolloutsByWhatTheyAreLike() throws Exception {
        JsonNode trained = json("rollouts?state=trained&sort=reward&down=1&limit=20");
        assertThat(trained.path("count").asInt()).isEqualTo(158);
        assertThat(trained.path("rows")).hasSize(20);
        double before = Double.POSITIVE_INFINITY;
        for (JsonNode row : trained.path("rows")) {
            assertThat(row.path("reward").asDouble()).isLessThanOrEqualTo(before);
            before = row.path("reward").asDouble();
        }
        assertThat(json("rollouts?reason=zero-variance").path("count").asInt()).isEqualTo(84);
        assertThat(json("rollouts?reward.from=2").path("count").asInt()).isZero();
        JsonNode points = json("points?x=policy_tokens&y=reward&state=masked");
        assertThat(points.path("count").asInt()).isEqualTo(points.path("points").size());
        assertThat(get("api/runs/contract-3/points?x=nothing&y=reward").statusCode())
                .isEqualTo(404);
    }

    @Test
    void shouldListTheNewestTrainedFirstWithTheirText() throws Exception {
        JsonNode rows = json("rollouts?limit=200").path("rows");
        long batch = Long.MAX_VALUE;
        for (int r = 0; r < 158; r++) {
            assertThat(rows.path(r).path("state").asText()).isEqualTo("trained");
            assertThat(rows.path(r).path("batch").asLong()).isLessThanOrEqualTo(batch);
            batch = rows.path(r).path("batch").asLong();
        }
        assertThat(rows.path(158).path("state").asText()).isNotEqualTo("trained");
        String id = rows.at("/0/id").asText();
        JsonNode whole = json("rollout?id=" + id.replace("/", "%2F"));
        assertThat(rows.at("/0/text").asText())
                .isNotEmpty()
                .isEqualTo(whole.path("text").asText());
        assertThat(rows.at("/0/prompt_text").asText())
                .isEqualTo(whole.path("prompt_text").asText());
    }

    @Test
    void shouldFindRolloutsByTextAndVersion() throws Exception {
        String text = json("rollouts?limit=1").at("/rows/0/text").asText();
        JsonNode found = json("rollouts?limit=500&contains=" + URLEncoder.encode(text, StandardCharsets.UTF_8));
        assertThat(found.path("count").asInt()).isBetween(1, 371);
        for (JsonNode row : found.path("rows")) {
            assertThat(row.path("prompt_text").asText() + "\n"
                            + row.path("text").asText())
                    .containsIgnoringCase(text);
        }
        assertThat(json("rollouts?contains=%25no-such-text").path("count").asInt())
                .isZero();
        for (JsonNode row : json("rollouts?version.from=2&version.to=3").path("rows")) {
            assertThat(row.path("version").asLong()).isBetween(2L, 3L);
        }
    }

    @Test
    void shouldTellTheWayOfARolloutWithItsTokensAndRecords() throws Exception {
        String id = json("rollouts?state=masked&limit=1").at("/rows/0/id").asText();
        JsonNode rollout = json("rollout?id=" + id.replace("/", "%2F"));
        assertThat(rollout.path("fate").asText()).isEqualTo("masked");
        assertThat(rollout.path("events").findValuesAsText("event"))
                .contains("prompt released", "sampled", "scored", "joined", "batched", "masked");
        assertThat(rollout.path("masked_by").asText()).isEqualTo("rollout_correction");
        int tokens = rollout.path("ids").size();
        assertThat(tokens).isPositive();
        for (String vector : new String[] {"mask", "behavior", "proximal", "tokens", "left"}) {
            assertThat(rollout.path(vector)).as(vector).hasSize(tokens);
        }
        for (JsonNode event : rollout.path("events")) {
            JsonNode record = json("record?place=" + event.path("place").asText());
            assertThat(record.path("problem").isMissingNode())
                    .as(record.toString())
                    .isTrue();
            assertThat(record.at("/record/run_id").asText()).isEqualTo("recorded");
        }
        assertThat(json("record?place=passwords-0@1").path("problem").asText())
                .contains("passwords-0@1 is not the position of a record");
        assertThat(get("api/runs/contract-3/rollout?id=0-99999%2F0").statusCode())
                .isEqualTo(404);
    }

    @Test
    void shouldDecideABatchAgainByAnotherAlgorithm() throws Exception {
        JsonNode batch = json("batch?batch=2");
        assertThat(batch.path("entries")).isNotEmpty();
        JsonNode none = json("redecide?batch=2&as=none");
        assertThat(none.path("is_as_recorded").asBoolean()).isTrue();
        assertThat(none.path("recorded")).hasSameSizeAs(batch.path("entries"));
        assertThat(none.at("/figures/1/sequences_masked").asInt()).isZero();
        int masked = 0;
        for (JsonNode entry : none.path("recorded")) {
            masked += entry.path("trained_tokens").asInt() == 0 ? 1 : 0;
        }
        assertThat(none.at("/figures/0/sequences_masked").asInt()).isEqualTo(masked);
        JsonNode keys = json("redecide?batch=2&as=masks%3A%20%5B%5D%0Arejection%3A%20%7B%7D");
        assertThat(keys.path("algorithm").asText()).isEqualTo("these keys");
        assertThat(get("api/runs/contract-3/redecide?batch=2&as=pom.xml").body())
                .as("names are names, never files")
                .contains("there is no algorithm called pom.xml");
        assertThat(get("api/runs/contract-3/redecide?batch=99&as=none").body()).contains("there is no batch 99");
    }

    @Test
    void shouldShowWhereBatchesWaitAndSayThatNobodyMeasuredThem() throws Exception {
        JsonNode sections = json("lap").at("/report/sections");
        JsonNode hops = sections.at("/0/tables/0");
        assertThat(hops.path("columns").findValuesAsText("key")).startsWith("hop", "p50", "p99", "share");
        assertThat(hops.path("rows")).hasSize(8);
        for (JsonNode row : hops.path("rows")) {
            assertThat(row.path(2).asLong())
                    .as(row.toString())
                    .isGreaterThanOrEqualTo(row.path(1).asLong());
        }
        assertThat(sections.at("/0/notes/1").asText()).startsWith("The longest hops of the critical path are ");
        assertThat(sections.at("/1/notes/0").asText()).startsWith("The cost of a step is unknown");
        assertThat(sections.at("/1/tables")).isEmpty();
    }

    @Test
    void shouldAccountForEveryRolloutAndShowWhatWasLeftOut() throws Exception {
        long all = 0;
        for (JsonNode end : json("ledger").path("ends")) {
            all += end.path("rollouts").asLong();
            assertThat(end.path("tokens_mean").asDouble()).isPositive();
        }
        assertThat(all).isEqualTo(372);
        assertThat(json("letters").path("options").asText()).startsWith("--archive ");
        assertThat(json("account").path("problem").asText()).contains("an archive has no log");
        JsonNode weights = json("weights");
        assertThat(weights.path("versions")).hasSize(7);
        assertThat(weights.at("/versions/0/base").isNull())
                .as("version 0 is whole")
                .isTrue();
        assertThat(json("course").path("reward")).hasSize(6);
    }

    @Test
    void shouldTellTheOpenPageHowTheRunEndedAsItsLastEvent(@TempDir Path own) throws Exception {
        ViewedRuns runs = RecordedArchive.runs(own);
        try (ViewServer view = ViewServer.open(HttpConfig.defaults(), 0, runs, new ReportShelf(List.of()))) {
            ViewedRun run = RecordedArchive.indexed(runs);
            HttpResponse<Stream<String>> events = CLIENT.send(
                    HttpRequest.newBuilder(URI.create(view.address() + "api/runs/contract-3/events"))
                            .build(),
                    HttpResponse.BodyHandlers.ofLines());
            Iterator<String> lines = events.body().iterator();
            while (!run.events().isWatched()) {
                Thread.onSpinWait();
            }
            Thread ending = new Thread(() -> run.end("ended at step 6: the goal was reached", 6), "ending");
            ending.start();
            while (!lines.next().equals("event: end")) {
                // the steps and the state come first
            }
            assertThat(lines.next()).isEqualTo("data: {\"how\":\"ended at step 6: the goal was reached\"}");
            String facts = CLIENT.send(
                            HttpRequest.newBuilder(URI.create(view.address() + "api/runs/contract-3/facts"))
                                    .build(),
                            HttpResponse.BodyHandlers.ofString())
                    .body();
            assertThat(facts).contains("\"ended\":\"ended at step 6: the goal was reached\"");
            ending.join();
        }
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
