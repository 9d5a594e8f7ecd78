package dev.millrace.cli.run;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.millrace.audit.ledger.Account;
import dev.millrace.audit.ledger.LedgerReader;
import dev.millrace.infra.broker.EmbeddedBroker;
import dev.millrace.log.LogConnection;
import dev.millrace.log.run.RunLog;
import dev.millrace.log.scan.LogReader;
import dev.millrace.log.scan.ReadLimit;
import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.huggingface.CheckpointDirectory;
import dev.millrace.policy.weights.Weights;
import dev.millrace.runtime.config.ConfigLayers;
import dev.millrace.runtime.config.MillraceConfig;
import dev.millrace.runtime.pipeline.Pipeline;
import dev.millrace.runtime.pipeline.RoleThreads;
import dev.millrace.runtime.rights.SecuredBroker;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.SessionEvent;
import dev.millrace.schemas.SessionEventKind;
import dev.millrace.schemas.packed.PackedInts;
import dev.millrace.schemas.serde.AvroSerde;
import dev.millrace.scorer.ScorerPurpose;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.io.IOException;
import java.net.Socket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Clock;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.Collectors;
import org.apache.avro.specific.SpecificRecord;
import org.apache.kafka.common.TopicPartition;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Agents play while their gateway is killed repeatedly: everything acknowledged is on the log, once. */
@Tag("faults")
@Timeout(3600)
class KilledGatewayIT {
    private static final Path TOKENIZER = Path.of("..", "policy", "src", "test", "resources", "tiny", "tokenizer.json");
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final int KILLS = Integer.getInteger("millrace.kills", 20);
    private static final int PAUSES = Integer.getInteger("millrace.pauses", 8);
    private static final int AGENTS = 8;
    private static final Duration LIMIT = Duration.ofMinutes(2);

    private final HttpClient client = HttpClient.newHttpClient();
    private final AtomicBoolean isOver = new AtomicBoolean();
    /** Session and turn to the tokens that the agent was given. */
    private final Map<String, List<Integer>> turns = new ConcurrentHashMap<>();
    /** Rollout to the reward that was acknowledged. */
    private final Map<String, Double> completed = new ConcurrentHashMap<>();
    /** Sessions that agents know to be over. */
    private final Set<String> givenUp = ConcurrentHashMap.newKeySet();

    private volatile String url;
    private int lives;

    @TempDir
    private Path folder;

    /** The session was ended, since nothing was asked of it for too long. */
    private static final class OverException extends Exception {
        private static final long serialVersionUID = 1;

        OverException(String problem) {
            super(problem);
        }
    }

    private interface Lives {
        void live(List<String> command, List<Future<?>> playing) throws Exception;
    }

    @Test
    void shouldLoseNothingThatItAcknowledged() throws Exception {
        int port = SecuredBroker.freePort();
        url = "http://127.0.0.1:" + port;
        play(KILLS, (command, playing) -> killAgainAndAgain(with(command, port, "g0"), playing));
    }

    /** It continues while its place is taken, with calls of agents that it has not answered. */
    @Test
    void shouldAcknowledgeNothingThatWhoeverTookItsPlaceDoesNotKnow() throws Exception {
        int port = SecuredBroker.freePort();
        url = "http://127.0.0.1:" + port;
        play(PAUSES, (command, playing) -> pauseAgainAndAgain(port, command, playing));
    }

    private static List<String> with(List<String> command, int port, String id) {
        List<String> all = new ArrayList<>(command);
        all.addAll(List.of("--set", "gateway.port=" + port, "--set", "generator.id=" + id));
        return all;
    }

    private void play(int many, Lives gateways) throws Exception {
        lives = many;
        List<String> settings = List.of(
                "model.checkpoint=" + tinyModel(),
                "data.file=" + prompts(),
                "reward.kind=regex",
                "reward.pattern=dog",
                "task.response_tokens=8",
                "generator.capacity_tokens=64",
                "run.id=killed",
                "run.topic_prefix=millrace.",
                "admission.batch_sequences=16",
                "topology.batch.sequences=16",
                "gateway.idle_ms=5000"); // of a session whose opening was not answered any more, nobody asks anything
        ConfigLayers layers = new ConfigLayers();
        settings.forEach(layers::set);
        MillraceConfig config = layers.resolve();
        try (EmbeddedBroker broker = EmbeddedBroker.start(folder.resolve("broker"));
                RunLog log = config.open(
                        Map.of("bootstrap.servers", broker.bootstrapServers()), config.topics(), Optional.empty());
                Pipeline pipeline =
                        new Pipeline(config, log.connection(), new SimpleMeterRegistry(), Clock.systemUTC());
                RoleThreads threads = new RoleThreads(TrainProcess.PATIENCE)) {
            threads.start(pipeline.learner());
            threads.start(pipeline.admission());
            threads.start(pipeline.scorer(ScorerPurpose.LEARNER));
            threads.start(pipeline.topology(folder.resolve("streams")));
            List<String> command =
                    new ArrayList<>(List.of("gateway", "--bootstrap-servers", broker.bootstrapServers()));
            settings.forEach(setting -> command.addAll(List.of("--set", setting)));
            ExecutorService agents = Executors.newFixedThreadPool(AGENTS);
            List<Future<?>> playing = new ArrayList<>();
            for (int agent = 0; agent < AGENTS; agent++) {
                Random random = new Random(agent);
                playing.add(agents.submit(() -> {
                    while (!isOver.get()) {
                        play(random);
                    }
                    return null;
                }));
            }
            gateways.live(command, playing);
            agents.shutdown();
            threads.stop();
            assertThat(threads.failure()).isEmpty();
            requireAllIsThere(log.connection());
        }
    }

    private void killAgainAndAgain(List<String> command, List<Future<?>> playing) throws Exception {
        Random random = new Random(7);
        for (int kill = 0; kill < KILLS; kill++) {
            duringALife(
                    command, playing, () -> TimeUnit.MILLISECONDS.sleep(random.nextInt(400))); // wherever it is then
        }
        duringALife(command, playing, () -> {
            isOver.set(true);
            for (Future<?> each : playing) {
                each.get(LIMIT.toSeconds(), TimeUnit.SECONDS);
            }
        });
    }

    /** One of the same id takes its place at once, one of another id when the group has missed it. */
    private void pauseAgainAndAgain(int port, List<String> command, List<Future<?>> playing) throws Exception {
        Random random = new Random(11);
        TrainProcess gateway = TrainProcess.start(folder, with(command, port, "g0"));
        try {
            for (int pause = 0; pause < PAUSES; pause++) {
                awaitProgress(gateway, playing);
                gateway.signal("STOP");
                int next = SecuredBroker.freePort();
                boolean isMissedAtOnce = pause % 2 == 0;
                try (TrainProcess before = gateway) {
                    gateway = TrainProcess.start(folder, with(command, next, "g" + (pause + 1) / 2));
                    awaitListening(next, gateway);
                    url = "http://127.0.0.1:" + next;
                    TimeUnit.MILLISECONDS.sleep(random.nextInt(isMissedAtOnce ? 1_000 : 8_000));
                    before.signal("CONT"); // calls of agents are still with it
                    TimeUnit.MILLISECONDS.sleep(random.nextInt(1_000));
                }
            }
            awaitProgress(gateway, playing);
            isOver.set(true);
            for (Future<?> each : playing) {
                each.get(LIMIT.toSeconds(), TimeUnit.SECONDS);
            }
        } finally {
            gateway.close();
        }
    }

    private static void awaitListening(int port, TrainProcess gateway) throws Exception {
        long deadline = System.nanoTime() + LIMIT.toNanos();
        while (true) {
            try (Socket socket = new Socket("127.0.0.1", port)) {
                assertThat(socket.isConnected()).isTrue();
                return;
            } catch (IOException e) {
                assertThat(System.nanoTime()).as(gateway::toString).isLessThan(deadline);
                TimeUnit.MILLISECONDS.sleep(10);
            }
        }
    }

    private interface Work {
        void run() throws Exception;
    }

    /** Starts a gateway, and kills it after the work. */
    private void duringALife(List<String> command, List<Future<?>> playing, Work work) throws Exception {
        TrainProcess gateway = TrainProcess.start(folder, command);
        try {
            awaitProgress(gateway, playing);
            work.run();
        } finally {
            gateway.close(); // SIGKILL
        }
    }

    /** Each life does something, so that there is something to be lost. */
    private void awaitProgress(TrainProcess gateway, List<Future<?>> playing) throws Exception {
        int before = turns.size();
        long deadline = System.nanoTime() + LIMIT.toNanos();
        while (turns.size() < before + AGENTS) {
            for (Future<?> each : playing) {
                if (each.isDone()) {
                    assertThatCode(each::get).as(gateway::toString).doesNotThrowAnyException();
                }
            }
            assertThat(System.nanoTime())
                    .as(() -> turns.size() + " turns were given to agents by\n" + gateway)
                    .isLessThan(deadline);
            TimeUnit.MILLISECONDS.sleep(5);
        }
    }

    private void play(Random random) throws Exception {
        JsonNode session = post("/v1/sessions", "{}");
        String id = session.get("session").asText();
        try {
            playOn(id, session, random);
        } catch (
                OverException
                        e) { // no gateway stood for longer than a session may be idle; what it acknowledged counts on
            givenUp.add(id);
        }
    }

    private void playOn(String id, JsonNode session, Random random) throws Exception {
        JsonNode first = turn(id, session.get("prompt").asText(), null);
        turn(id, session.get("prompt").asText(), first.at("/choices/0/message"));
        double reward = random.nextInt(10) / 10.0;
        JsonNode done = post("/v1/sessions/" + id + "/complete", "{\"reward\": " + reward + "}");
        completed.put(done.get("rollout_id").asText(), reward);
    }

    private JsonNode turn(String id, String prompt, JsonNode said) throws Exception {
        var call = JSON.createObjectNode();
        call.put("max_tokens", 6).put("return_token_ids", true);
        var messages = call.putArray("messages");
        messages.addObject().put("role", "user").put("content", prompt);
        if (said != null) {
            messages.add(said);
            messages.addObject().put("role", "tool").put("content", "the park");
        }
        JsonNode answer = post("/sessions/" + id + "/v1/chat/completions", call.toString());
        List<Integer> tokens = new ArrayList<>();
        answer.at("/choices/0/token_ids").forEach(token -> tokens.add(token.asInt()));
        turns.put(id + "/" + answer.at("/millrace/turns/0/turn").asInt(), tokens);
        return answer;
    }

    /** Until it is answered, as a patient client of OpenAI's does. */
    private JsonNode post(String path, String body) throws Exception {
        long deadline = System.nanoTime() + LIMIT.toNanos();
        for (int tries = 0; ; tries++) {
            String problem;
            try {
                HttpResponse<String> response = client.send(
                        HttpRequest.newBuilder(URI.create(url + path))
                                .timeout(Duration.ofSeconds(30))
                                .header("X-Stainless-Retry-Count", Integer.toString(tries))
                                .POST(HttpRequest.BodyPublishers.ofString(body))
                                .build(),
                        HttpResponse.BodyHandlers.ofString());
                if (response.statusCode() < 300) {
                    return JSON.readTree(response.body());
                }
                problem = response.body();
                if (problem.contains("has ended") && (response.statusCode() == 404 || response.statusCode() == 422)) {
                    throw new OverException(problem);
                }
                assertThat(response.statusCode()).as(problem).isIn(429, 503);
            } catch (IOException e) {
                problem = e.toString(); // it is being killed, or starts
            }
            assertThat(System.nanoTime()).as(problem).isLessThan(deadline);
            TimeUnit.MILLISECONDS.sleep(20);
        }
    }

    private void requireAllIsThere(LogConnection connection) {
        Map<String, List<Integer>> recorded = new HashMap<>();
        Set<String> ended = new HashSet<>();
        for (SessionEvent event : read(connection, connection.topics().sessions(), SessionEvent.class)) {
            if (event.getKind() == SessionEventKind.ENDED || event.getKind() == SessionEventKind.RETURNED) {
                ended.add(event.getSessionId());
            }
            if (event.getTurn() != null) {
                recorded.putIfAbsent(
                        event.getSessionId() + "/" + event.getTurn().getTurn(),
                        Arrays.stream(PackedInts.toArray(event.getTurn().getSampledTokens()))
                                .boxed()
                                .toList());
            }
        }
        assertThat(turns).hasSizeGreaterThan(lives * AGENTS);
        assertThat(recorded).as("turns that agents were given").containsAllEntriesOf(turns);
        assertThat(ended).as("sessions that agents were told are over").containsAll(givenUp);
        Map<String, List<Rollout>> rollouts = read(
                        connection, connection.topics().rollouts(), Rollout.class)
                .stream()
                .collect(Collectors.groupingBy(Rollout::getRolloutId));
        assertThat(completed).isNotEmpty();
        completed.forEach((id, reward) -> assertThat(rollouts.get(id))
                .as(id)
                .singleElement()
                .satisfies(rollout -> assertThat(rollout.getReward()).isEqualTo(reward)));
        assertThat(rollouts.values()).allSatisfy(same -> assertThat(same).hasSize(1));
        Account account = new LedgerReader(connection).read(TrainProcess.PATIENCE);
        assertThat(account.balance().addsUp()).isTrue();
        System.out.printf(
                "%d lives ended, %d turns and %d ends acknowledged, %d rollouts, %d steps%n",
                lives,
                turns.size(),
                completed.size(),
                rollouts.size(),
                account.steps().size());
    }

    private static <T extends SpecificRecord> List<T> read(LogConnection connection, String topic, Class<T> type) {
        var deserializer = AvroSerde.of(type, connection.registry()).deserializer();
        List<T> records = new ArrayList<>();
        try (LogReader log = new LogReader(connection)) {
            Map<TopicPartition, Long> ends = log.consumer().endOffsets(log.fromBeginning(topic));
            assertThat(log.readTo(
                            ends,
                            ReadLimit.withoutProgress(LIMIT),
                            record -> records.add(deserializer.deserialize(topic, record.value()))))
                    .isTrue();
        }
        return records;
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
                "{{ bos_token }}{% for m in messages %} {{ m.role }} :{{ m.content }}</s>{% endfor %} assistant :");
        Files.writeString(model.resolve("tokenizer_config.json"), "{\"bos_token\": \"<s>\"}");
        Files.writeString(model.resolve("generation_config.json"), "{\"eos_token_id\": [1, 20]}");
        return model;
    }
}
