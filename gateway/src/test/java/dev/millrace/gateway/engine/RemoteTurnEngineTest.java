package dev.millrace.gateway.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.millrace.gateway.engine.EngineConfig.EngineDtype;
import dev.millrace.gateway.engine.EngineConfig.EngineKind;
import dev.millrace.gateway.engine.EngineConfig.EngineLogProbs;
import dev.millrace.gateway.engine.EngineDouble.Fault;
import dev.millrace.gateway.engine.RemoteEngines.EngineWeights;
import dev.millrace.gateway.engine.RemoteEngines.EngineWeights.EngineMeters;
import dev.millrace.gateway.engine.RemoteEngines.RemoteTurnEngine;
import dev.millrace.generator.run.TestRun;
import dev.millrace.generator.sampling.CacheOnSwap;
import dev.millrace.generator.sampling.GeneratorConfig;
import dev.millrace.generator.sampling.SampledTurn;
import dev.millrace.generator.sampling.TurnEngine.TokenListener;
import dev.millrace.generator.sampling.TurnOrder;
import dev.millrace.generator.sampling.WeightUpdate;
import dev.millrace.policy.decoder.Precision;
import dev.millrace.policy.session.Engine;
import dev.millrace.policy.session.ScoringSession;
import dev.millrace.policy.session.SequenceBatch;
import dev.millrace.policy.session.WeightPlacement;
import dev.millrace.policy.weights.Weights;
import dev.millrace.schemas.EngineIdentity;
import dev.millrace.schemas.FinishReason;
import dev.millrace.schemas.LogProbDistribution;
import dev.millrace.schemas.SamplingParameters;
import dev.millrace.schemas.VersionSpan;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.net.ServerSocket;
import java.nio.file.Path;
import java.time.Clock;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Against doubles of the engines' documented HTTP APIs, with log-probs of a real engine. */
@Timeout(300)
class RemoteTurnEngineTest {
    private static final int CAPACITY = 40;
    private static final int[] PROMPT = {3, 1, 4, 1, 5};

    private static ScoringSession scoring;

    @TempDir
    private Path folder;

    private final MeterRegistry meters = new SimpleMeterRegistry();
    private final AtomicReference<EngineWeights.Version> newest = new AtomicReference<>(version(0));
    private final List<AutoCloseable> made = new ArrayList<>();

    @BeforeAll
    static void open() {
        scoring = new ScoringSession(Engine.cpu(), TestRun.SHAPE, 1000);
    }

    @AfterAll
    static void close() {
        scoring.close();
    }

    @AfterEach
    void closeAll() throws Exception {
        for (int i = made.size() - 1; i >= 0; i--) {
            made.get(i).close();
        }
    }

    private static EngineWeights.Version version(long number) {
        return new EngineWeights.Version(number, "sha-" + number, TestRun.weights(number));
    }

    private EngineDouble started(EngineKind kind, EngineLogProbs logProbs) {
        Weights base = Weights.random(TestRun.SHAPE, 7); // a checkpoint, which no version is
        EngineDouble engine =
                kind == EngineKind.VLLM ? new VllmDouble(base, logProbs) : new SglangDouble(base, logProbs);
        made.add(engine);
        return engine;
    }

    private EngineConfig config(EngineKind kind, String url, EngineLogProbs declared, int probeTokens) {
        return new EngineConfig(
                kind,
                url,
                "",
                "",
                folder.toString(),
                "",
                EngineDtype.F32,
                declared,
                probeTokens,
                0.05,
                2,
                20_000,
                20_000,
                20_000);
    }

    private RemoteTurnEngine engine(EngineConfig config, WeightUpdate update, CacheOnSwap cache) {
        GeneratorConfig generator = new GeneratorConfig(
                "g",
                4,
                1,
                CAPACITY,
                1,
                256,
                1024,
                Precision.F32,
                WeightPlacement.FED,
                update,
                cache,
                25,
                20_000,
                10,
                50,
                500,
                20_000,
                20_000);
        config.require(generator);
        EngineHttp http = new EngineHttp(config.url(), null);
        EngineMeters counts = new EngineMeters(meters);
        EngineWeights weights = new EngineWeights(
                RemoteEngines.api(config, http, config.change(generator)),
                http,
                config,
                config.change(generator),
                new VersionDirectories(config, "run-v", ""),
                new PolicyProbe(Engine.cpu(), TestRun.SHAPE, config, CAPACITY),
                counts);
        RemoteTurnEngine engine = new RemoteTurnEngine(
                weights, generator, newest::get, TestRun.SHAPE.vocabSize(), counts, Clock.systemUTC());
        made.add(engine);
        return engine;
    }

    private RemoteTurnEngine engine(EngineKind kind, EngineDouble other, WeightUpdate update, CacheOnSwap cache) {
        return engine(config(kind, other.url(), EngineLogProbs.PROCESSED, 8), update, cache);
    }

    private static TurnOrder order(double temperature, int maxTokens, List<Integer> stops, long leastVersion) {
        return new TurnOrder(
                PROMPT,
                new SamplingParameters(temperature, 0, 1.0, maxTokens, 5L, false, 0, 0.0, false),
                stops,
                List.of(),
                leastVersion);
    }

    private static SampledTurn answer(RemoteTurnEngine engine, TurnOrder order) throws Exception {
        return engine.sample(order, TokenListener.NONE).get(90, TimeUnit.SECONDS);
    }

    private static void assertLogProbsAreTheirVersions(SampledTurn turn, double temperature) {
        int[] all = Arrays.copyOf(PROMPT, PROMPT.length + turn.tokens().length);
        System.arraycopy(turn.tokens(), 0, all, PROMPT.length, turn.tokens().length);
        int at = 0;
        for (VersionSpan span : turn.spans()) {
            assertThat(span.getStart()).isEqualTo(at);
            float[] expected = scoring.score(
                            TestRun.weights(span.getVersion()),
                            new SequenceBatch(new int[][] {all}, new int[] {PROMPT.length}),
                            new float[] {(float) temperature})
                    .logProbs();
            for (; at < span.getEnd(); at++) {
                assertThat(Math.abs(turn.logProbs().sampled()[at] - expected[at]))
                        .isLessThan(1e-5f);
            }
        }
        assertThat(at).isEqualTo(turn.tokens().length);
    }

    private String ending(RemoteTurnEngine engine) {
        return catchThrowableOfType(
                        ExecutionException.class,
                        () -> engine.sample(order(1, 4, List.of(), 0), TokenListener.NONE)
                                .get(90, TimeUnit.SECONDS))
                .getCause()
                .getMessage();
    }

    @ParameterizedTest
    @EnumSource(names = {"VLLM", "SGLANG"})
    void shouldAnswerWithTheTokensAndLogProbsOfTheVersionThatItLoaded(EngineKind kind) throws Exception {
        EngineDouble other = started(kind, EngineLogProbs.PROCESSED);
        RemoteTurnEngine engine = engine(kind, other, WeightUpdate.DRAIN, CacheOnSwap.RECOMPUTE);

        List<float[]> told = new ArrayList<>();
        SampledTurn turn = engine.sample(order(0.7, 6, List.of(), 0), (tokens, logProbs) -> told.add(logProbs))
                .get(90, TimeUnit.SECONDS);

        assertThat(turn.tokens()).hasSize(6);
        assertThat(turn.finishReason()).isEqualTo(FinishReason.LENGTH);
        assertThat(turn.logProbs().distribution()).isEqualTo(LogProbDistribution.TEMPERED);
        assertThat(turn.spans()).containsExactly(new VersionSpan(0L, 0, 6));
        assertLogProbsAreTheirVersions(turn, 0.7);
        assertThat(told).singleElement().isEqualTo(turn.logProbs().sampled());
        SampledTurn stopped =
                answer(engine, order(0.7, 6, List.of(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15), 0));
        assertThat(stopped.tokens()).hasSize(1);
        assertThat(stopped.finishReason()).isEqualTo(FinishReason.STOP);
        assertThat(engine.version()).isZero();
        assertThat(engine.identity())
                .isEqualTo(new EngineIdentity(
                        kind == EngineKind.VLLM ? "vllm" : "sglang",
                        kind == EngineKind.VLLM ? "0.32.0" : "0.5.18",
                        "float32",
                        null));
        assertThat(other.violations()).isEmpty();
    }

    @ParameterizedTest
    @EnumSource(names = {"VLLM", "SGLANG"})
    void shouldNameTheVersionOfEachTokenWhereWeightsChangeUnderWay(EngineKind kind) throws Exception {
        EngineDouble other = started(kind, EngineLogProbs.PROCESSED);
        RemoteTurnEngine engine = engine(kind, other, WeightUpdate.IN_FLIGHT, CacheOnSwap.RECOMPUTE);
        answer(engine, order(1, 1, List.of(), 0));
        other.holdAt(3);
        CompletableFuture<SampledTurn> underWay = engine.sample(order(1, 9, List.of(), 0), TokenListener.NONE);
        other.awaitTokens(3);
        newest.set(version(1));

        SampledTurn turn = underWay.get(90, TimeUnit.SECONDS);
        assertThat(turn.spans()).containsExactly(new VersionSpan(0L, 0, 3), new VersionSpan(1L, 3, 9));
        assertLogProbsAreTheirVersions(turn, 1);
        assertThat(other.violations()).isEmpty();
        assertThat(other.salts()).contains("millrace-0", "millrace-1");
        assertThat(folder).isDirectoryContaining(each -> each.endsWith("run-v1"));
    }

    @ParameterizedTest
    @EnumSource(names = {"VLLM", "SGLANG"})
    void shouldTakeUpWeightsWhenWhatIsUnderWayIsFinishedWhereThatIsAskedFor(EngineKind kind) throws Exception {
        EngineDouble other = started(kind, EngineLogProbs.PROCESSED);
        RemoteTurnEngine engine = engine(kind, other, WeightUpdate.DRAIN, CacheOnSwap.RECOMPUTE);
        answer(engine, order(1, 1, List.of(), 0));
        List<CompletableFuture<SampledTurn>> before = new ArrayList<>();
        for (int i = 0; i < 8; i++) { // four of them wait
            before.add(engine.sample(order(1, 20, List.of(), 0), TokenListener.NONE));
        }
        newest.set(version(1));
        SampledTurn after = answer(engine, order(1, 20, List.of(), 1));

        assertThat(after.spans()).containsExactly(new VersionSpan(1L, 0, 20));
        for (CompletableFuture<SampledTurn> each : before) {
            SampledTurn turn = each.get(90, TimeUnit.SECONDS);
            assertThat(turn.spans()).hasSize(1);
            assertLogProbsAreTheirVersions(turn, 1);
        }
        assertThat(other.violations()).isEmpty();
        assertThat(meters.get("millrace.policy.version").gauge().value()).isEqualTo(1);
    }

    @ParameterizedTest
    @EnumSource(names = {"VLLM", "SGLANG"})
    void shouldKeepKeysAndValuesWhereThatIsAskedFor(EngineKind kind) throws Exception {
        EngineDouble other = started(kind, EngineLogProbs.PROCESSED);
        RemoteTurnEngine engine = engine(kind, other, WeightUpdate.IN_FLIGHT, CacheOnSwap.KEEP);
        answer(engine, order(1, 1, List.of(), 0));
        other.holdAt(2);
        CompletableFuture<SampledTurn> underWay = engine.sample(order(1, 4, List.of(), 0), TokenListener.NONE);
        other.awaitTokens(2);
        newest.set(version(1));
        assertThat(underWay.get(90, TimeUnit.SECONDS).spans())
                .containsExactly(new VersionSpan(0L, 0, 2), new VersionSpan(1L, 2, 4));
        assertThat(other.violations()).isEmpty();
    }

    @ParameterizedTest
    @EnumSource
    void shouldRefuseLogProbsThatAreNotWhatTheyAreDeclaredToBe(EngineLogProbs given) {
        EngineDouble other = started(EngineKind.VLLM, given);
        RemoteTurnEngine engine = engine(
                config(EngineKind.VLLM, other.url(), given.other(), 24), WeightUpdate.DRAIN, CacheOnSwap.RECOMPUTE);
        String otherName = given.name().toLowerCase(Locale.ROOT);
        assertThat(ending(engine))
                .contains("engine.log_probs is " + given.other().name().toLowerCase(Locale.ROOT))
                .contains("by 0.000 from " + otherName + " ones")
                .contains("set engine.log_probs=" + otherName);
        assertThatThrownBy(engine::requireAlive).hasMessageContaining("cannot be used");
        assertThat(engine.version()).isEqualTo(-1);
    }

    @Test
    void shouldFindThatWeightsWereNotTakenUp() throws Exception {
        EngineDouble other = started(EngineKind.SGLANG, EngineLogProbs.PROCESSED);
        RemoteTurnEngine engine = engine(EngineKind.SGLANG, other, WeightUpdate.DRAIN, CacheOnSwap.RECOMPUTE);
        answer(engine, order(1, 1, List.of(), 0));
        other.fault(Fault.KEEPS_WEIGHTS);
        newest.set(version(1));
        assertThat(catchThrowable(() -> answer(engine, order(1, 1, List.of(), 1))))
                .hasMessageContaining("samples with another policy than version 1")
                .hasMessageContaining("did not load the weights");
    }

    @Test
    void shouldFindLogProbsThatAreNone() {
        EngineDouble other = started(EngineKind.VLLM, EngineLogProbs.PROCESSED);
        other.fault(Fault.ZERO_LOG_PROBS);
        assertThat(ending(engine(EngineKind.VLLM, other, WeightUpdate.DRAIN, CacheOnSwap.RECOMPUTE)))
                .contains("samples with another policy than version 0");
    }

    @Test
    void shouldGiveUpWhatAnEngineSaysThatWasStartedAnewAndLoadItsWeightsAgain() throws Exception {
        EngineDouble other = started(EngineKind.VLLM, EngineLogProbs.PROCESSED);
        RemoteTurnEngine engine = engine(EngineKind.VLLM, other, WeightUpdate.DRAIN, CacheOnSwap.RECOMPUTE);
        answer(engine, order(1, 1, List.of(), 0));
        other.startAgain(); // with its checkpoint, and its removal is unnoticed

        assertThatThrownBy(() -> answer(engine, order(1, 3, List.of(), 0)))
                .hasMessageContaining("its weights are of version 'default', and loaded were [0]");
        SampledTurn turn = answer(engine, order(1, 3, List.of(), 0));
        assertLogProbsAreTheirVersions(turn, 1);
        assertThat(other.updates()).isEqualTo(2);
    }

    @ParameterizedTest
    @EnumSource(names = {"VLLM", "SGLANG"})
    void shouldGoOnWithAnEngineThatDiedInTheMiddleOfAnUpdate(EngineKind kind) throws Exception {
        EngineDouble other = started(kind, EngineLogProbs.PROCESSED);
        RemoteTurnEngine engine = engine(kind, other, WeightUpdate.IN_FLIGHT, CacheOnSwap.RECOMPUTE);
        answer(engine, order(1, 1, List.of(), 0));
        other.holdAt(2);
        CompletableFuture<SampledTurn> underWay = engine.sample(order(1, 5, List.of(), 0), TokenListener.NONE);
        other.awaitTokens(2);
        other.fault(Fault.DIES_IN_UPDATE);
        newest.set(version(1));
        assertThatThrownBy(() -> underWay.get(90, TimeUnit.SECONDS)).isNotNull();
        other.holdAt(Integer.MAX_VALUE);
        CompletableFuture<SampledTurn> waits = engine.sample(order(1, 5, List.of(), 1), TokenListener.NONE);
        other.startAgain();

        SampledTurn turn = waits.get(90, TimeUnit.SECONDS);
        assertThat(turn.spans()).containsExactly(new VersionSpan(1L, 0, 5));
        assertLogProbsAreTheirVersions(turn, 1);
    }

    @Test
    void shouldTryAgainWithAnEngineThatSaysAnotherVersionThanItWasGiven() throws Exception {
        EngineDouble other = started(EngineKind.SGLANG, EngineLogProbs.PROCESSED);
        other.fault(Fault.SAYS_ANOTHER_VERSION);
        RemoteTurnEngine engine = engine(EngineKind.SGLANG, other, WeightUpdate.DRAIN, CacheOnSwap.RECOMPUTE);
        other.awaitUpdates(1);
        assertThat(engine.version()).isEqualTo(-1);
        other.fault(Fault.NONE);
        assertLogProbsAreTheirVersions(answer(engine, order(1, 3, List.of(), 0)), 1);
    }

    @ParameterizedTest
    @EnumSource(names = {"OTHER_TOKENS", "LACKS_A_LOG_PROB", "CLAMPED_LOG_PROB", "REWRITES_PROMPTS"})
    void shouldTakeNoAnswerThatCannotBeTrue(Fault fault) throws Exception {
        for (EngineKind kind : List.of(EngineKind.VLLM, EngineKind.SGLANG)) {
            EngineDouble other = started(kind, EngineLogProbs.PROCESSED);
            RemoteTurnEngine engine = engine(kind, other, WeightUpdate.IN_FLIGHT, CacheOnSwap.RECOMPUTE);
            answer(engine, order(1, 1, List.of(), 0));
            other.fault(fault);
            assertThatThrownBy(() -> answer(engine, order(1, 3, List.of(), 0)))
                    .cause()
                    .isInstanceOfSatisfying(
                            EngineException.class, e -> assertThat(e.kind()).isEqualTo(EngineException.Kind.UNTRUE));
            other.fault(Fault.NONE);
            assertThat(answer(engine, order(1, 3, List.of(), 0)).tokens()).hasSize(3);
            engine.requireAlive();
        }
        assertThat(meters.counter("millrace.engine.lost.answers", "reason", "untrue")
                        .count())
                .isEqualTo(2);
    }

    @ParameterizedTest
    @EnumSource(
            value = EngineKind.class,
            names = {"VLLM", "SGLANG"})
    void shouldTryAgainWhereTheEngineGivesAnAnswerUp(EngineKind kind) throws Exception {
        EngineDouble other = started(kind, EngineLogProbs.PROCESSED);
        RemoteTurnEngine engine = engine(kind, other, WeightUpdate.IN_FLIGHT, CacheOnSwap.RECOMPUTE);
        answer(engine, order(1, 1, List.of(), 0));
        other.fault(Fault.GIVES_UP);
        for (int i = 0; i < 10; i++) {
            assertThatThrownBy(() -> answer(engine, order(1, 3, List.of(), 0)))
                    .cause()
                    .isInstanceOfSatisfying(
                            EngineException.class, e -> assertThat(e.kind()).isEqualTo(EngineException.Kind.FAILED))
                    .hasMessageMatching("(vLLM|SGLang) aborted the answer \\(finish_reason (error|abort)\\)");
        }
        other.fault(Fault.NONE);
        assertThat(answer(engine, order(1, 3, List.of(), 0)).tokens()).hasSize(3);
        engine.requireAlive();
    }

    @Test
    void shouldEndWhereNoAnswerCanBeTrue() throws Exception {
        EngineDouble other = started(EngineKind.SGLANG, EngineLogProbs.PROCESSED);
        RemoteTurnEngine engine = engine(EngineKind.SGLANG, other, WeightUpdate.DRAIN, CacheOnSwap.RECOMPUTE);
        answer(engine, order(1, 1, List.of(), 0));
        other.fault(Fault.OTHER_TOKENS);
        for (int i = 0; i < 10; i++) {
            assertThatThrownBy(() -> answer(engine, order(1, 3, List.of(), 0))).isNotNull();
        }
        assertThat(ending(engine)).contains("10 consecutive answers are invalid");
    }

    @Test
    void shouldRefuseToChangeWeightsUnderWayWhereTheEngineNamesNoVersions() {
        EngineDouble other = started(EngineKind.SGLANG, EngineLogProbs.PROCESSED);
        other.fault(Fault.NAMES_NO_VERSIONS);
        assertThat(ending(engine(EngineKind.SGLANG, other, WeightUpdate.IN_FLIGHT, CacheOnSwap.RECOMPUTE)))
                .contains("set generator.weight_update=drain");
    }

    @Test
    void shouldSampleDrainedWhereTheEngineNamesOnlyTheVersionOfTheEnd() throws Exception {
        EngineDouble other = started(EngineKind.SGLANG, EngineLogProbs.PROCESSED);
        other.fault(Fault.NAMES_NO_VERSIONS);
        RemoteTurnEngine engine = engine(EngineKind.SGLANG, other, WeightUpdate.DRAIN, CacheOnSwap.RECOMPUTE);
        assertThat(answer(engine, order(1, 3, List.of(), 0)).spans()).containsExactly(new VersionSpan(0L, 0, 3));
    }

    @Test
    void shouldSayThatNobodyAnswers() throws Exception {
        int free;
        try (ServerSocket socket = new ServerSocket(0)) {
            free = socket.getLocalPort();
        }
        EngineConfig plain = config(EngineKind.VLLM, "http://127.0.0.1:" + free, EngineLogProbs.RAW, 8);
        EngineConfig impatient = new EngineConfig(
                plain.kind(),
                plain.url(),
                "",
                "",
                plain.directory(),
                "",
                plain.dtype(),
                plain.logProbs(),
                8,
                0.05,
                2,
                100,
                1000,
                1000);
        assertThat(ending(engine(impatient, WeightUpdate.DRAIN, CacheOnSwap.RECOMPUTE)))
                .contains("the engine at http://127.0.0.1:" + free + " does not answer")
                .contains("is engine.url right?");
    }

    @Test
    void shouldSayHowVllmIsStarted() {
        VllmDouble other = new VllmDouble(TestRun.weights(0), EngineLogProbs.RAW, false);
        made.add(other);
        assertThat(ending(engine(
                        config(EngineKind.VLLM, other.url(), EngineLogProbs.RAW, 8),
                        WeightUpdate.DRAIN,
                        CacheOnSwap.RECOMPUTE)))
                .contains("there is no /weight_info")
                .contains("VLLM_SERVER_DEV_MODE=1");
        assertThat(ending(engine(
                        config(EngineKind.SGLANG, other.url(), EngineLogProbs.RAW, 8),
                        WeightUpdate.DRAIN,
                        CacheOnSwap.RECOMPUTE)))
                .contains("there is no /server_info");
    }
}
