package dev.millrace.cli.run;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.millrace.gateway.HttpConfig;
import dev.millrace.view.follow.RunSource;
import dev.millrace.view.follow.ViewedRuns;
import dev.millrace.view.http.ReportShelf;
import dev.millrace.view.http.ViewServer;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.CleanupMode;
import org.junit.jupiter.api.io.TempDir;

/** A page that stays open shows that a run was killed, is not in its way when it continues, and continues with it. */
@Tag("faults")
@Timeout(600)
class KilledUnderViewIT {
    private static final HttpClient CLIENT = HttpClient.newHttpClient();
    private static final String[] ENDLESS = {
        "--set", "goal.mean_reward=0", "--set", "learner.max_steps=0", "--set", "goal.max_seconds=0"
    };

    @TempDir(cleanup = CleanupMode.NEVER) // a process that was killed may still write
    private Path folder;

    private static JsonNode ask(ViewServer server, String question) throws Exception {
        HttpResponse<String> response = CLIENT.send(
                HttpRequest.newBuilder(URI.create(server.address() + "api/runs/run/" + question))
                        .build(),
                HttpResponse.BodyHandlers.ofString());
        return new ObjectMapper().readTree(response.body());
    }

    private static void awaitState(ViewServer server, String state, TrainProcess run) throws Exception {
        await(server, state, () -> ask(server, "facts").path("state").asText().equals(state), run);
    }

    private interface Condition {
        boolean holds() throws Exception;
    }

    private static void await(ViewServer server, String what, Condition condition, TrainProcess run) throws Exception {
        long deadline = System.nanoTime() + TrainProcess.PATIENCE.toNanos();
        while (!condition.holds()) {
            assertThat(System.nanoTime())
                    .as("no " + what + ": " + ask(server, "facts") + "\n" + run)
                    .isLessThan(deadline);
            TimeUnit.MILLISECONDS.sleep(50);
        }
    }

    private static long steps(ViewServer server) throws Exception {
        return ask(server, "steps").path("all").asLong();
    }

    @Test
    void shouldShowARunThatIsKilledAndGoesOnUnderAnOpenPage() throws Exception {
        Path run = folder.resolve("run");
        long killedAt;
        try (TrainProcess first = TrainProcess.train(run, ENDLESS)) {
            first.awaitStep(3);
            try (ViewServer server = ViewServer.open(
                    HttpConfig.defaults(),
                    0,
                    new ViewedRuns(List.of(new RunSource.Folder(run)), null, folder.resolve("indexes")),
                    new ReportShelf(List.of()))) {
                awaitState(server, "running", first);
                await(server, "three steps", () -> steps(server) >= 3, first);
                first.signal("KILL");
                awaitState(server, "killed", first);
                killedAt = steps(server);
                assertThat(killedAt).isGreaterThanOrEqualTo(3);
                assertThat(ask(server, "facts").path("problem").asText()).isEmpty();
                JsonNode account = ask(server, "account");
                assertThat(account.path("contradictions").asInt(-1))
                        .as(account.toString())
                        .isZero();
                try (TrainProcess second = TrainProcess.train(run)) {
                    awaitState(server, "running", second);
                    await(server, "further steps", () -> steps(server) > killedAt + 3, second);
                    assertThat(ask(server, "facts").path("problem").asText()).isEmpty();
                    second.signal("INT");
                    second.awaitExit(TrainProcess.PATIENCE);
                    awaitState(server, "finished", second);
                    assertThat(steps(server)).isGreaterThan(killedAt + 3);
                }
            }
        }
    }
}
