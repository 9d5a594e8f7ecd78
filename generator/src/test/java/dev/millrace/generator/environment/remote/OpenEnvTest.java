package dev.millrace.generator.environment.remote;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.api.environment.EpisodeStart;
import dev.millrace.api.environment.VerifiedReward;
import dev.millrace.generator.environment.Symbols;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class OpenEnvTest {
    private static final int PATIENT_MS = 90_000;
    private static final int SEVEN = Symbols.digit(7);
    private static final String NOTHING_YET =
            "{\"type\": \"observation\", \"data\": {\"observation\": {\"echo\": \"\"}, \"reward\": null, \"done\": false}}";

    @Test
    void shouldPlayAnEpisodeOnAConnectionOfItsOwn() throws Exception {
        try (OpenEnvServer server =
                new OpenEnvServer(resetThen(step -> "{\"type\": \"observation\", \"data\": {\"observation\":"
                        + " {\"echo\": " + step.at("/data/message") + "}, \"reward\": 0.5, \"done\": "
                        + (step.at("/data/message").asText().length() > 2)
                        + "}}"))) {
            RemoteEpisode episode = episode(server.url(), PATIENT_MS, 2);
            PlayedResponse response = new PlayedResponse(episode).writes(4, SEVEN);
            assertThat(response.tokens()).containsExactly(4, SEVEN, 4, SEVEN);
            response.writes(5, 5, SEVEN);
            assertThat(response.isOver).isTrue();
            VerifiedReward reward = episode.verifyLater(response)
                    .orElseThrow()
                    .toCompletableFuture()
                    .get(150, TimeUnit.SECONDS);
            assertThat(reward.reward()).isEqualTo(1.0);
            assertThat(reward.turnRewards()).containsExactly(0.5, 0.5);
            assertThat(server.asked.get(0).path("type").asText()).isEqualTo("reset");
            assertThat(server.asked.get(0).at("/data/episode_id").asText()).startsWith("g/0#");
            assertThat(server.asked.get(0).at("/data/seed").asInt()).isEqualTo(3);
            assertThat(server.asked.get(1).toString()).isEqualTo("{\"type\":\"step\",\"data\":{\"message\":\"17\"}}");
        }
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "{\"type\": \"error\", \"data\": {\"message\": \"boom\", \"code\": \"EXECUTION_ERROR\"}} | says: boom (EXECUTION_ERROR)",
                "{\"type\": \"state\", \"data\": {}}                                                    | must answer with {\"type\": \"observation\"",
                "{\"type\": \"observation\", \"data\": {\"observation\": {\"other\": 1}}}                | without echo (observation_field)",
                "{\"type\": \"observation\", \"data\": {\"observation\": {\"echo\": \"\"}, \"reward\": \"1\"}} | without a finite number as reward",
                "{\"type\": \"observation\", \"data\": {\"observation\": {\"echo\": \"\"}, \"done\": 1}} | true or false as done: 1",
                "oops                                                                                   | invalid JSON",
                "close                                                                                  | gives no answer",
            })
    void shouldFailTheEpisodeWhoseServerAnswersGarbageOrGoesAway(String answer, String why) throws Exception {
        try (OpenEnvServer server = new OpenEnvServer(resetThen(step -> answer))) {
            PlayedResponse response = new PlayedResponse(episode(server.url(), PATIENT_MS, 2));
            assertThatThrownBy(() -> response.writes(4, SEVEN)).hasMessageContaining(why);
            assertThat(server.asked.stream()
                            .filter(asked -> asked.path("type").asText().equals("step")))
                    .as("nothing is said twice")
                    .hasSize(1);
        }
    }

    @Test
    void shouldNotWaitLongerThanItsLimit() throws Exception {
        CountDownLatch never = new CountDownLatch(1);
        try (OpenEnvServer server = new OpenEnvServer(resetThen(step -> {
            try {
                never.await(150, TimeUnit.SECONDS);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
            return NOTHING_YET;
        }))) {
            assertThatThrownBy(() -> new PlayedResponse(episode(server.url(), 300, 2)).writes(4, SEVEN))
                    .hasMessage(server.url() + " gives no answer: it has not answered within 300 ms (timeout_ms)");
            never.countDown();
        }
        assertThatThrownBy(() -> new PlayedResponse(episode("ws://127.0.0.1:1/ws", PATIENT_MS, 2)))
                .hasMessage("ws://127.0.0.1:1/ws could not be connected to for 0 ms (patience_ms)");
    }

    @Test
    void shouldOpenNoMoreConnectionsThanItMay() throws Exception {
        try (OpenEnvServer server = new OpenEnvServer(resetThen(step ->
                "{\"type\": \"observation\", \"data\": {\"observation\": {\"echo\": \"\"}, \"done\": true}}"))) {
            for (int i = 0; i < 5; i++) {
                RemoteEpisode episode = episode(server.url(), PATIENT_MS, 1);
                PlayedResponse response = new PlayedResponse(episode).writes(SEVEN);
                assertThat(response.isOver).isTrue();
                episode.verifyLater(response); // gives its connection to the next
            }
            assertThat(server.asked.stream()
                            .filter(asked -> asked.path("type").asText().equals("reset")))
                    .hasSize(5);
        }
    }

    private static Function<ObjectNode, String> resetThen(Function<ObjectNode, String> step) {
        return message -> message.path("type").asText().equals("reset") ? NOTHING_YET : step.apply(message);
    }

    private static RemoteEpisode episode(String url, int timeoutMs, int concurrency) {
        RemoteEnvironment settings = new RemoteEnvironment(
                "remote",
                EnvironmentProtocol.OPENENV,
                url,
                "",
                "",
                List.of("7"),
                "{text}",
                "message",
                "echo",
                timeoutMs,
                1,
                0,
                concurrency,
                4_096);
        return (RemoteEpisode) settings.in(Symbols.tokenizer())
                .begin(new EpisodeStart("g/0", new int[] {Symbols.BEGIN}, "{\"reset\": {\"seed\": 3}}"));
    }
}
