package dev.millrace.generator.environment.remote;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.api.environment.EpisodeStart;
import dev.millrace.api.environment.VerifiedReward;
import dev.millrace.generator.environment.Symbols;
import dev.millrace.generator.environment.remote.AnsweringServer.Said;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Function;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Turns end with a seven here, which {@code stop} names. */
class RemoteEnvironmentTest {
    private static final int SEVEN = Symbols.digit(7);
    private static final int PATIENT_MS = 90_000;

    @Test
    void shouldPlayTurnByTurnAndAddUpWhatItsTurnsAreWorth() throws Exception {
        try (AnsweringServer server = new AnsweringServer(question -> Said.ok(
                switch (question.path("op").asText() + question.path("step").asText()) {
                    case "reset" -> "{\"step\": 0, \"text\": \"99\"}";
                    case "step1" ->
                        "{\"step\": 1, \"text\": \"7\", \"reward\": 0.25, \"reward_components\": {\"a\": 1}}";
                    case "step2" ->
                        "{\"step\": 2, \"tokens\": [13], \"reward\": 0.5, \"reward_components\": {\"a\": 1}, \"done\": true}";
                    default -> "{}";
                }))) {
            RemoteEpisode episode = episode(url(server.url(), PATIENT_MS, 1));
            PlayedResponse response = new PlayedResponse(episode).writes(4, 5, SEVEN);
            assertThat(response.isOver).isFalse();
            // the seven that the environment said ends no turn of the policy
            response.writes(6, SEVEN);
            assertThat(response.isOver).isTrue();
            assertThat(response.tokens()).containsExactly(12, 12, 4, 5, SEVEN, SEVEN, 6, SEVEN, 13);

            VerifiedReward reward = episode.verifyLater(response)
                    .orElseThrow()
                    .toCompletableFuture()
                    .get(90, TimeUnit.SECONDS);
            assertThat(reward.reward()).isEqualTo(0.75);
            assertThat(reward.components()).isEqualTo(Map.of("a", 2.0));
            assertThat(reward.turnRewards()).containsExactly(0.25, 0.5);

            ObjectNode reset = server.asked.get(0);
            assertThat(reset.path("metadata").path("answer").asInt()).isEqualTo(7);
            assertThat(reset.path("prompt").asText()).isEqualTo("<bos>1");
            assertThat(reset.path("rollout_id").asText()).isEqualTo("g/0");
            assertThat(server.asked.get(1).path("text").asText()).isEqualTo("127");
            assertThat(server.asked.get(2).path("text").asText()).isEqualTo("37");
            assertThat(server.asked.stream()
                            .map(asked -> asked.path("episode").asText())
                            .distinct())
                    .hasSize(1);
            assertThat(server.keys).doesNotHaveDuplicates();
        }
    }

    @Test
    void shouldTakeATurnOnceWhereItsAnswerIsLost() {
        Map<String, String> recorded = new ConcurrentHashMap<>();
        AtomicInteger turns = new AtomicInteger();
        AtomicInteger calls = new AtomicInteger();
        try (AnsweringServer server = new AnsweringServer(question -> {
            String answer = recorded.computeIfAbsent(
                    question.path("id").asText(),
                    id -> question.path("op").asText().equals("step")
                            ? "{\"step\": " + turns.incrementAndGet() + ", \"reward\": 1, \"done\": true}"
                            : "{\"step\": 0}");
            return calls.incrementAndGet() % 2 == 1 ? new Said(502, "the answer is lost") : Said.ok(answer);
        })) {
            PlayedResponse response = new PlayedResponse(episode(url(server.url(), PATIENT_MS, 3))).writes(4, SEVEN);
            assertThat(response.isOver).isTrue();
            assertThat(turns).hasValue(1);
            assertThat(server.keys).hasSize(4);
        }
    }

    /** Reports that it received a turn twice. */
    @Test
    void shouldFailWhereATurnWasTakenTwice() {
        AtomicInteger turns = new AtomicInteger();
        AtomicInteger calls = new AtomicInteger();
        try (AnsweringServer server = new AnsweringServer(question -> {
            if (question.path("op").asText().equals("reset")) {
                return Said.ok("{\"step\": 0}");
            }
            int taken = turns.incrementAndGet();
            return calls.getAndIncrement() == 0 ? new Said(500, "lost") : Said.ok("{\"step\": " + taken + "}");
        })) {
            PlayedResponse response = new PlayedResponse(episode(url(server.url(), PATIENT_MS, 3)));
            assertThatThrownBy(() -> response.writes(4, SEVEN))
                    .hasMessage(server.url()
                            + " has taken 2 turns of an episode with 1; a repeated turn must get the same answer"
                            + " and be taken once");
        }
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "oops                                           | invalid JSON",
                "{}                                             | must say in \"step\" the number of turns",
                "{\"step\": 3}                                  | has taken 3 turns of an episode with 1",
                "{\"step\": 1, \"text\": 5}                     | without a string as text: NUMBER",
                "{\"step\": 1, \"text\": \"a\"}                 | no symbol begins at character 0",
                "{\"step\": 1, \"text\": \"1\", \"tokens\": [1]}| text and tokens; give one of them",
                "{\"step\": 1, \"tokens\": \"1\"}               | a list of token ids as tokens: STRING",
                "{\"step\": 1, \"tokens\": [1.5]}               | no token id as tokens[0]: 1.5",
                "{\"step\": 1, \"done\": \"yes\"}               | true or false as done: \"yes\"",
                "{\"step\": 1, \"reward\": NaN}                 | invalid JSON",
                "{\"step\": 1, \"reward\": \"1\"}               | without a finite number as reward: \"1\"",
                "{\"step\": 1, \"observation\": \"1\"}          | unknown field observation",
                "{\"error\": \"the sandbox is gone\"}           | says: the sandbox is gone",
            })
    void shouldFailTheEpisodeWhoseEnvironmentAnswersGarbage(String answer, String why) {
        try (AnsweringServer server = new AnsweringServer(
                question -> Said.ok(question.path("op").asText().equals("reset") ? "{\"step\": 0}" : answer))) {
            PlayedResponse response = new PlayedResponse(episode(url(server.url(), PATIENT_MS, 1)));
            assertThatThrownBy(() -> response.writes(4, SEVEN)).hasMessageContaining(why);
        }
    }

    @Test
    void shouldAskForTheStateOfAnEpisodeThatTheLimitCut() throws Exception {
        try (AnsweringServer server = new AnsweringServer(question -> Said.ok(
                switch (question.path("op").asText()) {
                    case "step" -> "{\"step\": 1, \"reward\": 0.25}";
                    case "state" -> "{\"step\": 1, \"reward\": 0.125, \"reward_components\": {\"part\": 0.125}}";
                    default -> "{\"step\": 0}";
                }))) {
            RemoteEpisode episode = episode(url(server.url(), PATIENT_MS, 1));
            PlayedResponse response = new PlayedResponse(episode).writes(4, SEVEN, 5);
            VerifiedReward reward = episode.verifyLater(response)
                    .orElseThrow()
                    .toCompletableFuture()
                    .get(90, TimeUnit.SECONDS);
            assertThat(reward.reward()).isEqualTo(0.125);
            assertThat(reward.components()).isEqualTo(Map.of("part", 0.125));
            assertThat(reward.turnRewards())
                    .as("it said nothing, so the policy's turn continued")
                    .containsExactly(0.25);
        }
    }

    @Test
    void shouldPlayEpisodesWithTheProcessesOfACommandEachWithItsOwn(@TempDir Path folder) throws Exception {
        RemoteEnvironment settings = command("exec /bin/sh " + script(folder, "answer \"$id\" \"$n\""), PATIENT_MS);
        for (int i = 0; i < 3; i++) {
            PlayedResponse response =
                    new PlayedResponse(episode(settings)).writes(4, SEVEN).writes(4, SEVEN);
            assertThat(response.tokens()).containsExactly(4, SEVEN, 4, 4, SEVEN, 5);
        }
    }

    @Test
    void shouldLoseOnlyTheEpisodesOfAProcessThatDies(@TempDir Path folder) throws Exception {
        // dies on a turn of two tokens
        String dies = script(folder, "case \"$line\" in *'\"tokens\":[4,5,10]'*) exit 9;; esac; answer \"$id\" \"$n\"");
        RemoteEnvironment settings = command("exec /bin/sh " + dies, PATIENT_MS);
        PlayedResponse first = new PlayedResponse(episode(settings));
        assertThatThrownBy(() -> first.writes(4, 5, SEVEN))
                .hasMessageContaining("gives no answer: it ended with status 9");
        assertThat(new PlayedResponse(episode(settings)).writes(4, SEVEN).tokens())
                .containsExactly(4, SEVEN, 4);
        assertThatThrownBy(() -> first.writes(SEVEN)).hasMessageContaining("has ended, and its episodes with it");
    }

    @Test
    void shouldRefuseSettingsThatContradict() {
        assertThatThrownBy(() -> settings(d -> d.name("Game")))
                .hasMessage("name must be lower-case letters, digits and '-': 'Game'");
        assertThatThrownBy(() -> settings(d -> d.frame("none")))
                .hasMessage("frame must hold {text} once, the placeholder of the environment's text: 'none'");
        assertThatThrownBy(() -> settings(d -> d.openEnv("http://a/ws", "")))
                .hasMessage("url must begin with ws:// or wss:// and a host: 'http://a/ws'");
        assertThatThrownBy(() -> settings(d -> d.openEnv("", "python3 a.py")))
                .hasMessageStartingWith("command is 'python3 a.py', and OpenEnv needs a WebSocket");
        assertThatThrownBy(() -> RemoteEnvironment.defaults().requireGiven("task.environment"))
                .hasMessageContaining("give --set task.environment.url=http://HOST:PORT/");
    }

    /** Answers each line by the shell's body, in which id, op and the number of turns are at hand. */
    private static String script(Path folder, String body) throws java.io.IOException {
        Path file = folder.resolve("environment.sh");
        java.nio.file.Files.writeString(file, """
                n=0
                answer() { if [ "$2" -gt 0 ]; then t=",\\"tokens\\":[$((3+$2))]"; else t=""; fi; echo "{\\"id\\":\\"$1\\",\\"step\\":$2$t}"; }
                while read -r line; do
                  id=$(echo "$line" | sed 's/.*"id":"\\([^"]*\\)".*/\\1/')
                  case "$line" in
                    *'"op":"reset"'*) n=0;;
                    *'"op":"step"'*) n=$((n+1));;
                  esac
                  BODY
                done
                """.replace("BODY", body));
        return file.toString();
    }

    private static RemoteEpisode episode(RemoteEnvironment settings) {
        return (RemoteEpisode) settings.in(Symbols.tokenizer())
                .begin(new EpisodeStart("g/0", new int[] {Symbols.BEGIN, Symbols.digit(1)}, "{\"answer\": 7}"));
    }

    private static RemoteEnvironment url(String url, int timeoutMs, int attempts) {
        return settings(d -> new Settings(d.name, d.protocol, url, "", d.frame, timeoutMs, attempts));
    }

    private static RemoteEnvironment command(String command, int timeoutMs) {
        return settings(d -> new Settings(d.name, d.protocol, "", command, d.frame, timeoutMs, 1));
    }

    private record Settings(
            String name,
            EnvironmentProtocol protocol,
            String url,
            String command,
            String frame,
            int timeoutMs,
            int attempts) {
        Settings name(String other) {
            return new Settings(other, protocol, url, command, frame, timeoutMs, attempts);
        }

        Settings frame(String other) {
            return new Settings(name, protocol, url, command, other, timeoutMs, attempts);
        }

        Settings openEnv(String otherUrl, String otherCommand) {
            return new Settings(name, EnvironmentProtocol.OPENENV, otherUrl, otherCommand, frame, timeoutMs, attempts);
        }
    }

    private static RemoteEnvironment settings(Function<Settings, Settings> change) {
        Settings s = change.apply(new Settings("remote", EnvironmentProtocol.MILLRACE, "", "", "{text}", 1_000, 1));
        return new RemoteEnvironment(
                s.name,
                s.protocol,
                s.url,
                s.command,
                "",
                List.of("7"),
                s.frame,
                "message",
                "",
                s.timeoutMs,
                s.attempts,
                0,
                2,
                4_096);
    }
}
