package dev.millrace.generator.sampling;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.tuple;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.millrace.api.environment.Environment;
import dev.millrace.api.environment.Episode;
import dev.millrace.api.environment.Prompt;
import dev.millrace.api.environment.StepResult;
import dev.millrace.api.environment.Transcript;
import dev.millrace.api.environment.VerifiedReward;
import dev.millrace.gateway.Gateway;
import dev.millrace.gateway.GatewayConfig;
import dev.millrace.gateway.HttpTls;
import dev.millrace.gateway.engine.EngineConfig;
import dev.millrace.gateway.engine.EngineConfig.EngineDtype;
import dev.millrace.gateway.engine.EngineConfig.EngineKind;
import dev.millrace.gateway.engine.EngineConfig.EngineLogProbs;
import dev.millrace.gateway.engine.RemoteEngines;
import dev.millrace.gateway.engine.VllmDouble;
import dev.millrace.generator.environment.Environments;
import dev.millrace.generator.environment.FixedAnswer;
import dev.millrace.generator.environment.GuessPrompts;
import dev.millrace.generator.environment.IncPrompts;
import dev.millrace.generator.environment.Symbols;
import dev.millrace.generator.environment.remote.AnsweringServer;
import dev.millrace.generator.environment.remote.AnsweringServer.Said;
import dev.millrace.generator.environment.remote.RemoteReward;
import dev.millrace.generator.run.Awaited;
import dev.millrace.generator.run.RunningRole;
import dev.millrace.generator.run.TestRun;
import dev.millrace.infra.broker.EmbeddedBroker;
import dev.millrace.log.deadletter.Quarantines;
import dev.millrace.policy.decoder.Precision;
import dev.millrace.policy.session.Engine;
import dev.millrace.policy.session.ScoringSession;
import dev.millrace.policy.session.SequenceBatch;
import dev.millrace.policy.session.TokenScores;
import dev.millrace.policy.session.WeightPlacement;
import dev.millrace.policy.weights.Weights;
import dev.millrace.schemas.Admission;
import dev.millrace.schemas.EngineIdentity;
import dev.millrace.schemas.FinishReason;
import dev.millrace.schemas.PromptRequest;
import dev.millrace.schemas.Quarantine;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.ServerRole;
import dev.millrace.schemas.Serving;
import dev.millrace.schemas.VersionSpan;
import dev.millrace.schemas.packed.PackedFloats;
import dev.millrace.schemas.packed.PackedInts;
import dev.millrace.schemas.packed.PackedMask;
import dev.millrace.weights.VersionUnavailableException;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import java.util.function.LongSupplier;
import java.util.function.Predicate;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.MemberDescription;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInfo;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;

@Execution(ExecutionMode.CONCURRENT)
@Timeout(900)
class GeneratorIT {
    private static final int IDLE_MS = 600_000;

    @TempDir
    private static Path directory;

    private static EmbeddedBroker broker;
    private static ScoringSession scoring;

    private final MeterRegistry meters = new SimpleMeterRegistry();
    private TestRun run;

    @BeforeAll
    static void startBroker() {
        broker = EmbeddedBroker.start(directory);
        scoring = new ScoringSession(Engine.cpu(), TestRun.SHAPE, 1000);
    }

    @AfterAll
    static void stopBroker() {
        scoring.close();
        broker.close();
    }

    @BeforeEach
    void openRun(TestInfo test) {
        run = new TestRun(broker, test.getTestMethod().orElseThrow().getName());
    }

    @AfterEach
    void closeRun() {
        run.close();
    }

    @Test
    void shouldAnswerPromptsWithVerifiedRolloutsWhoseLogProbsAreTheVersionsOwn() {
        run.publish(0, 0);
        releaseInc(0, 6, 4);
        releaseGuess(6, 2, 4);
        try (Generator generator = generator(config("g", 5, 3, 500))) {
            RunningRole role = new RunningRole("generator", generator::run, generator::stop);
            List<Rollout> rollouts =
                    run.await(Rollout.class, run.connection().topics().rollouts(), 32);
            role.stop();

            assertThat(rollouts).hasSize(32);
            assertThat(rollouts.stream().map(Rollout::getRolloutId)).doesNotHaveDuplicates();
            assertThat(rollouts).allSatisfy(rollout -> {
                assertThat(rollout.getRunId()).isEqualTo(run.connection().run().runId());
                assertThat(rollout.getGeneratorId()).isEqualTo("g");
                assertThat(rollout.getVersionSpans()).hasSize(1);
                assertSpansAgree(rollout);
            });
            assertThat(rollouts)
                    .filteredOn(r -> r.getEnvironment().equals("fixed-answer"))
                    .hasSize(24)
                    .allSatisfy(GeneratorIT::assertIncReward);
            assertThat(rollouts)
                    .filteredOn(r -> r.getEnvironment().equals("guess"))
                    .hasSize(8)
                    .allSatisfy(r -> assertThat(r.getTurns()).isNotEmpty());
        }
        assertThat(meters.counter("millrace.generator.rollouts").count()).isEqualTo(32);
        assertThat(meters.counter("millrace.generator.tokens").count()).isGreaterThanOrEqualTo(24 * 5);
        assertThat(meters.get("millrace.policy.version")
                        .tag("role", "generator")
                        .gauge()
                        .value())
                .isZero();
        List<Serving> servings =
                run.committed(Serving.class, run.connection().topics().serving());
        assertThat(servings).anySatisfy(serving -> {
            assertThat(serving.getServerId()).isEqualTo("g");
            assertThat(serving.getRole()).isEqualTo(ServerRole.GENERATOR);
            assertThat(serving.getVersion()).isZero();
            assertThat(serving.getEngine())
                    .isEqualTo(new EngineIdentity("onnxruntime", Engine.runtimeVersion(), "float32", null));
        });
    }

    @Test
    void shouldTakeUpNewWeightsWhileSequencesAreInFlight() {
        takeUpNewWeights(60_000);
    }

    @Test
    void shouldGoOnWithOldWeightsWhileKeysAndValuesOfNewOnesAreComputedBeside() {
        takeUpNewWeights(0);
    }

    /** A group is held by its environment while the version comes, next to others that go on. */
    private void takeUpNewWeights(int swapPauseMs) {
        AtomicBoolean answers = new AtomicBoolean();
        AtomicInteger held = new AtomicInteger();
        run.publish(0, 0);
        release(request(0, new IncPrompts(5).prompt(1, 0), "held", 3).build());
        String topic = run.connection().topics().rollouts();
        try (Generator generator = held(config("g", 5, 1, swapPauseMs, 500), answers::get, held)) {
            RunningRole role = new RunningRole("generator", generator::run, generator::stop);
            Awaited.until("three samples have a token and are held", () -> held.get() == 3);
            releaseOfTwoLengths(1, 50);
            run.await(topic, records -> !records.isEmpty());
            run.publish(1, 0);
            releaseOfTwoLengths(51, 50); // keeps the other slots busy while the version comes
            release(inc(101, 4).setAdmittedVersion(1).build()); // and this one waits for it
            awaitServing(serving -> serving.getVersion() == 1);
            answers.set(true);
            List<Rollout> rollouts = run.await(Rollout.class, topic, 3 + 2 * 3 * 50 + 4);
            role.stop();
            assertThat(rollouts)
                    .filteredOn(rollout -> rollout.getOrdinal() == 0)
                    .hasSize(3)
                    .allSatisfy(rollout -> assertThat(rollout.getVersionSpans())
                            .extracting(VersionSpan::getVersion)
                            .containsExactly(0L, 1L));
            rollouts.stream().filter(r -> r.getVersionSpans().size() > 1).forEach(this::assertSpansAgree);
        }
    }

    @Test
    void shouldSampleWithAnotherProgramsEngineUnderTheVersionsOfTheRun(@TempDir Path shared) {
        run.publish(0, 0);
        releaseInc(0, 4, 2);
        releaseGuess(4, 2, 2);
        String prompts = run.connection().topics().prompts();
        run.write(
                prompts,
                "0-900",
                run.bytes(
                        PromptRequest.class,
                        prompts,
                        inc(900, 2).setSampling(Requests.sampling(1, 3, 1, 5)).build()));
        try (VllmDouble other = new VllmDouble(Weights.random(TestRun.SHAPE, 7), EngineLogProbs.PROCESSED);
                TurnGenerator generator = turnGenerator(other.url(), shared)) {
            RunningRole role = new RunningRole("generator", generator::run, generator::stop);
            String topic = run.connection().topics().rollouts();
            run.await(topic, records -> role.hasEnded() || records.size() >= 12);
            run.publish(1, 0);
            release(inc(6, 2).setAdmittedVersion(1).build());
            run.await(topic, records -> role.hasEnded() || records.size() >= 14);
            role.stop();

            List<Rollout> rollouts = run.await(Rollout.class, topic, 14);
            assertThat(rollouts).hasSize(14).allSatisfy(this::assertSpansAgree);
            assertThat(rollouts)
                    .allSatisfy(rollout -> assertThat(rollout.getSampler().getEngine())
                            .isEqualTo(new EngineIdentity("vllm", "0.32.0", "float32", null)));
            assertThat(rollouts)
                    .filteredOn(rollout -> rollout.getOrdinal() == 6)
                    .allSatisfy(rollout ->
                            assertThat(rollout.getVersionSpans()).containsExactly(new VersionSpan(1L, 0, 5)));
            assertThat(rollouts)
                    .filteredOn(rollout -> rollout.getEnvironment().equals("guess"))
                    .hasSize(4)
                    .allSatisfy(rollout -> assertThat(rollout.getTurns()).isNotEmpty());
            assertThat(other.violations()).isEmpty();
        }
        assertThat(header(
                        run.await(run.connection().topics().deadLetters(), records -> !records.isEmpty())
                                .get(0),
                        "reason"))
                .isEqualTo("unsupported");
        assertThat(run.committed(Serving.class, run.connection().topics().serving()))
                .anySatisfy(serving -> {
                    assertThat(serving.getVersion()).isEqualTo(1);
                    assertThat(serving.getEngine().getName()).isEqualTo("vllm");
                })
                .anySatisfy(serving -> assertThat(serving.getLeft()).isTrue());
    }

    private TurnGenerator turnGenerator(String url, Path shared) {
        EngineConfig engine = new EngineConfig(
                EngineKind.VLLM,
                url,
                "",
                "",
                shared.toString(),
                "",
                EngineDtype.F32,
                EngineLogProbs.PROCESSED,
                8,
                0.05,
                2,
                20_000,
                20_000,
                20_000);
        GeneratorConfig config = config("g", 4, 1, 500);
        return new TurnGenerator(
                new RoleContext(run.connection(), run.feed(), meters, Clock.systemUTC()),
                Environments.builtIn(),
                List.of(),
                RemoteEngines.factory(
                        engine, config, run.connection().run(), "", Engine.cpu(), meters, Clock.systemUTC()),
                config);
    }

    @Test
    void shouldTakeUpWeightsBetweenGroupsWhereThatIsAskedFor() {
        assertThat(versionsOfGroups(WeightUpdate.GROUP_END))
                .allSatisfy((group, ofGroup) -> assertThat(ofGroup).as(group).hasSize(1));
    }

    @Test
    void shouldLetSequencesInFlightFinishOnTheirVersionWhereThatIsAskedFor() {
        assertThat(versionsOfGroups(WeightUpdate.DRAIN)).hasSize(150);
    }

    @Test
    void shouldFinishSequencesInFlightOnTheirVersionWhileOthersBeginWithTheNext() {
        AtomicBoolean answers = new AtomicBoolean();
        AtomicInteger held = new AtomicInteger();
        run.publish(0, 0);
        release(request(0, new IncPrompts(5).prompt(1, 0), "held", 2).build());
        String topic = run.connection().topics().rollouts();
        GeneratorConfig config = new GeneratorConfig(
                "g",
                4,
                1,
                16,
                1,
                256,
                1024,
                Precision.F32,
                WeightPlacement.AUTO,
                WeightUpdate.MULTI_VERSION,
                CacheOnSwap.RECOMPUTE,
                25,
                60_000,
                10,
                50,
                500,
                20_000,
                20_000);
        try (Generator generator = held(config, answers::get, held)) {
            RunningRole role = new RunningRole("generator", generator::run, generator::stop);
            Awaited.until("two samples have a token and are held", () -> held.get() == 2);
            awaitServing(serving -> Objects.equals(serving.getOldestVersion(), 0L));
            run.publish(1, 0);
            release(inc(1, 4).setAdmittedVersion(1).build());
            awaitServing(serving -> serving.getVersion() == 1 && Objects.equals(serving.getOlderVersion(), 0L));
            run.await(topic, records -> records.size() == 4);
            run.publish(2, 0);
            release(inc(2, 4).setAdmittedVersion(1).build()); // two are held, and the third waits
            run.await(topic, records -> records.size() == 8);
            answers.set(true);
            release(inc(3, 4).setAdmittedVersion(2).build());
            List<Rollout> rollouts = run.await(Rollout.class, topic, 14);
            awaitServing(serving -> serving.getVersion() == 2 && serving.getOlderVersion() == null);
            role.stop();

            Map<Long, Long> versionOfOrdinal = Map.of(0L, 0L, 1L, 1L, 2L, 1L, 3L, 2L);
            assertThat(rollouts).hasSize(14).allSatisfy(rollout -> {
                assertThat(rollout.getVersionSpans())
                        .singleElement()
                        .extracting(VersionSpan::getVersion)
                        .isEqualTo(versionOfOrdinal.get(rollout.getOrdinal()));
                assertSpansAgree(rollout);
            });
        }
        assertThat(run.committed(Serving.class, run.connection().topics().serving()))
                .extracting(Serving::getVersion, Serving::getOlderVersion)
                .contains(tuple(0L, null), tuple(1L, 0L), tuple(2L, null))
                // Published only where a heartbeat falls between the last sample of version 0 and version 2.
                .isSubsetOf(tuple(0L, null), tuple(1L, 0L), tuple(1L, null), tuple(2L, null));
    }

    private void awaitServing(Predicate<Serving> which) {
        run.await(
                run.connection().topics().serving(),
                records -> records.stream()
                        .map(record -> run.decode(Serving.class, record))
                        .anyMatch(which));
    }

    /**
     * A fixed answer whose environment waits for permission.
     *
     * @param held counts the samples that it has let wait
     */
    private record Held(BooleanSupplier answers, AtomicInteger held) implements Environment {
        @Override
        public String name() {
            return "held";
        }

        @Override
        public int endToken() {
            return new FixedAnswer().endToken();
        }

        @Override
        public Episode begin(String state) {
            Episode episode = new FixedAnswer().begin(state);
            AtomicBoolean isCounted = new AtomicBoolean();
            return new Episode() {
                @Override
                public StepResult afterToken(Transcript response) {
                    if (answers.getAsBoolean()) {
                        return episode.afterToken(response);
                    }
                    if (isCounted.compareAndSet(false, true)) {
                        held.incrementAndGet();
                    }
                    return StepResult.LATER;
                }

                @Override
                public VerifiedReward verify(Transcript response) {
                    return episode.verify(response);
                }
            };
        }
    }

    /** Which versions sampled each of 150 groups while three came; no rollout is of two. */
    private Map<String, Set<Long>> versionsOfGroups(WeightUpdate update) {
        run.publish(0, 0);
        String topic = run.connection().topics().rollouts();
        GeneratorConfig config = new GeneratorConfig(
                "g",
                6,
                1,
                16,
                1,
                256,
                1024,
                Precision.F32,
                WeightPlacement.AUTO,
                update,
                CacheOnSwap.RECOMPUTE,
                25,
                300,
                10,
                50,
                500,
                20_000,
                20_000);
        try (Generator generator = generator(config)) {
            RunningRole role = new RunningRole("generator", generator::run, generator::stop);
            for (int version = 1; version < 4; version++) {
                releaseInc(50 * version, 50, 4);
                int half = 200 * version - 100; // some are finished, some are not
                run.await(topic, records -> records.size() >= half);
                run.publish(version, 0);
            }
            Map<String, Set<Long>> versions = new HashMap<>();
            for (Rollout rollout : run.await(Rollout.class, topic, 600)) {
                assertThat(rollout.getVersionSpans()).hasSize(1);
                versions.computeIfAbsent(rollout.getGroupId(), group -> new HashSet<>())
                        .add(rollout.getVersionSpans().get(0).getVersion());
            }
            assertThat(versions).hasSize(150);
            assertThat(versions.values().stream().distinct().count())
                    .as("versions that sampled")
                    .isGreaterThan(1);
            role.stop();
            return versions;
        }
    }

    @Test
    void shouldNotBeginAPromptWithWeightsOlderThanAdmissionCountedOn() {
        run.publish(0, 0);
        release(inc(0, 4).setAdmittedVersion(1).build());
        String topic = run.connection().topics().rollouts();
        GeneratorConfig patient = new GeneratorConfig(
                "g",
                4,
                1,
                16,
                2,
                256,
                1024,
                Precision.F32,
                WeightPlacement.AUTO,
                WeightUpdate.IN_FLIGHT,
                CacheOnSwap.RECOMPUTE,
                25,
                60_000,
                10,
                50,
                500,
                20_000,
                20_000);
        try (Generator generator = generator(patient)) {
            RunningRole role = new RunningRole("generator", generator::run, generator::stop);
            run.await(run.connection().topics().serving(), records -> records.size() >= 4); // it has had time
            assertThat(meters.counter("millrace.generator.tokens").count()).isZero();
            run.publish(1, 0);
            assertThat(run.await(Rollout.class, topic, 4))
                    .allSatisfy(r -> assertThat(r.getVersionSpans()).containsExactly(new VersionSpan(1L, 0, 5)));
            role.stop();
        }
    }

    @Test
    void shouldGoOnWithTheNewestThereIsWhenTheVersionAdmissionCountedOnDoesNotCome() {
        run.publish(0, 0);
        release(inc(0, 4).setAdmittedVersion(7).build());
        try (Generator generator = generator(config("g", 4, 2, 500))) {
            RunningRole role = new RunningRole("generator", generator::run, generator::stop);
            assertThat(run.await(Rollout.class, run.connection().topics().rollouts(), 4))
                    .allSatisfy(r -> assertThat(r.getVersionSpans()).containsExactly(new VersionSpan(0L, 0, 5)));
            role.stop();
        }
    }

    @Test
    void shouldBeToldByTheGroupThatAnotherTookItsPlaceBeforeItHearsOfIt() {
        releaseInc(0, 8, 1);
        try (PromptSource first = source();
                PromptSource second = source()) {
            assertThat(first.membership()).as("before it is a member").isEqualTo(PromptSource.Membership.LOST);
            pollUntilThereIsOne(first);
            assertThat(first.membership()).isEqualTo(PromptSource.Membership.CONFIRMED);
            pollUntilThereIsOne(second); // under the same id, and the first has not polled since
            assertThat(first.membership()).isEqualTo(PromptSource.Membership.LOST);
            assertThat(second.membership()).isEqualTo(PromptSource.Membership.CONFIRMED);
        }
    }

    private PromptSource source() {
        return new PromptSource(
                run.connection(),
                config("g", 4, 1, 500),
                new PromptCheck(
                        run.connection(),
                        Environments.builtIn(),
                        Symbols.tokenizer().hash(),
                        16,
                        16,
                        sampling -> Optional.empty(),
                        ""),
                new PromptSource.Moves() {
                    @Override
                    public void beforeMove() {
                        // nothing is finished
                    }

                    @Override
                    public void moved(Set<TopicPartition> partitions) {
                        // nothing is kept
                    }
                });
    }

    private static void pollUntilThereIsOne(PromptSource source) {
        Awaited.until("a prompt", () -> {
            source.poll(Duration.ofMillis(10));
            return !source.isEmpty();
        });
    }

    @Test
    void shouldLoseNoRolloutWhenAnotherTakesItsPlace() {
        run.publish(0, 0);
        releaseInc(0, 120, 4);
        String topic = run.connection().topics().rollouts();
        try (Generator first = generator(config("g", 8, 1, 0));
                Generator second = new Generator(
                        new RoleContext(run.connection(), run.feed(), new SimpleMeterRegistry(), Clock.systemUTC()),
                        Environments.builtIn(),
                        Engine.cpu(),
                        config("g", 8, 1, 0))) {
            RunningRole killed = new RunningRole("first", first::run, first::stop);
            run.await(topic, records -> records.size() >= 40);
            RunningRole successor = new RunningRole("second", second::run, second::stop);
            assertThat(killed.awaitEnd()).hasMessageContaining("fenced by "); // by the group or the log

            Set<String> expected = new TreeSet<>();
            for (int ordinal = 0; ordinal < 120; ordinal++) {
                for (int sample = 0; sample < 4; sample++) {
                    expected.add("0-" + ordinal + "/" + sample);
                }
            }
            List<ConsumerRecord<byte[], byte[]>> records = run.await(topic, r -> ids(r).equals(expected));
            successor.stop();
            // under the same weights a repetition is the same rollout
            Set<String> distinct = new HashSet<>();
            records.forEach(record -> {
                Rollout rollout = run.decode(Rollout.class, record);
                distinct.add(rollout.getRolloutId() + Arrays.toString(PackedInts.toArray(rollout.getResponseTokens())));
            });
            assertThat(distinct).hasSize(480);
        }
    }

    /** With such a clock no time passes: nothing is due, and silent servers expire. */
    @Test
    void shouldCommitAndBeHeardOfUnderAClockThatIsSetBackAllTheTime() {
        run.publish(0, 0);
        releaseInc(0, 4, 2);
        AtomicLong backward = new AtomicLong(System.currentTimeMillis());
        Clock clock = clock(() -> backward.addAndGet(-1000));
        try (Generator generator = new Generator(
                new RoleContext(run.connection(), run.feed(), meters, clock),
                Environments.builtIn(),
                Engine.cpu(),
                config("g", 4, 2, 500))) {
            RunningRole role = new RunningRole("generator", generator::run, generator::stop);
            run.await(Rollout.class, run.connection().topics().rollouts(), 8);
            assertThat(run.await(Serving.class, run.connection().topics().serving(), 3))
                    .as("heartbeats")
                    .allSatisfy(serving -> assertThat(serving.getVersion()).isZero());
            role.stop();
        }
    }

    @Test
    void shouldFinishWhatItBeganWhenItIsStoppedAndLeaveTheRestToTheNext() {
        run.publish(0, 0);
        for (int ordinal = 0; ordinal < 30; ordinal++) {
            release(request(ordinal, new IncPrompts(5).prompt(1, ordinal), "held", 4)
                    .build());
        }
        String topic = run.connection().topics().rollouts();
        AtomicBoolean isStopping = new AtomicBoolean();
        AtomicInteger asked = new AtomicInteger();
        try (Generator first = held(
                config("g", 8, 2, 60_000),
                () -> isStopping.get() || asked.incrementAndGet() < 250,
                new AtomicInteger())) {
            RunningRole role = new RunningRole("first", first::run, first::stop);
            run.await(topic, records -> records.size() >= 20);
            first.stop();
            isStopping.set(true); // and not before: some are under way
            role.stop();
        }
        List<Rollout> before = run.committed(Rollout.class, topic);
        assertThat(before).hasSizeLessThan(120);
        assertThat(before.stream().map(Rollout::getGroupId).distinct().count() * 4)
                .isEqualTo(before.size());
        try (Generator second = held(config("h", 8, 2, 5_000), () -> true, new AtomicInteger())) {
            RunningRole role = new RunningRole("second", second::run, second::stop);
            run.await(topic, records -> ids(records).size() == 120);
            role.stop();
            assertThat(run.committed(topic))
                    .hasSizeLessThanOrEqualTo(120 + 4 * 8); // groups that were finished ahead of the offset
        }
    }

    @Test
    void shouldShareThePartitionsWithASecondGenerator() {
        run.publish(0, 0);
        releaseInc(0, 100, 4);
        String topic = run.connection().topics().rollouts();
        try (Generator first = generator(config("g", 4, 1, 500));
                Generator second = generator(config("h", 4, 1, 500))) {
            RunningRole one = new RunningRole("first", first::run, first::stop);
            run.await(topic, records -> records.size() >= 40);
            RunningRole two = new RunningRole("second", second::run, second::stop);
            awaitMembersWithPartitions(2); // the group takes its time to share
            releaseInc(100, 40, 4); // for every partition some
            run.await(topic, records -> ids(records).size() == 560);
            one.stop();
            two.stop();
        }
        assertThat(generators(topic)).containsExactlyInAnyOrder("g", "h");
    }

    @Test
    void shouldLeaveItsPromptsToOthersInQuarantineAndSampleAgainWhenThatIsLifted() {
        run.publish(0, 0);
        releaseInc(0, 4, 4);
        String topic = run.connection().topics().rollouts();
        try (Generator first = generator(config("g", 4, 1, 500));
                Generator second = generator(config("h", 4, 1, 500))) {
            RunningRole one = new RunningRole("first", first::run, first::stop);
            run.await(topic, records -> ids(records).size() == 16);
            quarantine("g");
            awaitIdle();
            releaseInc(4, 16, 4); // for every partition some
            RunningRole two = new RunningRole("second", second::run, second::stop);
            run.await(topic, records -> ids(records).size() == 80);
            assertThat(run.committed(Rollout.class, topic).stream()
                            .filter(rollout -> rollout.getOrdinal() >= 4)
                            .map(Rollout::getGeneratorId))
                    .containsOnly("h");
            two.stop();
            assertThat(Quarantines.lift(run.connection(), "g")).isTrue();
            releaseInc(20, 4, 4);
            run.await(topic, records -> ids(records).size() == 96);
            one.stop();
        }
    }

    private void quarantine(String generatorId) {
        String topic = run.connection().topics().admission();
        run.write(
                topic,
                Quarantines.key(generatorId),
                run.bytes(
                        Admission.class,
                        topic,
                        new Admission(
                                run.connection().run().runId(),
                                0,
                                null,
                                null,
                                new Quarantine(generatorId, 1L, "refused-records", "a test wants it so"))));
    }

    /** It has left the group. */
    private void awaitIdle() {
        String group = run.connection().group("generator");
        try (Admin admin = Admin.create(run.connection().admin())) {
            Awaited.until("the group has let it go", () -> members(admin, group).isEmpty());
        }
    }

    private void awaitMembersWithPartitions(int count) {
        String group = run.connection().group("generator");
        try (Admin admin = Admin.create(run.connection().admin())) {
            Awaited.until(
                    count + " members have partitions",
                    () -> members(admin, group).stream()
                                    .filter(member -> !member.assignment()
                                            .topicPartitions()
                                            .isEmpty())
                                    .count()
                            == count);
        }
    }

    private static Collection<MemberDescription> members(Admin admin, String group) {
        try {
            return admin.describeConsumerGroups(List.of(group))
                    .describedGroups()
                    .get(group)
                    .get()
                    .members();
        } catch (InterruptedException | ExecutionException e) {
            throw new IllegalStateException(e);
        }
    }

    @Test
    void shouldDeadLetterWhatItCannotServeAndGoOn() {
        run.publish(0, 0);
        String prompts = run.connection().topics().prompts();
        run.write(prompts, "garbage", new byte[] {7, 7, 7, 7, 7, 7});
        run.write(
                prompts,
                "0-900",
                run.bytes(
                        PromptRequest.class,
                        prompts,
                        inc(900, 4).setRunId("another-run").build()));
        run.write(
                prompts,
                "0-901",
                run.bytes(
                        PromptRequest.class,
                        prompts,
                        inc(901, 4).setEnvironment("gues").build()));
        releaseInc(0, 5, 4);
        try (Generator generator = generator(config("g", 8, 3, 500))) {
            RunningRole role = new RunningRole("generator", generator::run, generator::stop);
            assertThat(run.await(Rollout.class, run.connection().topics().rollouts(), 20))
                    .hasSize(20);
            List<ConsumerRecord<byte[], byte[]>> letters =
                    run.await(run.connection().topics().deadLetters(), records -> records.size() >= 3);
            role.stop();
            assertThat(letters).hasSize(3);
            assertThat(letters.stream().map(l -> header(l, "reason")))
                    .containsExactlyInAnyOrder("unreadable", "wrong-run", "environment");
            assertThat(letters)
                    .allSatisfy(l -> assertThat(header(l, "source.topic")).isEqualTo(prompts));
        }
        assertThat(meters.counter("millrace.generator.refused.prompts", "reason", "environment")
                        .count())
                .isEqualTo(1);
    }

    @Test
    void shouldSampleBesideASlowVerifierUpToABoundAndFailOnlyWhatItGivesNoRewardTo() {
        run.publish(0, 0);
        releaseInc(0, 12, 4);
        CountDownLatch answers = new CountDownLatch(1);
        try (AnsweringServer verifier = new AnsweringServer(question -> {
                    awaitLatch(answers);
                    return Said.ok(
                            switch (question.get("rollout_id").asText()) {
                                case "0-3/1" -> "{\"reward\": NaN}";
                                case "0-4/0" -> "{\"rewards\": 1}";
                                default -> "{\"reward\": 0.75}";
                            });
                });
                Generator generator = new Generator(
                        new RoleContext(run.connection(), run.feed(), meters, Clock.systemUTC()),
                        new Environments(
                                List.of(new FixedAnswer()),
                                new RemoteReward(verifier.url(), "", "", 120_000, 1, 0, 64, 4_096),
                                Symbols.tokenizer()),
                        Engine.cpu(),
                        config("g", 2, 1, 500))) {
            RunningRole role = new RunningRole("generator", generator::run, generator::stop);
            Awaited.until("what may wait is asked about", () -> verifier.asked.size() >= 8);
            // nothing is rewarded, and the report repeats
            int heardOf = run.committed(run.connection().topics().serving()).size();
            run.await(run.connection().topics().serving(), records -> records.size() >= heardOf + 5);
            assertThat(verifier.asked).hasSizeBetween(8, 9); // four fillings of two slots, and what was under way
            answers.countDown();
            List<Rollout> rollouts =
                    run.await(Rollout.class, run.connection().topics().rollouts(), 48);
            role.stop();
            assertThat(rollouts).hasSize(48);
            assertThat(rollouts)
                    .filteredOn(rollout -> rollout.getFinishReason() == FinishReason.FAILED)
                    .extracting(Rollout::getRolloutId)
                    .containsExactlyInAnyOrder("0-3/1", "0-4/0");
            assertThat(rollouts)
                    .filteredOn(rollout -> rollout.getRolloutId().equals("0-3/1"))
                    .allSatisfy(rollout -> assertThat(rollout.getError())
                            .startsWith("its reward: " + verifier.url() + " answered with invalid JSON: "));
            assertThat(rollouts)
                    .filteredOn(rollout -> rollout.getFinishReason() != FinishReason.FAILED)
                    .allSatisfy(rollout -> assertThat(rollout.getReward()).isEqualTo(0.75));
        }
        assertThat(meters.counter("millrace.generator.failed.rollouts").count()).isEqualTo(2);
    }

    private static void awaitLatch(CountDownLatch latch) {
        try {
            assertThat(latch.await(Awaited.LIMIT_SECONDS, TimeUnit.SECONDS)).isTrue();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    @Test
    void shouldSayThatThereIsNoPolicyWhenNoneAppears() {
        GeneratorConfig config = new GeneratorConfig(
                "g",
                4,
                1,
                16,
                2,
                256,
                1024,
                Precision.F32,
                WeightPlacement.AUTO,
                WeightUpdate.IN_FLIGHT,
                CacheOnSwap.RECOMPUTE,
                25,
                300,
                10,
                100,
                500,
                300,
                10_000);
        try (Generator generator = generator(config)) {
            RunningRole role = new RunningRole("generator", generator::run, generator::stop);
            assertThat(role.awaitEnd())
                    .isInstanceOf(VersionUnavailableException.class)
                    .hasMessageStartingWith("no policy version was published within 300 ms (")
                    .hasMessageEndingWith("); is the learner running?");
        }
    }

    @Test
    void shouldStopWhileItWaitsForAPolicy() {
        try (Generator generator = generator(config("g", 4, 2, 500))) {
            new RunningRole("generator", generator::run, generator::stop).stop();
        }
    }

    @Test
    void shouldGoOnWithTheSessionsOfAGatewayThatIsGone() throws Exception {
        run.publish(0, 0);
        releaseInc(0, 1, 2);
        String session;
        String forgotten;
        JsonNode first;
        AtomicLong later = new AtomicLong();
        try (Gateway gateway = gateway(later)) {
            RunningRole role = new RunningRole("gateway", gateway::run, gateway::stop);
            String url = url(gateway);
            session = post(url + "/v1/sessions", "{\"sample_index\": 0}")
                    .get("session")
                    .asText();
            forgotten = post(url + "/v1/sessions", "{}").get("session").asText();
            first = post(url + "/sessions/" + session + "/v1/completions", completion("[0, 4, 5, 2]"));
            post(url + "/sessions/" + forgotten + "/v1/completions", completion("[0, 3, 2]"));
            role.stop();
        }
        String sampled = first.at("/choices/0/token_ids").toString().replaceAll("[\\[\\]]", "");
        try (Gateway gateway = gateway(later)) {
            RunningRole role = new RunningRole("gateway", gateway::run, gateway::stop);
            String url = url(gateway);
            JsonNode second = post(
                    url + "/sessions/" + session + "/v1/completions", completion("[0, 4, 5, 2, " + sampled + ", 9]"));
            assertThat(second.at("/millrace/turns/0/parent_turn").asInt()).isZero();
            post(url + "/v1/sessions/" + session + "/complete", "{\"reward\": 0.5, \"turn_rewards\": [0.5, 0]}");
            later.addAndGet(IDLE_MS);
            List<Rollout> rollouts =
                    run.await(Rollout.class, run.connection().topics().rollouts(), 2);
            role.stop();

            assertThat(rollouts).hasSize(2).allSatisfy(rollout -> assertSpansAgree(rollout));
            Rollout played = rollouts.get(0);
            assertThat(played.getRolloutId()).endsWith("/0");
            assertThat(played.getReward()).isEqualTo(0.5);
            assertThat(PackedInts.toArray(played.getPromptTokens())).containsExactly(0, 4, 5, 2);
            assertThat(PackedMask.toArray(played.getMask())).containsExactly(1, 1, 0, 1, 1);
            assertThat(PackedFloats.toArray(played.getCredit().getTurnLevelRewards()))
                    .containsExactly(0.5f, 0f, 0f);
            Rollout aborted = rollouts.get(1);
            assertThat(aborted.getRolloutId()).endsWith("/1");
            assertThat(aborted.getFinishReason()).isEqualTo(FinishReason.ABORTED);
            assertThat(aborted.getError()).startsWith("the session was not completed");
        }
        try (Gateway gateway = gateway(later)) { // every prompt is finished, and none comes
            RunningRole role = new RunningRole("gateway", gateway::run, gateway::stop);
            String url = url(gateway);
            JsonNode again = post(
                    url + "/v1/sessions/" + session + "/complete", "{\"reward\": 0.5, \"turn_rewards\": [0.5, 0]}");
            assertThat(again.get("rollout_id").asText()).endsWith("/0");
            assertThat(send(url + "/sessions/" + forgotten + "/v1/completions", completion("[0, 3, 2]"))
                            .body())
                    .contains("the session " + forgotten + " has ended");
            role.stop();
        }
    }

    private static String completion(String prompt) {
        return "{\"prompt\": " + prompt + ", \"max_tokens\": 2, \"return_token_ids\": true}";
    }

    /** @param laterMs how far its clock is set forward */
    private Gateway gateway(AtomicLong laterMs) {
        GatewayConfig d = GatewayConfig.defaults();
        return new Gateway(
                new RoleContext(
                        run.connection(), run.feed(), meters, clock(() -> System.currentTimeMillis() + laterMs.get())),
                Environments.builtIn(),
                Symbols.tokenizer(),
                Engine.cpu(),
                config("g", 4, 1, 500),
                new GatewayConfig(
                        true,
                        d.host(),
                        0,
                        "",
                        "",
                        d.sessions(),
                        d.calls(),
                        d.bodyBytes(),
                        d.bodyMs(),
                        d.bodyBytesPerSecond(),
                        d.turns(),
                        IDLE_MS,
                        d.limitMs(),
                        d.turnTimeoutMs(),
                        30_000,
                        d.sampling(),
                        d.prefixCacheMb()),
                HttpTls.none());
    }

    private static Clock clock(LongSupplier millis) {
        return new Clock() {
            @Override
            public ZoneId getZone() {
                return ZoneOffset.UTC;
            }

            @Override
            public Clock withZone(ZoneId zone) {
                return this;
            }

            @Override
            public Instant instant() {
                return Instant.ofEpochMilli(millis.getAsLong());
            }
        };
    }

    private static String url(Gateway gateway) {
        Awaited.until("the gateway listens", () -> gateway.url().isPresent());
        return gateway.url().get();
    }

    private static HttpResponse<String> send(String url, String body) throws Exception {
        return HttpClient.newHttpClient()
                .send(
                        HttpRequest.newBuilder(URI.create(url))
                                .POST(HttpRequest.BodyPublishers.ofString(body))
                                .build(),
                        HttpResponse.BodyHandlers.ofString());
    }

    /** As OpenAI's clients do, which try again after 503. */
    private static JsonNode post(String url, String body) throws Exception {
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(Awaited.LIMIT_SECONDS);
        while (true) {
            HttpResponse<String> response = send(url, body);
            if (response.statusCode() != 503) {
                assertThat(response.statusCode()).as(response.body()).isBetween(200, 201);
                return new ObjectMapper().readTree(response.body());
            }
            assertThat(System.nanoTime()).as(response.body()).isLessThan(deadline);
            LockSupport.parkNanos(10_000_000);
        }
    }

    /** With an environment that waits for permission. */
    private Generator held(GeneratorConfig config, BooleanSupplier answers, AtomicInteger held) {
        return new Generator(
                new RoleContext(run.connection(), run.feed(), meters, Clock.systemUTC()),
                new Environments(List.of(new FixedAnswer(), new Held(answers, held))),
                Engine.cpu(),
                config);
    }

    private Generator generator(GeneratorConfig config) {
        return new Generator(
                new RoleContext(
                        run.connection(),
                        run.feed(),
                        config.id().equals("g") ? meters : new SimpleMeterRegistry(),
                        Clock.systemUTC()),
                Environments.builtIn(),
                Engine.cpu(),
                config);
    }

    private static GeneratorConfig config(String id, int slots, int tokensPerCall, int drainMs) {
        return config(id, slots, tokensPerCall, 25, drainMs);
    }

    private static GeneratorConfig config(String id, int slots, int tokensPerCall, int swapPauseMs, int drainMs) {
        return new GeneratorConfig(
                id,
                slots,
                1,
                16,
                tokensPerCall,
                256,
                1024,
                Precision.F32,
                WeightPlacement.AUTO,
                WeightUpdate.IN_FLIGHT,
                CacheOnSwap.RECOMPUTE,
                swapPauseMs,
                300,
                10,
                200,
                drainMs,
                20_000,
                20_000);
    }

    private void releaseInc(int from, int count, int samples) {
        for (int ordinal = from; ordinal < from + count; ordinal++) {
            release(inc(ordinal, samples).build());
        }
    }

    /** Answers of one length would begin and end together, and new weights come between them. */
    private void releaseOfTwoLengths(int from, int count) {
        for (int ordinal = from; ordinal < from + count; ordinal++) {
            int digits = ordinal % 2 == 0 ? 5 : 3;
            release(request(ordinal, new IncPrompts(digits).prompt(1, ordinal), "fixed-answer", 3)
                    .build());
        }
    }

    private void releaseGuess(int from, int count, int samples) {
        for (int ordinal = from; ordinal < from + count; ordinal++) {
            release(request(ordinal, new GuessPrompts(1, 4).prompt(1, ordinal), "guess", samples)
                    .build());
        }
    }

    private void release(PromptRequest request) {
        String topic = run.connection().topics().prompts();
        run.write(topic, request.getGroupId(), run.bytes(PromptRequest.class, topic, request));
    }

    private PromptRequest.Builder inc(int ordinal, int samples) {
        return request(ordinal, new IncPrompts(5).prompt(1, ordinal), "fixed-answer", samples);
    }

    private PromptRequest.Builder request(int ordinal, Prompt prompt, String environment, int samples) {
        return Requests.request(ordinal, prompt.tokens(), environment, prompt.environmentState(), samples)
                .setRunId(run.connection().run().runId())
                .setTokenizerHash(Symbols.tokenizer().hash())
                .setSampling(Requests.sampling(0.9, 0, 1, 8));
    }

    private Set<String> ids(List<ConsumerRecord<byte[], byte[]>> records) {
        Set<String> ids = new TreeSet<>();
        records.forEach(record -> ids.add(run.decode(Rollout.class, record).getRolloutId()));
        return ids;
    }

    private Set<String> generators(String topic) {
        Set<String> generators = new TreeSet<>();
        run.committed(Rollout.class, topic).forEach(rollout -> generators.add(rollout.getGeneratorId()));
        return generators;
    }

    private static void assertIncReward(Rollout rollout) {
        int[] prompt = PackedInts.toArray(rollout.getPromptTokens());
        int[] response = PackedInts.toArray(rollout.getResponseTokens());
        assertThat(response).hasSize(5);
        int right = 0;
        for (int i = 0; i < 5; i++) {
            right += response[i] == Symbols.digit((Symbols.digitOf(prompt[i + 1]) + 1) % 10) ? 1 : 0;
        }
        assertThat(rollout.getReward()).isEqualTo(right / 5.0);
    }

    /** Every span's log-probs are those that scoring the whole sequence under its version gives. */
    private void assertSpansAgree(Rollout rollout) {
        int[] prompt = PackedInts.toArray(rollout.getPromptTokens());
        int[] response = PackedInts.toArray(rollout.getResponseTokens());
        int[] tokens = Arrays.copyOf(prompt, prompt.length + response.length);
        System.arraycopy(response, 0, tokens, prompt.length, response.length);
        int at = 0;
        for (VersionSpan span : rollout.getVersionSpans()) {
            assertThat(span.getStart()).isEqualTo(at);
            TokenScores scores = scoring.score(
                    TestRun.weights(span.getVersion()),
                    new SequenceBatch(new int[][] {tokens}, new int[] {prompt.length}),
                    new float[] {(float) rollout.getSampling().getTemperature()});
            for (; at < span.getEnd(); at++) {
                float expected = PackedMask.get(rollout.getMask(), at) == 1 ? scores.logProbs()[at] : 0f;
                assertThat(Math.abs(PackedFloats.get(rollout.getBehaviorLogProbs(), at) - expected))
                        .as("%s position %d of %s", rollout.getRolloutId(), at, span)
                        .isLessThan(1e-5f);
            }
        }
        assertThat(at).isEqualTo(response.length);
    }

    private static String header(ConsumerRecord<byte[], byte[]> letter, String name) {
        return new String(letter.headers().lastHeader("millrace.error." + name).value(), StandardCharsets.UTF_8);
    }
}
