package dev.millrace.scorer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.api.environment.Prompt;
import dev.millrace.generator.environment.Environments;
import dev.millrace.generator.environment.GuessPrompts;
import dev.millrace.generator.environment.IncPrompts;
import dev.millrace.generator.environment.Symbols;
import dev.millrace.generator.run.RunningRole;
import dev.millrace.generator.run.TestRun;
import dev.millrace.generator.sampling.CacheOnSwap;
import dev.millrace.generator.sampling.Generator;
import dev.millrace.generator.sampling.GeneratorConfig;
import dev.millrace.generator.sampling.RoleContext;
import dev.millrace.generator.sampling.WeightUpdate;
import dev.millrace.infra.broker.EmbeddedBroker;
import dev.millrace.policy.decoder.Precision;
import dev.millrace.policy.huggingface.CheckpointDirectory;
import dev.millrace.policy.session.Engine;
import dev.millrace.policy.session.ScoringSession;
import dev.millrace.policy.session.SequenceBatch;
import dev.millrace.policy.session.WeightPlacement;
import dev.millrace.schemas.ComparedLogProbs;
import dev.millrace.schemas.FinishReason;
import dev.millrace.schemas.LogProbDistribution;
import dev.millrace.schemas.LogProbVector;
import dev.millrace.schemas.PolicyRole;
import dev.millrace.schemas.PromptRequest;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.SamplingParameters;
import dev.millrace.schemas.Score;
import dev.millrace.schemas.ServerRole;
import dev.millrace.schemas.Serving;
import dev.millrace.schemas.Speaker;
import dev.millrace.schemas.Turn;
import dev.millrace.schemas.VersionSpan;
import dev.millrace.schemas.packed.PackedFloats;
import dev.millrace.schemas.packed.PackedInts;
import dev.millrace.schemas.packed.PackedMask;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.nio.file.Path;
import java.time.Clock;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInfo;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(900)
class ScorerIT {
    @TempDir
    private static Path directory;

    @TempDir
    private Path teacher;

    private static EmbeddedBroker broker;
    private static ScoringSession scoring;

    private final MeterRegistry meters = new SimpleMeterRegistry();
    private TestRun run;
    private String rolloutsTopic;
    private String scoresTopic;

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
        rolloutsTopic = run.connection().topics().rollouts();
        scoresTopic = run.connection().topics().scores();
    }

    @AfterEach
    void closeRun() {
        run.close();
    }

    @Test
    void shouldAgreeWithTheGeneratorPerVersionSpanWhileWeightsAreSwappedInFlight() {
        run.publish(0, 0);
        releaseOfTwoKinds(0);
        GeneratorConfig sampling = new GeneratorConfig(
                "g",
                3,
                1,
                16,
                1,
                256,
                1024,
                Precision.F32,
                WeightPlacement.AUTO,
                WeightUpdate.IN_FLIGHT,
                CacheOnSwap.RECOMPUTE,
                25,
                300,
                5,
                200,
                500,
                20_000,
                20_000);
        try (Generator generator = new Generator(
                        new RoleContext(run.connection(), run.feed(), new SimpleMeterRegistry(), Clock.systemUTC()),
                        Environments.builtIn(),
                        Engine.cpu(),
                        sampling);
                Scorer scorer = scorer(false)) {
            RunningRole generating = new RunningRole("generator", generator::run, generator::stop);
            RunningRole scoringRole = new RunningRole("scorer", scorer::run, scorer::stop);
            run.await(rolloutsTopic, records -> !records.isEmpty());
            long newest = 0;
            while (newest < 5 || !isAnyOfTwoVersions()) {
                newest++;
                assertThat(newest)
                        .as("versions until one was taken up within a response")
                        .isLessThan(50);
                releaseOfTwoKinds(8 * (int) newest); // keeps the slots busy while the version comes
                run.publish(newest, 0);
                int expected = 32 * (int) (newest + 1);
                run.await(rolloutsTopic, records -> records.size() >= expected);
            }
            long last = newest;
            run.await(scoresTopic, records -> records.size() >= 32 * (last + 1));
            run.await(
                    run.connection().topics().serving(),
                    records -> records.stream()
                            .map(record -> run.decode(Serving.class, record))
                            .anyMatch(s -> s.getRole() == ServerRole.SCORER
                                    && s.getServerId().equals("s")
                                    && s.getVersion() == last));
            generating.stop();
            scoringRole.stop();

            Map<String, Rollout> rollouts = new HashMap<>();
            Map<Integer, String> order = new TreeMap<>();
            for (ConsumerRecord<byte[], byte[]> record : run.committed(rolloutsTopic)) {
                Rollout rollout = run.decode(Rollout.class, record);
                rollouts.put(rollout.getRolloutId(), rollout);
                order.merge(record.partition(), rollout.getRolloutId(), (a, b) -> a + " " + b);
            }
            List<ConsumerRecord<byte[], byte[]>> scores = run.committed(scoresTopic);
            assertThat(scores).hasSize(32 * (int) (last + 1));
            Map<Integer, String> scoredOrder = new TreeMap<>();
            for (ConsumerRecord<byte[], byte[]> record : scores) {
                Score score = run.decode(Score.class, record);
                scoredOrder.merge(record.partition(), score.getRolloutId(), (a, b) -> a + " " + b);
                assertThat(score.getRolloutSource().getPartition()).isEqualTo(record.partition());
                assertAgrees(rollouts.get(score.getRolloutId()), score);
            }
            assertThat(meters.counter("millrace.scorer.rollouts").count()).isEqualTo(scores.size());
            assertThat(scoredOrder).isEqualTo(order);
        }
        assertThat(compared()).isNotEmpty().allSatisfy(sums -> {
            assertThat(sums.getGeneratorId()).isEqualTo("g");
            assertThat(sums.getSumAbsolute() / sums.getTokens()).isLessThan(1e-5);
        });
    }

    /** Eight groups of four. */
    private void releaseOfTwoKinds(int from) {
        for (int ordinal = from; ordinal < from + 8; ordinal++) {
            release(
                    ordinal,
                    ordinal % 4 == 0 ? new GuessPrompts(1, 4).prompt(1, ordinal) : new IncPrompts(5).prompt(1, ordinal),
                    ordinal % 4 == 0 ? "guess" : "fixed-answer");
        }
    }

    private boolean isAnyOfTwoVersions() {
        return run.committed(Rollout.class, rolloutsTopic).stream()
                .anyMatch(rollout -> rollout.getVersionSpans().size() > 1);
    }

    @Test
    void shouldScoreOldUnderTheSamplingVersionsAndProximalUnderTheNewest() {
        run.publish(0, 0);
        run.publish(1, 0);
        run.publish(2, 0);
        write(rollout("0-1/0", new VersionSpan(0L, 0, 2), new VersionSpan(1L, 2, 3)));
        write(rollout("0-2/0", new VersionSpan(2L, 0, 3)));
        List<Score> scores = scoreAll(2, true);

        Score swapped = scores.get(0);
        float[] zero = logProbs(0);
        float[] one = logProbs(1);
        float[] two = logProbs(2);
        LogProbVector old = vector(swapped, PolicyRole.OLD);
        assertThat(old.getVersionSpans()).containsExactly(new VersionSpan(0L, 0, 2), new VersionSpan(1L, 2, 3));
        // the middle token is the environment's
        assertThat(PackedFloats.toArray(old.getLogProbs())).containsExactly(zero[0], 0f, one[2]);
        LogProbVector proximal = vector(swapped, PolicyRole.PROXIMAL);
        assertThat(proximal.getVersionSpans()).containsExactly(new VersionSpan(2L, 0, 3));
        assertThat(PackedFloats.toArray(proximal.getLogProbs())).containsExactly(two[0], 0f, two[2]);
        assertThat(PackedFloats.length(old.getEntropies())).isEqualTo(3);
        assertThat(old.getSumSquaredProbs()).isNull();

        Score current = scores.get(1);
        assertThat(vector(current, PolicyRole.OLD).getLogProbs())
                .isEqualTo(vector(current, PolicyRole.PROXIMAL).getLogProbs());
        assertThat(scores)
                .allSatisfy(score -> assertThat(score.getUnavailable()).isNull());

        List<ComparedLogProbs> compared = compared();
        assertThat(compared).hasSize(1);
        assertThat(compared.get(0).getGeneratorId()).isEqualTo("test");
        assertThat(compared.get(0).getTokens())
                .as("those that it sampled of the rollout of one version")
                .isEqualTo(2);
        double first = -1.0 - two[0];
        double second = -1.0 - two[2];
        assertThat(compared.get(0).getSumAbsolute()).isCloseTo(Math.abs(first) + Math.abs(second), within(1e-6));
        assertThat(compared.get(0).getSumSquared()).isCloseTo(first * first + second * second, within(1e-6));
        assertThat(compared.get(0).getSumScored()).isCloseTo((double) two[0] + two[2], within(1e-6));
        assertThat(compared.get(0).getSumSquaredScored())
                .isCloseTo((double) two[0] * two[0] + (double) two[2] * two[2], within(1e-6));
    }

    /** What scorers said of generators, in the order of their records. */
    private List<ComparedLogProbs> compared() {
        return run.committed(Serving.class, run.connection().topics().serving()).stream()
                .filter(serving -> serving.getRole() == ServerRole.SCORER)
                .flatMap(serving -> serving.getCompared().stream())
                .toList();
    }

    @Test
    void shouldSayWhichVersionCannotBeHad() {
        run.publish(0, 0);
        write(rollout("0-1/0", new VersionSpan(0L, 0, 1), new VersionSpan(7L, 1, 3)));
        Score score = scoreAll(1, false).get(0);
        assertThat(score.getUnavailable()).contains("version 7");
        assertThat(score.getVectors()).extracting(LogProbVector::getPolicy).containsExactly(PolicyRole.PROXIMAL);
        assertThat(meters.counter("millrace.scorer.unavailable").count()).isEqualTo(1);
    }

    @Test
    void shouldSkipWhatItCannotReadAndGoOn() {
        run.publish(0, 0);
        run.write(rolloutsTopic, "0-1", new byte[] {9, 9, 9, 9, 9, 9}); // read before what is scored
        write(rollout("0-1/0", new VersionSpan(0L, 0, 3)).setRunId("another"));
        write(rollout("0-1/1", new VersionSpan(0L, 0, 3)).setTokenizerHash("another"));
        write(rollout("0-1/2", new VersionSpan(0L, 0, 2)));
        write(rollout("0-1/3", new VersionSpan(0L, 0, 3)).setResponseTokens(PackedInts.of(3, 99, 4)));
        write(rollout("0-1/4", new VersionSpan(0L, 0, 3)).setMask(PackedMask.of((byte) 1)));
        write(rollout("0-1/5", new VersionSpan(0L, 0, 3))
                .setSampling(new SamplingParameters(0.0, 0, 1.0, 3, 1L, false, 0, 0.0, false)));
        write(rollout("0-1/6", new VersionSpan(0L, 0, 3)));
        List<Score> scores = scoreAll(1, false);
        assertThat(scores).extracting(Score::getRolloutId).containsExactly("0-1/6");
        for (String reason : List.of(
                "unreadable", "wrong-run", "wrong-tokenizer", "version-spans", "tokens", "lengths", "sampling")) {
            assertThat(meters.counter("millrace.scorer.skipped.rollouts", "reason", reason)
                            .count())
                    .as(reason)
                    .isEqualTo(1);
        }
    }

    @Test
    void shouldGoOnWhereItStoppedWithoutScoringTwice() {
        run.publish(0, 0);
        write(rollout("0-1/0", new VersionSpan(0L, 0, 3)));
        scoreAll(1, false);
        write(rollout("0-1/1", new VersionSpan(0L, 0, 3)));
        write(rollout("0-2/0", new VersionSpan(0L, 0, 3)));
        assertThat(scoreAll(3, false))
                .extracting(Score::getRolloutId)
                .containsExactlyInAnyOrder("0-1/0", "0-1/1", "0-2/0");
        assertThat(meters.counter("millrace.scorer.tokens").count()).isEqualTo(6); // of the second scorer
    }

    @Test
    void shouldScoreUnderAVersionOfTheRunThatStaysAndUnderACheckpointOnDisk() throws Exception {
        new CheckpointDirectory(teacher).save(TestRun.weights(7));
        run.publish(0, 0);
        run.publish(1, 0);
        run.publish(2, 0);
        write(rollout("0-1/0", new VersionSpan(2L, 0, 3)));
        Score reference =
                scoreAll(ScorerPurpose.REFERENCE, run.connection().topics().referenceScores());
        assertThat(reference.getVectors()).singleElement().satisfies(vector -> {
            assertThat(vector.getPolicy()).isEqualTo(PolicyRole.REFERENCE);
            assertThat(vector.getVersionSpans()).containsExactly(new VersionSpan(1L, 0, 3));
            float[] one = logProbs(1);
            assertThat(PackedFloats.toArray(vector.getLogProbs())).containsExactly(one[0], 0f, one[2]);
        });
        assertThat(meters.counter("millrace.reference.rollouts").count()).isEqualTo(1);

        Score taught = scoreAll(ScorerPurpose.TEACHER, run.connection().topics().teacherScores());
        assertThat(taught.getVectors()).singleElement().satisfies(vector -> {
            assertThat(vector.getPolicy()).isEqualTo(PolicyRole.TEACHER);
            assertThat(vector.getVersionSpans()).containsExactly(new VersionSpan(-1L, 0, 3));
            float[] seven = logProbs(7);
            assertThat(PackedFloats.toArray(vector.getLogProbs())).containsExactly(seven[0], 0f, seven[2]);
        });
    }

    private Score scoreAll(ScorerPurpose purpose, String topic) {
        try (Scorer scorer = scorer(purpose, false)) {
            RunningRole role = new RunningRole(purpose.role(), scorer::run, scorer::stop);
            run.await(topic, records -> !records.isEmpty());
            role.stop();
        }
        return run.await(Score.class, topic, 1).get(0);
    }

    @Test
    void shouldStopWhileItWaitsForAPolicy() {
        try (Scorer scorer = scorer(false)) {
            new RunningRole("scorer", scorer::run, scorer::stop).stop();
        }
    }

    private Scorer scorer(boolean entropies) {
        return scorer(ScorerPurpose.LEARNER, entropies);
    }

    private Scorer scorer(ScorerPurpose purpose, boolean entropies) {
        meters.clear();
        return new Scorer(
                run.connection(),
                purpose,
                run.feed(),
                Engine.cpu(),
                new ScorerConfig(
                        "s",
                        32,
                        1_000,
                        4,
                        entropies,
                        false,
                        false,
                        500,
                        200,
                        20_000,
                        20_000,
                        new FixedPolicyConfig(1, ""),
                        new FixedPolicyConfig(-1, teacher.toString())),
                meters,
                Clock.systemUTC());
    }

    /** Runs a scorer until there are this many scores, and returns them sorted by rollout. */
    private List<Score> scoreAll(int count, boolean entropies) {
        try (Scorer scorer = scorer(entropies)) {
            RunningRole role = new RunningRole("scorer", scorer::run, scorer::stop);
            run.await(scoresTopic, records -> records.size() >= count);
            role.stop();
        }
        return run.committed(Score.class, scoresTopic).stream()
                .sorted((a, b) -> a.getRolloutId().compareTo(b.getRolloutId()))
                .toList();
    }

    private void release(int ordinal, Prompt prompt, String environment) {
        PromptRequest request = PromptRequest.newBuilder()
                .setRunId(run.connection().run().runId())
                .setEpoch(0)
                .setGroupId("0-" + ordinal)
                .setOrdinal(ordinal)
                .setEnvironment(environment)
                .setEnvironmentState(prompt.environmentState())
                .setPromptTokens(PackedInts.of(prompt.tokens()))
                .setSamples(4)
                .setSampling(new SamplingParameters(0.9, 0, 1.0, 8, 1L, false, 0, 0.0, false))
                .setTokenizerHash(Symbols.tokenizer().hash())
                .setAdmittedVersion(0)
                .setReleasedAtMs(1)
                .build();
        String topic = run.connection().topics().prompts();
        run.write(topic, request.getGroupId(), run.bytes(PromptRequest.class, topic, request));
    }

    private void write(Rollout.Builder rollout) {
        run.write(rolloutsTopic, rollout.getGroupId(), run.bytes(Rollout.class, rolloutsTopic, rollout.build()));
    }

    /** A prompt of two tokens and three response tokens, the second of them by the environment. */
    private Rollout.Builder rollout(String id, VersionSpan... spans) {
        return Rollout.newBuilder()
                .setRunId(run.connection().run().runId())
                .setEpoch(0)
                .setRolloutId(id)
                .setGroupId(id.substring(0, id.indexOf('/')))
                .setOrdinal(1)
                .setSampleIndex(Integer.parseInt(id.substring(id.indexOf('/') + 1)))
                .setGroupSize(8)
                .setGeneratorId("test")
                .setEnvironment("guess")
                .setTokenizerHash(Symbols.tokenizer().hash())
                .setPromptTokens(PackedInts.of(0, 2))
                .setResponseTokens(PackedInts.of(7, 13, 9))
                .setMask(PackedMask.of((byte) 1, (byte) 0, (byte) 1))
                .setBehaviorLogProbs(PackedFloats.of(-1f, 0f, -1f))
                .setLogProbDistribution(LogProbDistribution.TEMPERED)
                .setSampling(new SamplingParameters(0.5, 0, 1.0, 3, 1L, false, 0, 0.0, false))
                .setTurns(List.of(
                        new Turn(Speaker.POLICY, 0, 1, null),
                        new Turn(Speaker.ENVIRONMENT, 1, 2, null),
                        new Turn(Speaker.POLICY, 2, 3, null)))
                .setVersionSpans(List.of(spans))
                .setReward(0)
                .setFinishReason(FinishReason.LENGTH)
                .setAdmittedVersion(0)
                .setStartedAtMs(1)
                .setFinishedAtMs(2);
    }

    /** Of {@link #rollout}'s response under a version, computed apart. */
    private static float[] logProbs(long version) {
        return scoring.score(
                        TestRun.weights(version),
                        new SequenceBatch(new int[][] {{0, 2, 7, 13, 9}}, new int[] {2}),
                        new float[] {0.5f})
                .logProbs();
    }

    private static LogProbVector vector(Score score, PolicyRole policy) {
        return score.getVectors().stream()
                .filter(vector -> vector.getPolicy() == policy)
                .findAny()
                .orElseThrow();
    }

    private static void assertAgrees(Rollout rollout, Score score) {
        assertThat(score.getUnavailable()).isNull();
        LogProbVector old = vector(score, PolicyRole.OLD);
        assertThat(old.getVersionSpans()).isEqualTo(rollout.getVersionSpans());
        float[] behavior = PackedFloats.toArray(rollout.getBehaviorLogProbs());
        float[] scored = PackedFloats.toArray(old.getLogProbs());
        assertThat(scored).hasSameSizeAs(behavior);
        for (int i = 0; i < scored.length; i++) {
            assertThat(Math.abs(scored[i] - behavior[i]))
                    .as(
                            "%s position %d of %s, behavior %s",
                            rollout.getRolloutId(), i, rollout.getVersionSpans(), Arrays.toString(behavior))
                    .isLessThan(1e-5f);
        }
        long newestOfItsOwn = rollout.getVersionSpans()
                .get(rollout.getVersionSpans().size() - 1)
                .getVersion();
        assertThat(vector(score, PolicyRole.PROXIMAL).getVersionSpans().get(0).getVersion())
                .isGreaterThanOrEqualTo(newestOfItsOwn);
    }
}
