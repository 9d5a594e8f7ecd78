package dev.millrace.gateway;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.millrace.api.environment.Transcript;
import dev.millrace.api.tokenizer.Tokenizer;
import dev.millrace.generator.environment.Environments;
import dev.millrace.generator.environment.IncPrompts;
import dev.millrace.generator.environment.Symbols;
import dev.millrace.generator.environment.text.StopRule;
import dev.millrace.generator.run.Awaited;
import dev.millrace.generator.run.RunningRole;
import dev.millrace.generator.run.TestRun;
import dev.millrace.generator.sampling.GeneratorConfig;
import dev.millrace.generator.sampling.RoleContext;
import dev.millrace.generator.sampling.SampledTurn;
import dev.millrace.generator.sampling.TurnEngine;
import dev.millrace.generator.sampling.TurnOrder;
import dev.millrace.infra.broker.EmbeddedBroker;
import dev.millrace.schemas.EngineIdentity;
import dev.millrace.schemas.FinishReason;
import dev.millrace.schemas.LogProbDistribution;
import dev.millrace.schemas.PromptRequest;
import dev.millrace.schemas.SamplingParameters;
import dev.millrace.schemas.VersionSpan;
import dev.millrace.schemas.packed.PackedInts;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Clock;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.OptionalLong;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** What {@code docs/reference/gateway-conformance.md} claims holds for the official clients, as npm gives them. */
@Timeout(900)
class GatewayConformanceIT {
    private static final Path CLIENT = Path.of("src", "test", "client");
    private static final Pattern CASE = Pattern.compile("^(?:openai|anthropic)\\('", Pattern.MULTILINE);
    /** A variable that every process has, and long enough for a token. */
    private static final String TOKEN_VARIABLE = "PATH";

    private static final ObjectMapper JSON = new ObjectMapper();
    private static final int SAMPLES = 100;

    @TempDir
    private Path folder;

    @Test
    void shouldServeTheOfficialClientsAsThePageSays() throws Exception {
        assumeTrue(
                Files.isDirectory(CLIENT.resolve("node_modules")),
                "gateway/src/test/client/node_modules is not there: npm ci makes it");
        Tokenizer tokenizer = ByteTokenizer.open();
        GeneratorConfig generator = GeneratorConfig.defaults().withSlots(1, RepeatingEngine.CAPACITY, 1);
        try (EmbeddedBroker broker = EmbeddedBroker.start(folder);
                TestRun run = new TestRun(broker, "conformance")) {
            run.publish(0, 0);
            release(run);
            try (Gateway gateway = new Gateway(
                    new RoleContext(run.connection(), run.feed(), new SimpleMeterRegistry(), Clock.systemUTC()),
                    Environments.builtIn(),
                    tokenizer,
                    (weights, shape) -> new RepeatingEngine(tokenizer),
                    generator,
                    config(),
                    HttpTls.none())) {
                RunningRole role = new RunningRole("gateway", gateway::run, gateway::stop);
                Awaited.until("the gateway listens", () -> gateway.url().isPresent() || role.hasEnded());
                List<JsonNode> results = results(gateway.url().orElseThrow());
                role.stop();

                assertThat(results)
                        .hasSize(Math.toIntExact(CASE.matcher(Files.readString(CLIENT.resolve("conformance.mjs")))
                                .results()
                                .count()));
                assertThat(results.stream()
                                .filter(result -> !result.get("ok").asBoolean())
                                .map(JsonNode::toPrettyString))
                        .isEmpty();
            }
        }
    }

    private static List<JsonNode> results(String url) throws Exception {
        ProcessBuilder node = new ProcessBuilder("node", "conformance.mjs", url)
                .directory(CLIENT.toFile())
                .redirectErrorStream(true);
        node.environment().put("GATEWAY_TOKEN", System.getenv(TOKEN_VARIABLE));
        Process process = node.start();
        String said = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertThat(process.waitFor()).as(said).isZero();
        List<JsonNode> results = new ArrayList<>();
        for (String line : said.lines().toList()) {
            results.add(JSON.readTree(line));
        }
        return results;
    }

    private static void release(TestRun run) {
        var prompt = new IncPrompts(5).prompt(1, 0);
        PromptRequest request = PromptRequest.newBuilder()
                .setRunId(run.connection().run().runId())
                .setEpoch(0)
                .setGroupId("0-0")
                .setOrdinal(0)
                .setEnvironment("fixed-answer")
                .setEnvironmentState(prompt.environmentState())
                .setPromptTokens(PackedInts.of(prompt.tokens()))
                .setSamples(SAMPLES)
                .setSampling(new SamplingParameters(1.0, 0, 1.0, 512, 77L, false, 0, 0.0, false))
                .setTokenizerHash(Symbols.tokenizer().hash())
                .setAdmittedVersion(0)
                .setReleasedAtMs(1)
                .build();
        String topic = run.connection().topics().prompts();
        run.write(topic, request.getGroupId(), run.bytes(PromptRequest.class, topic, request));
    }

    private static GatewayConfig config() {
        GatewayConfig d = GatewayConfig.defaults();
        return new GatewayConfig(
                true,
                "127.0.0.1",
                0,
                "",
                TOKEN_VARIABLE,
                d.sessions(),
                d.calls(),
                d.bodyBytes(),
                d.bodyMs(),
                d.bodyBytesPerSecond(),
                d.turns(),
                d.idleMs(),
                d.limitMs(),
                d.turnTimeoutMs(),
                20_000,
                d.sampling(),
                0);
    }

    /** Repeats the last message of a prompt, with {@code {seed}} replaced by the order's seed, and ends as an order says. */
    private static final class RepeatingEngine implements TurnEngine {
        private static final int CAPACITY = 2_048;
        private static final String ANSWER = ByteTokenizer.END + "\n" + ByteTokenizer.BEGIN + "assistant";

        private final Tokenizer tokenizer;

        RepeatingEngine(Tokenizer tokenizer) {
            this.tokenizer = tokenizer;
        }

        @Override
        public CompletableFuture<SampledTurn> sample(TurnOrder order, TokenListener listener) {
            return CompletableFuture.supplyAsync(() -> repeated(order, listener));
        }

        private SampledTurn repeated(TurnOrder order, TokenListener listener) {
            String prompt = tokenizer.decode(order.promptTokens());
            int end = prompt.lastIndexOf(ANSWER);
            String message = end < 0
                    ? prompt
                    : prompt.substring(prompt.indexOf('\n', prompt.lastIndexOf(ByteTokenizer.BEGIN, end)) + 1, end);
            int[] all = tokenizer.encodeRendered(message.replace(
                            "{seed}", Long.toUnsignedString(order.sampling().getSeed()))
                    + ByteTokenizer.END);
            int most = Math.min(all.length, order.sampling().getMaxTokens());
            StopRule rule = new StopRule(
                    order.stopTokens().stream().mapToInt(Integer::intValue).toArray(), order.stopTexts(), tokenizer);
            int length = 0;
            boolean isOver = false;
            while (!isOver && length < most) {
                length++;
                listener.sampled(new int[] {all[length - 1]}, new float[] {-length / 64f});
                isOver = rule.endsAt(new Beginning(all, length));
            }
            float[] logProbs = new float[length];
            for (int i = 0; i < length; i++) {
                logProbs[i] = -(i + 1) / 64f;
            }
            return new SampledTurn(
                    Arrays.copyOf(all, length),
                    new SampledTurn.LogProbs(logProbs, LogProbDistribution.RAW, new float[0]),
                    List.of(new VersionSpan(0L, 0, length)),
                    null,
                    isOver ? FinishReason.STOP : FinishReason.LENGTH,
                    new SampledTurn.Times(1, 1, TimeUnit.SECONDS.toMillis(1)),
                    -1);
        }

        @Override
        public int capacityTokens() {
            return CAPACITY;
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
            return 0;
        }

        @Override
        public EngineIdentity identity() {
            return new EngineIdentity("repeating", "1", "float32", null);
        }

        @Override
        public void requireAlive() {
            // it cannot break down
        }

        @Override
        public void close() {
            // nothing is under way
        }
    }

    private record Beginning(int[] tokens, int length) implements Transcript {
        @Override
        public int token(int position) {
            return tokens[position];
        }

        @Override
        public boolean byPolicy(int position) {
            return true;
        }
    }
}
