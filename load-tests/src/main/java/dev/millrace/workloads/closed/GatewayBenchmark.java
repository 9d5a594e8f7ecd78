package dev.millrace.workloads.closed;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.sun.net.httpserver.HttpServer;
import dev.millrace.api.environment.Prompt;
import dev.millrace.api.environment.Task;
import dev.millrace.gateway.HttpDefaults;
import dev.millrace.gateway.RequestThreads;
import dev.millrace.generator.sampling.SampledTurn;
import dev.millrace.generator.sampling.TurnEngine;
import dev.millrace.generator.sampling.TurnOrder;
import dev.millrace.infra.broker.BrokerConfig;
import dev.millrace.infra.broker.BrokerProcess;
import dev.millrace.log.LogConnection;
import dev.millrace.log.run.RunLog;
import dev.millrace.report.Column;
import dev.millrace.report.ReportOrigin;
import dev.millrace.report.Sample;
import dev.millrace.report.Section;
import dev.millrace.report.Table;
import dev.millrace.runtime.config.ConfigLayers;
import dev.millrace.runtime.config.MillraceConfig;
import dev.millrace.runtime.pipeline.Pipeline;
import dev.millrace.runtime.pipeline.Role;
import dev.millrace.runtime.pipeline.RoleThreads;
import dev.millrace.schemas.EngineIdentity;
import dev.millrace.schemas.FinishReason;
import dev.millrace.schemas.LogProbDistribution;
import dev.millrace.schemas.PromptRequest;
import dev.millrace.schemas.SamplingParameters;
import dev.millrace.schemas.VersionSpan;
import dev.millrace.schemas.packed.PackedInts;
import dev.millrace.schemas.serde.AvroSerde;
import dev.millrace.workloads.Goal;
import dev.millrace.workloads.topology.LoadException;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Clock;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;
import org.HdrHistogram.ConcurrentHistogram;
import org.HdrHistogram.Histogram;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.utils.internals.AppInfoParser;

/**
 * Compares calls through a gateway with direct calls of the same engine double: same agents, prompts and pauses, in
 * turn. Further sessions stay open at the gateway.
 */
public final class GatewayBenchmark {
    private static final int GROUP = 8;
    private static final int POSITIONS = 4096;
    private static final Duration START_LIMIT = Duration.ofMinutes(5);
    private static final double P50_BOUND_MS = 5;
    private static final double P99_BOUND_MS = 25;

    private final Plan plan;
    private final Path scratch;
    private final Consumer<String> progress;

    public GatewayBenchmark(Plan plan, Path scratch, Consumer<String> progress) {
        this.plan = plan;
        this.scratch = scratch;
        this.progress = progress;
    }

    /**
     * @param open further sessions, one turn each
     * @param thinkMs mean pause of an agent
     * @param seconds of each measurement
     * @param repetitions of each, after one that is not counted
     */
    public record Plan(int agents, int open, long latencyMs, long thinkMs, int seconds, int repetitions) {
        public Plan {
            for (long value : new long[] {agents, latencyMs, thinkMs, seconds, repetitions}) {
                if (value < 1) {
                    throw new IllegalArgumentException("every number of the plan must be at least 1: " + value);
                }
            }
        }
    }

    public record Round(long directCalls, double directP50, double directP99, long calls, double p50, double p99) {
        public double addedP50() {
            return p50 - directP50;
        }

        public double addedP99() {
            return p99 - directP99;
        }
    }

    /** Results and goals. */
    public record Report(ReportOrigin origin, Plan plan, List<Round> rounds, List<Goal> goals) {}

    public Report run(String command) throws IOException, InterruptedException {
        ReportOrigin origin = ReportOrigin.here(command, AppInfoParser.getVersion());
        MillraceConfig config = new ConfigLayers()
                .set("run.id=gateway-load")
                .set("model.max_positions=" + POSITIONS)
                .set("generator.capacity_tokens=" + POSITIONS)
                .set("gateway.port=0")
                .set("gateway.sessions=" + (plan.agents() + plan.open() + GROUP))
                .set("gateway.claim_wait_ms=30000")
                .resolve();
        List<Round> rounds = new ArrayList<>();
        try (BrokerProcess broker =
                        BrokerProcess.start(scratch.resolve("broker"), BrokerConfig.defaults(), List.of("-Xmx1g"));
                RunLog log = config.open(
                        Map.of("bootstrap.servers", broker.bootstrapServers()),
                        config.sizedTopics(),
                        Optional.empty());
                FixedLatencyEngine engine = new FixedLatencyEngine(plan.latencyMs());
                FixedLatencyEngine beside = new FixedLatencyEngine(plan.latencyMs());
                DirectServer direct = new DirectServer(beside);
                Pipeline pipeline =
                        new Pipeline(config, log.connection(), new SimpleMeterRegistry(), Clock.systemUTC());
                RoleThreads threads = new RoleThreads(Duration.ofMinutes(5))) {
            pipeline.firstVersion().run().run();
            release(log.connection(), config);
            CompletableFuture<String> listening = new CompletableFuture<>();
            Role gateway = pipeline.gateway(listening::complete, engine);
            threads.start(gateway);
            String url = url(listening, threads);
            AgentLanes lanes = new AgentLanes(plan.agents(), plan.thinkMs());
            hold(lanes, url);
            Duration duration = Duration.ofSeconds(plan.seconds());
            for (int r = 0; r <= plan.repetitions(); r++) { // the first warms up
                Histogram without = lanes.play(new Direct(direct.url()), duration);
                Histogram with = lanes.play(new Sessions(lanes, url), duration);
                Round round = new Round(
                        without.getTotalCount(),
                        without.getValueAtPercentile(50) / 1e6,
                        without.getValueAtPercentile(99) / 1e6,
                        with.getTotalCount(),
                        with.getValueAtPercentile(50) / 1e6,
                        with.getValueAtPercentile(99) / 1e6);
                if (r > 0) {
                    rounds.add(round);
                }
                progress.accept(String.format(
                        Locale.ROOT,
                        "round %d%s: direct %.1f and %.1f ms (p50, p99 of %d calls), through the gateway %.1f and %.1f ms (%d calls)",
                        r,
                        r == 0 ? " (not counted)" : "",
                        round.directP50(),
                        round.directP99(),
                        round.directCalls(),
                        round.p50(),
                        round.p99(),
                        round.calls()));
            }
            threads.stop();
        }
        return new Report(
                origin,
                plan,
                rounds,
                List.of(
                        goal(
                                "added to the median call",
                                Sample.of(rounds.stream().map(Round::addedP50).toList())
                                        .median(),
                                P50_BOUND_MS),
                        goal(
                                "added to the slowest of 100 calls",
                                Sample.of(rounds.stream().map(Round::addedP99).toList())
                                        .median(),
                                P99_BOUND_MS)));
    }

    private static Goal goal(String name, double value, double bound) {
        return new Goal(
                name,
                String.format(Locale.ROOT, "%.1f ms", value),
                String.format(Locale.ROOT, "below %.0f ms", bound),
                value < bound);
    }

    private static String url(CompletableFuture<String> listening, RoleThreads threads) throws InterruptedException {
        try {
            return listening.get(START_LIMIT.toSeconds(), TimeUnit.SECONDS);
        } catch (TimeoutException | ExecutionException e) {
            throw new LoadException(
                    "the gateway did not listen within " + START_LIMIT.toSeconds() + " s: "
                            + threads.failure().map(Throwable::toString).orElse("it still starts"),
                    e);
        }
    }

    /** Releases the prompts that the agents can play, and those held open. */
    private void release(LogConnection connection, MillraceConfig config) throws InterruptedException {
        Task task = config.task().task();
        long calls = 1L
                * plan.agents()
                * plan.seconds()
                * (plan.repetitions() + 1)
                * 1000
                / (plan.latencyMs() + plan.thinkMs());
        long groups = (calls / 4 + plan.open() + plan.agents()) / GROUP + 1;
        String topic = connection.topics().prompts();
        var serializer =
                AvroSerde.of(PromptRequest.class, connection.registry()).serializer();
        try (Producer<byte[], byte[]> producer = new KafkaProducer<>(
                connection.producer(Map.of("linger.ms", 5)), new ByteArraySerializer(), new ByteArraySerializer())) {
            for (long ordinal = 0; ordinal < groups; ordinal++) {
                Prompt prompt = task.prompts().prompt(1, ordinal);
                PromptRequest request = PromptRequest.newBuilder()
                        .setRunId(connection.run().runId())
                        .setEpoch(connection.run().epoch())
                        .setGroupId("0-" + ordinal)
                        .setOrdinal(ordinal)
                        .setEnvironment(task.environment().name())
                        .setEnvironmentState(prompt.environmentState())
                        .setPromptTokens(PackedInts.of(prompt.tokens()))
                        .setSamples(GROUP)
                        .setSampling(new SamplingParameters(1.0, 0, 1.0, 32, 1L, false, 0, 0.0, false))
                        .setTokenizerHash(task.tokenizer().hash())
                        .setAdmittedVersion(0)
                        .setReleasedAtMs(System.currentTimeMillis())
                        .build();
                producer.send(new ProducerRecord<>(
                        topic,
                        request.getGroupId().getBytes(StandardCharsets.UTF_8),
                        serializer.serialize(topic, request)));
            }
        }
    }

    private void hold(AgentLanes lanes, String url) throws InterruptedException {
        lanes.each(plan.open(), () -> {
            lanes.post(
                    sessionUrl(lanes.post(url + "/v1/sessions", "{}")),
                    "{\"prompt\": [3, 4, 5, 6], \"max_tokens\": 32}");
            return null;
        });
        progress.accept(plan.open() + " sessions are open");
    }

    private static String sessionUrl(JsonNode session) {
        return session.get("openai_base_url").asText() + "/completions";
    }

    private record Direct(String url) implements AgentLanes.Target {
        @Override
        public String begin() {
            return url + "/v1/completions";
        }

        @Override
        public void end(String calls) {
            // it remembers nothing
        }
    }

    private record Sessions(AgentLanes lanes, String url) implements AgentLanes.Target {
        @Override
        public String begin() throws IOException, InterruptedException {
            return sessionUrl(lanes.post(url + "/v1/sessions", "{}"));
        }

        @Override
        public void end(String calls) throws IOException, InterruptedException {
            String session = calls.split("/")[4];
            lanes.post(url + "/v1/sessions/" + session + "/complete", "{\"reward\": 1}");
        }
    }

    /**
     * Concurrent agents that play one session after another: call, random pause, call continuing the answer. Times
     * calls from sending to the last byte.
     */
    static final class AgentLanes {
        private static final ObjectMapper JSON = new ObjectMapper();
        private static final int TURNS = 8;
        private static final int ADDED_TOKENS = 32;
        private static final Duration LIMIT = Duration.ofMinutes(5);

        private final HttpClient client = HttpClient.newHttpClient();
        private final int agents;
        private final long thinkMs;

        AgentLanes(int agents, long thinkMs) {
            this.agents = agents;
            this.thinkMs = thinkMs;
        }

        interface Target {
            String begin() throws IOException, InterruptedException;

            void end(String calls) throws IOException, InterruptedException;
        }

        /** Plays for the duration; returns the nanoseconds of calls sent in its last three quarters. */
        Histogram play(Target target, Duration duration) throws InterruptedException {
            Histogram nanos = new ConcurrentHistogram(3);
            long from = System.nanoTime();
            long until = from + duration.toNanos();
            long counted = from + duration.toNanos() / 4;
            each(agents, () -> {
                pause(); // or all would call at once
                while (System.nanoTime() < until) {
                    session(target, until, counted, nanos);
                }
                return null;
            });
            return nanos;
        }

        void each(int times, Callable<?> work) throws InterruptedException {
            ExecutorService threads = Executors.newFixedThreadPool(agents);
            try {
                List<Future<?>> lanes = new ArrayList<>();
                for (int i = 0; i < times; i++) {
                    lanes.add(threads.submit(work));
                }
                for (Future<?> lane : lanes) {
                    lane.get();
                }
            } catch (ExecutionException e) {
                throw new LoadException("an agent failed: " + e.getMessage(), e);
            } finally {
                threads.shutdownNow();
            }
        }

        private void session(Target target, long until, long counted, Histogram nanos)
                throws IOException, InterruptedException {
            String calls = target.begin();
            List<Integer> prompt = new ArrayList<>();
            for (int turn = 0; turn < TURNS && System.nanoTime() < until; turn++) {
                for (int i = 0; i < ADDED_TOKENS; i++) {
                    prompt.add(3 + (turn + i) % 10);
                }
                String body =
                        "{\"model\":\"policy\",\"max_tokens\":32,\"return_token_ids\":true,\"prompt\":" + prompt + "}";
                long sent = System.nanoTime();
                JsonNode answer = post(calls, body);
                if (sent > counted) {
                    nanos.recordValue(System.nanoTime() - sent);
                }
                answer.at("/choices/0/token_ids").forEach(token -> prompt.add(token.intValue()));
                pause();
            }
            target.end(calls);
        }

        private void pause() throws InterruptedException {
            Thread.sleep(ThreadLocalRandom.current().nextLong(2 * thinkMs + 1));
        }

        JsonNode post(String url, String body) throws IOException, InterruptedException {
            HttpResponse<String> response = client.send(
                    HttpRequest.newBuilder(URI.create(url))
                            .timeout(LIMIT)
                            .POST(HttpRequest.BodyPublishers.ofString(body))
                            .build(),
                    HttpResponse.BodyHandlers.ofString());
            if (response.statusCode() >= 300) {
                throw new LoadException(url + " answered " + response.statusCode() + ": " + response.body());
            }
            return JSON.readTree(response.body());
        }
    }

    /** The engine double without a gateway, over the same server. */
    static final class DirectServer implements AutoCloseable {
        private final HttpServer server;
        private final ExecutorService threads;

        DirectServer(FixedLatencyEngine engine) throws IOException {
            HttpDefaults.apply();
            server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 1024);
            threads = Executors.newCachedThreadPool(RequestThreads.daemons("direct"));
            server.setExecutor(threads);
            server.createContext("/", exchange -> {
                try (exchange) {
                    exchange.getRequestBody().readAllBytes();
                    engine.waited().join();
                    byte[] body =
                            ("{\"choices\":[{\"index\":0,\"text\":\"\",\"finish_reason\":\"length\",\"token_ids\":"
                                            + Arrays.toString(engine.answer()) + "}]}")
                                    .getBytes(StandardCharsets.UTF_8);
                    exchange.getResponseHeaders().set("Content-Type", "application/json");
                    exchange.sendResponseHeaders(200, body.length);
                    exchange.getResponseBody().write(body);
                }
            });
            server.start();
        }

        String url() {
            return "http://127.0.0.1:" + server.getAddress().getPort();
        }

        @Override
        public void close() {
            server.stop(0);
            threads.shutdownNow();
        }
    }

    private static final class FixedLatencyEngine implements TurnEngine {
        private static final int TOKEN = 5;
        private static final int ANSWER_TOKENS = 32;
        private static final float LOG_PROB = -1;

        private final long latencyMs;
        private final ScheduledExecutorService clock =
                Executors.newScheduledThreadPool(1, RequestThreads.daemons("fixed-latency"));
        private final AtomicLong sampled = new AtomicLong();

        FixedLatencyEngine(long latencyMs) {
            this.latencyMs = latencyMs;
        }

        CompletableFuture<Void> waited() {
            CompletableFuture<Void> done = new CompletableFuture<>();
            clock.schedule(() -> done.complete(null), latencyMs, TimeUnit.MILLISECONDS);
            return done;
        }

        int[] answer() {
            int[] tokens = new int[ANSWER_TOKENS];
            Arrays.fill(tokens, TOKEN);
            return tokens;
        }

        @Override
        public CompletableFuture<SampledTurn> sample(TurnOrder order, TokenListener listener) {
            long startedAtMs = System.currentTimeMillis();
            return waited().thenApply(nothing -> {
                int[] tokens = answer();
                float[] logProbs = new float[tokens.length];
                Arrays.fill(logProbs, LOG_PROB);
                sampled.addAndGet(tokens.length);
                long nowMs = System.currentTimeMillis();
                return new SampledTurn(
                        tokens,
                        new SampledTurn.LogProbs(logProbs, LogProbDistribution.RAW, new float[0]),
                        List.of(new VersionSpan(0L, 0, tokens.length)),
                        null,
                        FinishReason.LENGTH,
                        new SampledTurn.Times(startedAtMs, nowMs, nowMs),
                        -1);
            });
        }

        @Override
        public int capacityTokens() {
            return POSITIONS;
        }

        @Override
        public long version() {
            return 0;
        }

        @Override
        public OptionalLong oldestVersion() {
            return OptionalLong.empty();
        }

        @Override
        public long sampledTokens() {
            return sampled.get();
        }

        @Override
        public EngineIdentity identity() {
            return new EngineIdentity("fixed-latency", "1", "none", null);
        }

        @Override
        public void requireAlive() {
            // it computes nothing that could break
        }

        @Override
        public void close() {
            clock.shutdownNow();
        }
    }

    public static final class GatewayLoadReport {
        private static final List<Column<Round>> COLUMNS = List.of(
                Column.count("direct calls", Round::directCalls),
                Column.<Round>number("direct p50", 1, Round::directP50).in("ms"),
                Column.<Round>number("direct p99", 1, Round::directP99).in("ms"),
                Column.count("calls", Round::calls),
                Column.<Round>number("p50", 1, Round::p50).in("ms"),
                Column.<Round>number("p99", 1, Round::p99).in("ms"),
                Column.<Round>number("added p50", 1, Round::addedP50).in("ms"),
                Column.<Round>number("added p99", 1, Round::addedP99).in("ms"));

        private GatewayLoadReport() {}

        /** Goals are about the median of the repetitions. */
        public static dev.millrace.report.Report of(GatewayBenchmark.Report of) {
            GatewayBenchmark.Plan plan = of.plan();
            return dev.millrace.report.Report.of(
                            "A gateway against direct calls", Goal.verdict(of.origin(), of.goals()))
                    .madeBy(of.origin())
                    .with(Section.of("Calls")
                            .noting(List.of(
                                    plan.agents() + " agents, " + plan.open() + " further sessions open",
                                    "engine double of " + plan.latencyMs() + " ms, pauses of " + plan.thinkMs()
                                            + " ms in the mean",
                                    "agents, gateway and engine double in one process, the broker in another"))
                            .with(Table.of("", COLUMNS, of.rounds())))
                    .with(Section.of("Goals").with(Goal.table(of.goals())));
        }
    }
}
