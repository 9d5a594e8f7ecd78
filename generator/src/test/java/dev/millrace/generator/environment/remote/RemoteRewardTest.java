package dev.millrace.generator.environment.remote;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.api.environment.FinishedResponse;
import dev.millrace.api.environment.Transcript;
import dev.millrace.api.environment.VerifiedReward;
import dev.millrace.generator.environment.Symbols;
import dev.millrace.generator.environment.remote.AnsweringServer.Said;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class RemoteRewardTest {
    private static final int PATIENT_MS = 90_000;
    /** Answers each line with what is half of it. */
    private static final String HALF = "sed -u 's/.*\"id\":\"\\([^\"]*\\)\".*/{\"id\":\"\\1\",\"reward\":0.5}/'";

    @Test
    void shouldAskWithPromptResponseAndMetadataAndTakeRewardAndComponents() {
        try (AnsweringServer server = new AnsweringServer(
                question -> Said.ok("{\"reward\": 0.75, \"reward_components\": {\"style\": 0.25, \"right\": 0.5}}"))) {
            VerifiedReward reward = over(server, PATIENT_MS, 1).reward(response("g/3", "{\"answer\": 7}", 4, 5));
            assertThat(reward.reward()).isEqualTo(0.75);
            assertThat(reward.components()).isEqualTo(Map.of("style", 0.25, "right", 0.5));

            ObjectNode asked = server.asked.get(0);
            assertThat(asked.path("protocol").asInt()).isEqualTo(1);
            assertThat(asked.path("rollout_id").asText()).isEqualTo("g/3");
            assertThat(asked.path("id").asText()).startsWith("g/3#").isEqualTo(server.keys.get(0));
            assertThat(asked.path("prompt").asText()).isEqualTo("<bos>7");
            assertThat(asked.path("response").asText()).isEqualTo("12");
            assertThat(asked.path("response_tokens").toString()).isEqualTo("[4,5]");
            assertThat(asked.path("mask").toString()).isEqualTo("[1,1]");
            assertThat(asked.path("metadata").path("answer").asInt()).isEqualTo(7);
            assertThat(asked.path("reward").asDouble()).isEqualTo(0.125);
        }
    }

    @Test
    void shouldNameTheSameTokensAlikeAndOtherTokensOtherwise() {
        String first =
                VerdictQuestion.of(response("g/0", "", 4, 5)).body().path("id").asText();
        assertThat(VerdictQuestion.of(response("g/0", "", 4, 5))
                        .body()
                        .path("id")
                        .asText())
                .isEqualTo(first);
        assertThat(VerdictQuestion.of(response("g/0", "", 4, 6))
                        .body()
                        .path("id")
                        .asText())
                .isNotEqualTo(first);
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "{\"reward\": NaN}                          | invalid JSON",
                "{\"reward\": 1e999}                        | without a finite number as reward",
                "{}                                         | without a finite number as reward: there is none",
                "{\"reward\": \"1\"}                        | without a finite number as reward: \"1\"",
                "{\"reward\": null}                         | without a finite number as reward: null",
                "{\"reward\": true}                         | without a finite number as reward: true",
                "{\"reward\": 1, \"reward\": 2}             | invalid JSON",
                "{\"reward\": 1, \"rewards\": 2}            | unknown field rewards",
                "{\"reward\": 1} {\"reward\": 2}            | invalid JSON",
                "[1]                                        | must answer with a JSON object",
                "oops                                       | invalid JSON",
                "{\"reward\": 1, \"reward_components\": [1]}| without numbers by name as reward_components",
                "{\"reward\": 1, \"reward_components\": {\"a\": \"b\"}}| without a finite number as reward_components.a",
                "{\"reward\": 1, \"turn_rewards\": [null]}  | without a finite number as turn_rewards[0]",
                "{\"id\": \"another\", \"reward\": 1}       | answered another request: id is",
                "{\"error\": \"no sandbox is free\"}        | says: no sandbox is free",
            })
    void shouldRefuseAnAnswerThatIsNoReward(String answer, String why) {
        try (AnsweringServer server = new AnsweringServer(question -> Said.ok(answer))) {
            assertThatThrownBy(() -> over(server, PATIENT_MS, 3).reward(response("g/0", "", 4)))
                    .isInstanceOf(PartnerException.class)
                    .hasMessageContaining(server.url())
                    .hasMessageContaining(why);
            assertThat(server.asked).as("an answer is an answer").hasSize(1);
        }
    }

    @Test
    void shouldAskAgainUnderTheSameIdWhereTheServerIsInTrouble() {
        AtomicInteger calls = new AtomicInteger();
        try (AnsweringServer server = new AnsweringServer(
                question -> calls.incrementAndGet() < 3 ? new Said(503, "later") : Said.ok("{\"reward\": 1}"))) {
            assertThat(over(server, PATIENT_MS, 3)
                            .reward(response("g/0", "", 4))
                            .reward())
                    .isEqualTo(1);
            assertThat(server.keys).hasSize(3);
            assertThat(server.keys.stream().distinct()).hasSize(1);
        }
        try (AnsweringServer server = new AnsweringServer(question -> new Said(500, "a trace\nof it"))) {
            assertThatThrownBy(() -> over(server, PATIENT_MS, 2).reward(response("g/0", "", 4)))
                    .hasMessage(server.url()
                            + " gives no answer: it answered with status 500: a trace of it, after 2"
                            + " attempts (attempts)");
        }
        try (AnsweringServer server = new AnsweringServer(question -> new Said(404, "no such page"))) {
            assertThatThrownBy(() -> over(server, PATIENT_MS, 5).reward(response("g/0", "", 4)))
                    .hasMessage(server.url() + " gives no answer: it answered with status 404: no such page");
            assertThat(server.asked).hasSize(1);
        }
    }

    @Test
    void shouldNotWaitLongerThanItsLimitNorReadMoreThanItsLimit() {
        CountDownLatch never = new CountDownLatch(1);
        try (AnsweringServer server = new AnsweringServer(question -> {
            await(never);
            return Said.ok("{\"reward\": 1}");
        })) {
            assertThatThrownBy(() -> over(server, 50, 1).reward(response("g/0", "", 4)))
                    .hasMessage(server.url() + " gives no answer: it has not answered within 50 ms (timeout_ms)");
            never.countDown();
        }
        try (AnsweringServer server = new AnsweringServer(question -> Said.ok(" ".repeat(5_000) + "{\"reward\": 1}"))) {
            assertThatThrownBy(() -> over(server, PATIENT_MS, 1).reward(response("g/0", "", 4)))
                    .hasMessageContaining("longer than 4096 bytes (answer_bytes)");
        }
    }

    @Test
    void shouldWaitForAServerThatIsAwayAsLongAsItsPatienceLasts() throws Exception {
        int port;
        try (ServerSocket free = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            port = free.getLocalPort();
        }
        RemoteReward away = new RemoteReward("http://127.0.0.1:" + port + "/", "", "", PATIENT_MS, 1, 250, 1, 4_096);
        assertThatThrownBy(() -> away.reward(response("g/0", "", 4)))
                .hasMessage("http://127.0.0.1:" + port
                        + "/ gives no answer: it could not be reached for 250 ms (patience_ms)");
    }

    @Test
    void shouldAskNoMoreAtOnceThanItMay() throws Exception {
        AtomicInteger now = new AtomicInteger();
        AtomicInteger most = new AtomicInteger();
        CountDownLatch three = new CountDownLatch(3);
        try (AnsweringServer server = new AnsweringServer(question -> {
            most.accumulateAndGet(now.incrementAndGet(), Math::max);
            three.countDown();
            await(three); // all three that may be under way are
            now.decrementAndGet();
            return Said.ok("{\"reward\": 1}");
        })) {
            RemoteReward reward = new RemoteReward(server.url(), "", "", PATIENT_MS, 1, 0, 3, 4_096);
            List<CompletableFuture<VerifiedReward>> asked = new ArrayList<>();
            for (int i = 0; i < 20; i++) {
                asked.add(reward.rewardLater(response("g/" + i, "", 4)).toCompletableFuture());
            }
            for (CompletableFuture<VerifiedReward> one : asked) {
                assertThat(one.get(90, TimeUnit.SECONDS).reward()).isEqualTo(1);
            }
            assertThat(most).hasValue(3);
        }
    }

    @Test
    void shouldAskACommandLineByLine() throws Exception {
        RemoteReward reward = command(HALF, PATIENT_MS, 1);
        List<CompletableFuture<VerifiedReward>> asked = new ArrayList<>();
        for (int i = 0; i < 50; i++) {
            asked.add(reward.rewardLater(response("g/" + i, "", 4)).toCompletableFuture());
        }
        for (CompletableFuture<VerifiedReward> one : asked) {
            assertThat(one.get(90, TimeUnit.SECONDS).reward()).isEqualTo(0.5);
        }
    }

    @Test
    void shouldStartACommandAgainThatDiesAndAskItAgain(@TempDir Path folder) throws Exception {
        Path lives = folder.resolve("lives");
        RemoteReward reward = command("echo x >> " + lives + "; head -n 1 | " + HALF, PATIENT_MS, 3);
        for (int i = 0; i < 3; i++) { // each process answers once and ends
            assertThat(reward.reward(response("g/" + i, "", 4)).reward()).isEqualTo(0.5);
        }
        assertThat(Files.readAllLines(lives)).hasSizeGreaterThanOrEqualTo(3);
        assertThatThrownBy(() -> command("read line; echo no module named x >&2; exit 3", PATIENT_MS, 2)
                        .reward(response("g/0", "", 4)))
                .hasMessageContaining("gives no answer: it ended with status 3; its last error output: no module"
                        + " named x, after 2 attempts (attempts)");
    }

    @Test
    void shouldEndACommandThatHangsOrAnswersAnotherQuestion() {
        assertThatThrownBy(() -> command("sleep 600 # of one", 100, 1).reward(response("g/0", "", 4)))
                .hasMessageContaining(
                        "it has not answered within 100 ms (timeout_ms); it must write one line for each");
        assertThatThrownBy(() -> command("while read l; do echo '{\"id\":\"x\",\"reward\":1}'; done", PATIENT_MS, 1)
                        .reward(response("g/0", "", 4)))
                .hasMessageContaining("answered another request: id is \"x\"");
        assertThatThrownBy(() -> command("while read l; do echo '{\"reward\":1}'; done", PATIENT_MS, 1)
                        .reward(response("g/0", "", 4)))
                .hasMessageContaining("answered without the request's id");
        assertThatThrownBy(() ->
                        command("read l; yes | tr -d '\\n'", PATIENT_MS, 1).reward(response("g/0", "", 4)))
                .hasMessageContaining("longer than 4096 bytes (answer_bytes)");
        assertThatThrownBy(() -> command("/nowhere/verify", PATIENT_MS, 1).reward(response("g/0", "", 4)))
                .hasMessageContaining("it ended with status 127");
    }

    @Test
    void shouldRefuseSettingsThatContradictOrNameNobody() {
        assertThatThrownBy(() -> new RemoteReward("http://a/", "b", "", 1, 1, 0, 1, 64))
                .hasMessageStartingWith("url and command exclude each other");
        assertThatThrownBy(() -> new RemoteReward("ftp://a/", "", "", 1, 1, 0, 1, 64))
                .hasMessage("url must begin with http:// or https:// and a host: 'ftp://a/'");
        assertThatThrownBy(() -> new RemoteReward("http://u:p@a/", "", "", 1, 1, 0, 1, 64))
                .hasMessageStartingWith("url must hold no user and no password");
        assertThatThrownBy(() -> new RemoteReward("", "a", "TOKEN", 1, 1, 0, 1, 64))
                .hasMessageStartingWith("token_variable is for a url");
        assertThatThrownBy(() -> new RemoteReward("", "a", "", 0, 1, 0, 1, 64))
                .hasMessage("timeout_ms must be from 1 to 3600000: 0");
        assertThatThrownBy(() -> RemoteReward.defaults().requireGiven())
                .hasMessageStartingWith("reward is remote and has no address");
        assertThatThrownBy(
                        () -> new RemoteReward("http://a/", "", "NO_SUCH_VARIABLE_HERE", 1, 1, 0, 1, 64).requireGiven())
                .hasMessageContaining("NO_SUCH_VARIABLE_HERE, and that environment variable holds nothing");
        assertThat(new RemotePlace("http://a/", "", "T", new RemotePlace.Limits(1, 1, 0, 1, 64))
                        .authorization(Map.of("T", "abc")))
                .isEqualTo("Bearer abc");
    }

    private static RemoteReward over(AnsweringServer server, int timeoutMs, int attempts) {
        return new RemoteReward(server.url(), "", "", timeoutMs, attempts, 0, 4, 4_096);
    }

    private static RemoteReward command(String command, int timeoutMs, int attempts) {
        return new RemoteReward("", command, "", timeoutMs, attempts, 0, 2, 4_096);
    }

    private static FinishedResponse response(String rolloutId, String state, int... tokens) {
        Transcript written = new Transcript() {
            @Override
            public int length() {
                return tokens.length;
            }

            @Override
            public int token(int position) {
                return tokens[position];
            }

            @Override
            public boolean byPolicy(int position) {
                return true;
            }
        };
        return new FinishedResponse(
                new int[] {Symbols.BEGIN, Symbols.digit(7)},
                state,
                written,
                new VerifiedReward(0.125, Map.of()),
                Symbols.tokenizer(),
                List.of(),
                rolloutId);
    }

    private static void await(CountDownLatch latch) {
        try {
            assertThat(latch.await(90, TimeUnit.SECONDS)).isTrue();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
