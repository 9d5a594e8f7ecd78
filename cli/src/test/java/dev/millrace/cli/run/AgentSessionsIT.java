package dev.millrace.cli.run;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.millrace.audit.ledger.Account;
import dev.millrace.audit.ledger.LedgerReader;
import dev.millrace.gateway.Gateway;
import dev.millrace.generator.sampling.RoleContext;
import dev.millrace.infra.broker.EmbeddedBroker;
import dev.millrace.log.LogConnection;
import dev.millrace.log.run.RunLog;
import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.huggingface.CheckpointDirectory;
import dev.millrace.policy.session.Engine;
import dev.millrace.policy.weights.Weights;
import dev.millrace.runtime.config.ConfigLayers;
import dev.millrace.runtime.config.MillraceConfig;
import dev.millrace.runtime.pipeline.Pipeline;
import dev.millrace.runtime.pipeline.Role;
import dev.millrace.runtime.pipeline.RoleThreads;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.Speaker;
import dev.millrace.scorer.ScorerPurpose;
import dev.millrace.weights.PolicyFeed;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Clock;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** An agent that speaks the OpenAI API plays a run's samples in two turns, with a tool in between and another gateway after the first. */
@Tag("faults")
@Timeout(900)
class AgentSessionsIT {
    private static final Path TOKENIZER = Path.of("..", "policy", "src", "test", "resources", "tiny", "tokenizer.json");
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final int SAMPLES = 16;

    private final HttpClient client = HttpClient.newHttpClient();

    @TempDir
    private Path folder;

    @Test
    void shouldTrainOnSessionsThatAnotherGatewayGoesOnWith() throws Exception {
        MillraceConfig config = new ConfigLayers()
                .set("model.checkpoint", tinyModel().toString())
                .set("data.file", prompts().toString())
                .set("reward.kind=regex")
                .set("reward.pattern=dog")
                .set("task.response_tokens=8")
                .set("generator.capacity_tokens=64")
                .set("gateway.port=0")
                .set("run.id=agents")
                .set("admission.batch_sequences=" + SAMPLES)
                .set("topology.batch.sequences=" + SAMPLES)
                .set("learner.max_steps=1")
                .resolve();
        try (EmbeddedBroker broker = EmbeddedBroker.start(folder.resolve("broker"));
                RunLog log = config.open(
                        Map.of("bootstrap.servers", broker.bootstrapServers()), config.topics(), Optional.empty());
                Pipeline pipeline =
                        new Pipeline(config, log.connection(), new SimpleMeterRegistry(), Clock.systemUTC());
                RoleThreads threads = new RoleThreads(TrainProcess.PATIENCE);
                PolicyFeed feed = new PolicyFeed(log.connection(), config.weights())) {
            Role learner = pipeline.learner();
            threads.start(learner);
            threads.start(pipeline.admission());
            threads.start(pipeline.scorer(ScorerPurpose.LEARNER));
            threads.start(pipeline.topology(folder.resolve("streams")));

            Map<String, JsonNode> sessions = new HashMap<>();
            Map<String, JsonNode> firstTurns = new HashMap<>();
            try (Gateway gateway = gateway(config, log.connection(), feed)) {
                Thread first = new Thread(() -> runUntilTakenOver(gateway), "first gateway");
                first.start();
                String url = url(gateway);
                for (int i = 0; i < SAMPLES - 1; i++) { // one is for a further branch
                    JsonNode session = post(url + "/v1/sessions", "{\"agent\": \"walker\"}", 201);
                    String id = session.get("session").asText();
                    sessions.put(id, session);
                    firstTurns.put(
                            id, post(url + "/sessions/" + id + "/v1/chat/completions", turn(session, null), 200));
                }
                assertThat(sessions).hasSize(SAMPLES - 1);
                Map<String, Long> played = sessions.values().stream()
                        .collect(Collectors.groupingBy(each -> each.get("group").asText(), Collectors.counting()));
                String branching = sessions.entrySet().stream()
                        .filter(each -> played.get(each.getValue().get("group").asText())
                                < each.getValue().get("group_size").asInt())
                        .findFirst()
                        .orElseThrow()
                        .getKey();

                try (Gateway next = gateway(config, log.connection(), feed)) {
                    AtomicReference<Throwable> failure = new AtomicReference<>();
                    Thread second = new Thread(() -> run(next, failure), "second gateway");
                    second.start();
                    String other = url(next);
                    first.join();
                    for (Map.Entry<String, JsonNode> session : sessions.entrySet()) {
                        playOn(
                                other,
                                session.getKey(),
                                session.getValue(),
                                firstTurns.get(session.getKey()),
                                session.getKey().equals(branching));
                    }
                    awaitEnd(threads, learner);
                    next.stop();
                    second.join();
                    assertThat(failure.get()).isNull();
                }
            }
            threads.stop();
            assertThat(threads.failure()).isEmpty();
            requireTrained(log.connection());
        }
    }

    /** The second turn, at a gateway that has never heard of the first, and the end. */
    private void playOn(String url, String id, JsonNode session, JsonNode firstTurn, boolean branches)
            throws Exception {
        JsonNode message = firstTurn.at("/choices/0/message");
        JsonNode answer = postWhenThere(url + "/sessions/" + id + "/v1/chat/completions", turn(session, message));
        assertThat(answer.at("/millrace/turns/0/parent_turn").asInt()).isZero();
        assertThat(answer.at("/millrace/turns/0/fork_reason").isNull()).isTrue();
        List<Integer> prompt = ids(answer.get("prompt_token_ids"));
        List<Integer> before = ids(firstTurn.get("prompt_token_ids"));
        before.addAll(ids(firstTurn.at("/choices/0/token_ids")));
        assertThat(prompt).as("continues from the very tokens").startsWith(before.toArray(Integer[]::new));
        assertThat(prompt.size()).isGreaterThan(before.size());
        assertThat(answer.at("/usage/prompt_tokens").asInt()).isEqualTo(prompt.size());
        assertThat(answer.at("/choices/0/logprobs/content").size())
                .isEqualTo(answer.at("/usage/completion_tokens").asInt());
        int turn = answer.at("/millrace/turns/0/turn").asInt();
        assertThat(turn).as("no number that the first gateway may have given").isEqualTo(200_000);
        requireSameForClientsOfAnthropic(url + "/sessions/" + id, session, message, prompt.size());
        requireSameForTheResponsesApi(url + "/sessions/" + id, session, message, prompt.size());

        String end = "{\"reward\": " + (Math.abs(id.hashCode()) % 7)
                + ", \"reward_components\": {\"found\": 1}, \"turn\": " + turn
                + (branches ? ", \"branches\": [{\"turn\": " + (turn + 1) + ", \"reward_share\": 0.5}]" : "") + "}";
        JsonNode completed = post(url + "/v1/sessions/" + id + "/complete", end, 200);
        assertThat(completed.get("rollout_id")).isEqualTo(session.get("rollout_id"));
        assertThat(post(url + "/v1/sessions/" + id + "/complete", end, 200))
                .as("a second time")
                .isEqualTo(completed);
        if (branches) {
            assertThat(completed.at("/branches/0/rollout_id").asText())
                    .startsWith(session.get("group").asText() + "/")
                    .isNotEqualTo(session.get("rollout_id").asText());
        }
    }

    /** The same prompt continues from the first turn once more; of those that do, the end names the first. */
    private void requireSameForClientsOfAnthropic(String base, JsonNode session, JsonNode message, int promptTokens)
            throws Exception {
        var call = JSON.createObjectNode();
        call.put("model", "policy").put("max_tokens", 2).put("system", "there was a tool");
        var messages = call.putArray("messages");
        messages.addObject()
                .put("role", "user")
                .put("content", session.get("prompt").asText());
        messages.addObject()
                .put("role", "assistant")
                .putArray("content")
                .addObject()
                .put("type", "text")
                .put("text", message.get("content").asText());
        messages.addObject()
                .put("role", "user")
                .putArray("content")
                .addObject()
                .put("type", "tool_result")
                .put("tool_use_id", "none")
                .put("content", "the park");
        JsonNode answer = post(base + "/v1/messages", call.toString(), 200);
        assertThat(answer.get("type").asText()).isEqualTo("message");
        int kept = answer.at("/usage/cache_read_input_tokens").asInt();
        assertThat(kept).as("of the same prompt before").isEqualTo(promptTokens - 1);
        assertThat(answer.at("/usage/input_tokens").asInt()).isEqualTo(promptTokens - kept);
        assertThat(answer.at("/millrace/turns/0/parent_turn").asInt()).isZero();
        call.remove("max_tokens");
        assertThat(post(base + "/v1/messages/count_tokens", call.toString(), 200)
                        .get("input_tokens")
                        .asInt())
                .isEqualTo(promptTokens);
        call.put("max_tokens", 2);
        String stream =
                send(base + "/v1/messages", call.put("stream", true).toString()).body();
        assertThat(stream)
                .startsWith("event: message_start\n")
                .contains("event: message_delta\n")
                .endsWith("event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n");
        JsonNode refused = post(base + "/v1/messages", "{\"messages\": []}", 400);
        assertThat(refused.get("type").asText()).isEqualTo("error");
        assertThat(refused.at("/error/type").asText()).isEqualTo("invalid_request_error");
    }

    private void requireSameForTheResponsesApi(String base, JsonNode session, JsonNode message, int promptTokens)
            throws Exception {
        var call = JSON.createObjectNode();
        call.put("model", "policy").put("max_output_tokens", 2).put("instructions", "there was a tool");
        var input = call.putArray("input");
        input.addObject()
                .put("role", "user")
                .put("content", session.get("prompt").asText());
        input.addObject()
                .put("role", "assistant")
                .put("content", message.get("content").asText());
        input.addObject()
                .put("type", "function_call_output")
                .put("call_id", "none")
                .put("output", "the park");
        JsonNode answer = post(base + "/v1/responses", call.toString(), 200);
        assertThat(answer.at("/usage/input_tokens").asInt()).isEqualTo(promptTokens);
        assertThat(answer.at("/millrace/turns/0/parent_turn").asInt()).isZero();
        String stream = send(base + "/v1/responses", call.put("stream", true).toString())
                .body();
        assertThat(stream)
                .startsWith("event: response.created\n")
                .containsPattern("event: response\\.(completed|incomplete)\n");
        assertThat(post(base + "/v1/responses", "{\"previous_response_id\": \"resp_1\"}", 400)
                        .at("/error/param")
                        .asText())
                .isEqualTo("previous_response_id");
    }

    private static void requireTrained(LogConnection connection) {
        Account account = new LedgerReader(connection).read(TrainProcess.PATIENCE);
        assertThat(account.steps()).hasSize(1);
        assertThat(account.balance().addsUp()).isTrue();
        List<Rollout> rollouts =
                ForeignPartnersIT.read(connection, connection.topics().rollouts(), Rollout.class);
        assertThat(rollouts).hasSize(SAMPLES).extracting(Rollout::getRolloutId).doesNotHaveDuplicates();
        assertThat(rollouts)
                .filteredOn(rollout -> rollout.getBranch() != null)
                .singleElement()
                .satisfies(rollout -> {
                    String parent = rollout.getBranch().getParentRolloutId();
                    assertThat(rollouts)
                            .filteredOn(other -> other.getRolloutId().equals(parent))
                            .singleElement()
                            .satisfies(other -> assertThat(rollout.getReward()).isEqualTo(other.getReward() / 2));
                    assertThat(rollout.getBranch().getRewardShare()).isEqualTo(0.5);
                    assertThat(rollout.getTurns()).hasSize(1);
                });
        assertThat(rollouts).filteredOn(rollout -> rollout.getBranch() == null).allSatisfy(rollout -> {
            assertThat(rollout.getSampler().getAgent().getName()).isEqualTo("walker");
            assertThat(rollout.getRewardComponents()).containsEntry("found", 1.0);
            assertThat(rollout.getTurns())
                    .extracting(turn -> turn.getSpeaker())
                    .containsExactly(Speaker.POLICY, Speaker.ENVIRONMENT, Speaker.POLICY);
            assertThat(rollout.getTurns().get(0).getDetails().getUsage().getCompletionTokens())
                    .isEqualTo(rollout.getTurns().get(0).getEnd());
            assertThat(rollout.getVersionSpans()).hasSize(1);
        });
    }

    private static String turn(JsonNode session, JsonNode answered) {
        var call = JSON.createObjectNode();
        call.put("model", "policy").put("max_tokens", 6).put("logprobs", true).put("return_token_ids", true);
        var messages = call.putArray("messages");
        messages.addObject().put("role", "system").put("content", "there was a tool");
        messages.addObject()
                .put("role", "user")
                .put("content", session.get("prompt").asText());
        if (answered != null) {
            messages.add(answered);
            messages.addObject().put("role", "tool").put("tool_call_id", "none").put("content", "the park");
        }
        return call.toString();
    }

    private Gateway gateway(MillraceConfig config, LogConnection connection, PolicyFeed feed) {
        return new Gateway(
                new RoleContext(connection, feed, new SimpleMeterRegistry(), Clock.systemUTC()),
                config.served(),
                config.task().task().tokenizer(),
                Engine.cpu(),
                config.generator(),
                config.gateway(),
                config.http().tls());
    }

    private static void runUntilTakenOver(Gateway gateway) {
        try {
            gateway.run();
        } catch (RuntimeException e) {
            return; // the next one has its id
        }
    }

    private static void run(Gateway gateway, AtomicReference<Throwable> failure) {
        try {
            gateway.run();
        } catch (RuntimeException e) {
            failure.set(e);
        }
    }

    private static String url(Gateway gateway) {
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(90);
        while (gateway.url().isEmpty()) {
            assertThat(System.nanoTime())
                    .as("the gateway did not listen in time")
                    .isLessThan(deadline);
            LockSupport.parkNanos(1_000_000);
        }
        return gateway.url().get();
    }

    private static void awaitEnd(RoleThreads threads, Role learner) {
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(90);
        while (!threads.hasEnded(learner)) {
            assertThat(threads.failure()).isEmpty();
            assertThat(System.nanoTime()).as("no step was made in time").isLessThan(deadline);
            LockSupport.parkNanos(5_000_000);
        }
    }

    private JsonNode post(String url, String body, int status) throws Exception {
        HttpResponse<String> response = send(url, body);
        assertThat(response.statusCode()).as(response.body()).isEqualTo(status);
        return JSON.readTree(response.body());
    }

    /** As OpenAI's clients do, which try again after 503. */
    private JsonNode postWhenThere(String url, String body) throws Exception {
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(90);
        while (true) {
            HttpResponse<String> response = send(url, body);
            if (response.statusCode() != 503) {
                assertThat(response.statusCode()).as(response.body()).isEqualTo(200);
                return JSON.readTree(response.body());
            }
            assertThat(System.nanoTime()).as(response.body()).isLessThan(deadline);
            LockSupport.parkNanos(20_000_000);
        }
    }

    private HttpResponse<String> send(String url, String body) throws Exception {
        return client.send(
                HttpRequest.newBuilder(URI.create(url))
                        .POST(HttpRequest.BodyPublishers.ofString(body))
                        .build(),
                HttpResponse.BodyHandlers.ofString());
    }

    private static List<Integer> ids(JsonNode ids) {
        List<Integer> read = new ArrayList<>();
        ids.forEach(id -> read.add(id.asInt()));
        return read;
    }

    private Path prompts() throws IOException {
        return Files.writeString(
                folder.resolve("prompts.jsonl"),
                "{\"prompt\": \"Once upon a time\"}\n{\"prompt\": \"The dog ran to the park\"}\n");
    }

    private Path tinyModel() throws IOException {
        Path model = folder.resolve("model");
        DecoderShape shape = new DecoderShape(40, 32, 2, 4, 2, 8, 48, 64, 10_000, 1e-5, true, false);
        new CheckpointDirectory(model).save(Weights.random(shape, 5));
        Files.write(model.resolve("tokenizer.json"), Files.readAllBytes(TOKENIZER));
        Files.writeString(
                model.resolve("chat_template.jinja"),
                "{{ bos_token }}{% for m in messages %} {{ m.role }} :{{ m.content | trim }}</s>{% endfor %} assistant :");
        Files.writeString(model.resolve("tokenizer_config.json"), "{\"bos_token\": \"<s>\"}");
        Files.writeString(model.resolve("generation_config.json"), "{\"eos_token_id\": [1, 20]}");
        return model;
    }
}
