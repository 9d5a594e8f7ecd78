package dev.millrace.generator.sampling;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.api.environment.Prompt;
import dev.millrace.generator.environment.Environments;
import dev.millrace.generator.environment.FixedAnswer;
import dev.millrace.generator.environment.Guess;
import dev.millrace.generator.environment.IncPrompts;
import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.decoder.DecoderTraits;
import dev.millrace.policy.decoder.Experts;
import dev.millrace.policy.decoder.Precision;
import dev.millrace.policy.decoder.RopeScaling;
import dev.millrace.policy.session.Engine;
import dev.millrace.policy.session.RoutedExperts;
import dev.millrace.policy.session.SampledSupport;
import dev.millrace.policy.session.ScoringSession;
import dev.millrace.policy.session.SequenceBatch;
import dev.millrace.policy.session.WeightPlacement;
import dev.millrace.policy.weights.Weights;
import dev.millrace.schemas.KeptSupport;
import dev.millrace.schemas.PromptRequest;
import dev.millrace.schemas.RecordedRouting;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.SamplingParameters;
import dev.millrace.schemas.VersionSpan;
import dev.millrace.schemas.packed.PackedFloats;
import dev.millrace.schemas.packed.PackedInts;
import dev.millrace.schemas.packed.PackedMask;
import dev.millrace.schemas.registry.InMemorySchemaRegistry;
import dev.millrace.schemas.rollout.ComparedDistribution;
import dev.millrace.schemas.rollout.RolloutLimits;
import dev.millrace.schemas.rollout.RolloutValidator;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.schemas.serde.AvroSerde;
import java.nio.charset.StandardCharsets;
import java.time.Clock;
import java.time.Instant;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import org.apache.kafka.common.TopicPartition;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

class RolloutSamplerTest {
    private static final DecoderShape SHAPE = new DecoderShape(16, 8, 1, 2, 2, 4, 16, 16, 100, 1e-6, false, false);
    private static final Clock STILL = Clock.fixed(Instant.EPOCH, ZoneOffset.UTC);
    private static final int DIGITS = 3;

    private final Weights weights = Weights.random(SHAPE, 1);
    private final RolloutSampler sampler = sampler(5);

    /** Loads the serde, which marks the record classes as trusted for copying builders. */
    @BeforeAll
    static void trustRecords() {
        AvroSerde.of(PromptRequest.class, new InMemorySchemaRegistry());
    }

    @AfterEach
    void close() {
        sampler.close();
    }

    /** With fewer slots than samples, so that slots are filled again. */
    private static RolloutSampler sampler(int slots) {
        return sampler(slots, Precision.F32);
    }

    private static RolloutSampler sampler(int slots, Precision precision) {
        return new RolloutSampler(
                Engine.cpu(),
                SHAPE,
                Environments.builtIn(),
                new GeneratorConfig(
                        "g",
                        slots,
                        1,
                        8,
                        7,
                        3,
                        7,
                        precision,
                        WeightPlacement.AUTO,
                        WeightUpdate.IN_FLIGHT,
                        CacheOnSwap.RECOMPUTE,
                        25,
                        0,
                        0,
                        1000,
                        0,
                        1,
                        1),
                STILL);
    }

    private static List<PromptRequest> requests(int count, int samples, int maxTokens) {
        List<PromptRequest> requests = new ArrayList<>();
        for (long ordinal = 0; ordinal < count; ordinal++) {
            Prompt prompt = new IncPrompts(DIGITS).prompt(3, ordinal);
            requests.add(PromptRequest.newBuilder()
                    .setRunId("run")
                    .setEpoch(0)
                    .setGroupId("g" + ordinal)
                    .setOrdinal(ordinal)
                    .setEnvironment(new FixedAnswer().name())
                    .setEnvironmentState(prompt.environmentState())
                    .setPromptTokens(PackedInts.of(prompt.tokens()))
                    .setSamples(samples)
                    .setSampling(new SamplingParameters(1.0, 0, 1.0, maxTokens, 9L, false, 0, 0.0, false))
                    .setTokenizerHash("h")
                    .setAdmittedVersion(0)
                    .setReleasedAtMs(0)
                    .build());
        }
        return requests;
    }

    @Test
    void shouldAnswerEveryRequestInOrderUnderTheVersionItWasAskedForWith() {
        List<Rollout> rollouts = sampler.sample(requests(4, 3, DIGITS), weights, 7);

        assertThat(rollouts)
                .extracting(Rollout::getRolloutId)
                .containsExactly(
                        "g0/0", "g0/1", "g0/2", "g1/0", "g1/1", "g1/2", "g2/0", "g2/1", "g2/2", "g3/0", "g3/1", "g3/2");
        assertThat(rollouts)
                .allSatisfy(rollout ->
                        assertThat(rollout.getVersionSpans()).containsExactly(new VersionSpan(7L, 0, DIGITS)));
        assertThat(rollouts).extracting(Rollout::getResponseTokens).doesNotHaveDuplicates();
    }

    @Test
    void shouldGiveTheSameRolloutsWhateverWasSampledBeforeAndHoweverManySlotsThereAre() {
        List<Rollout> first = sampler.sample(requests(4, 3, DIGITS), weights, 7);
        sampler.sample(requests(2, 5, DIGITS), Weights.random(SHAPE, 2), 8);
        try (RolloutSampler other = sampler(12)) {
            assertThat(sampler.sample(requests(4, 3, DIGITS), weights, 7)).isEqualTo(first);
            assertThat(other.sample(requests(4, 3, DIGITS), weights, 7)).isEqualTo(first);
        }
    }

    @Test
    void shouldBeAnotherEngineInAnotherPrecision() {
        double[] exact = logProbs(sampler.sample(requests(1, 3, DIGITS), weights, 7));
        for (Precision precision : List.of(Precision.BF16, Precision.INT8)) {
            try (RolloutSampler other = sampler(4, precision)) {
                double[] found = logProbs(other.sample(requests(1, 3, DIGITS), weights, 7));
                assertThat(found[0]).as(precision.name()).isNotEqualTo(exact[0]).isCloseTo(exact[0], within(0.1));
            }
        }
    }

    /** As learning again does, which evaluates the weights that it steps in place. */
    @Test
    void shouldReadWeightsAgainThatWereWrittenBetweenTwoCalls() {
        for (Precision precision : Precision.values()) {
            Weights own = weights.copy();
            try (RolloutSampler used = sampler(4, precision);
                    RolloutSampler fresh = sampler(4, precision)) {
                List<Rollout> before = used.sample(requests(2, 3, DIGITS), own, 7);
                own.copyFrom(Weights.random(SHAPE, 2));
                List<Rollout> after = used.sample(requests(2, 3, DIGITS), own, 8);
                assertThat(logProbs(after)).as(precision.name()).isNotEqualTo(logProbs(before));
                assertThat(after).isEqualTo(fresh.sample(requests(2, 3, DIGITS), Weights.random(SHAPE, 2), 8));
            }
        }
    }

    private static double[] logProbs(List<Rollout> rollouts) {
        return rollouts.stream()
                .mapToDouble(rollout -> PackedFloats.toArray(rollout.getBehaviorLogProbs())[0])
                .toArray();
    }

    /** One engine samples and scores: what it samples with is what scoring gives, up to rounding. */
    @Test
    void shouldRecordTheLogProbsThatScoringGives() {
        Rollout rollout = sampler.sample(requests(1, 1, DIGITS), weights, 0).get(0);
        int[] prompt = PackedInts.toArray(rollout.getPromptTokens());
        int[] tokens = new int[prompt.length + DIGITS];
        PackedInts.copyTo(rollout.getPromptTokens(), tokens, 0);
        PackedInts.copyTo(rollout.getResponseTokens(), tokens, prompt.length);
        try (ScoringSession scoring = new ScoringSession(Engine.cpu(), SHAPE, 64)) {
            float[] scored = scoring.score(
                            weights, new SequenceBatch(new int[][] {tokens}, new int[] {prompt.length}), new float[] {1f
                            })
                    .logProbs();
            assertThat(PackedFloats.toArray(rollout.getBehaviorLogProbs())).containsExactly(scored, within(1e-5f));
        }
    }

    /** Over the kept tokens behavior and old are the same policy on the same actions; over the vocabulary they are not. */
    @ParameterizedTest
    @CsvSource({"0, 0.9", "5, 1.0", "6, 0.8"})
    void shouldRecordTheKeptTokensOverWhichScoringGivesTheSameLogProbs(int topK, double topP) throws Exception {
        SamplingParameters keeping = new SamplingParameters(1.3, topK, topP, 3, 9L, true, 4, 0.0, false);
        List<PromptRequest> requests = requests(6, 4, DIGITS).stream()
                .map(request -> PromptRequest.newBuilder(request)
                        .setEnvironment(new Guess().name())
                        .setEnvironmentState("7/3")
                        .setSampling(keeping)
                        .build())
                .toList();
        List<Rollout> rollouts = sampler.sample(requests, weights, 0);

        RolloutValidator validator =
                new RolloutValidator(new RunIdentity("run", 0, "p"), new RolloutLimits("h", 16, 16, 4, 10));
        double largestGap = 0;
        boolean environmentSpoke = false;
        try (ScoringSession scoring = new ScoringSession(Engine.cpu(), SHAPE, 64)) {
            for (Rollout rollout : rollouts) {
                validator.validate(rollout, rollout.getGroupId().getBytes(StandardCharsets.UTF_8));
                int prompt = PackedInts.length(rollout.getPromptTokens());
                int[] tokens = new int[prompt + PackedInts.length(rollout.getResponseTokens())];
                PackedInts.copyTo(rollout.getPromptTokens(), tokens, 0);
                PackedInts.copyTo(rollout.getResponseTokens(), tokens, prompt);
                KeptSupport kept = Objects.requireNonNull(ComparedDistribution.keptTokens(rollout));
                SampledSupport rows = new SampledSupport(
                        ComparedDistribution.keptCounts(kept, rollout.getMask()),
                        PackedInts.toArray(kept.getTokenIds()));
                int[][] one = {tokens};
                int[] first = {prompt};
                float[] over = scoring.score(
                                weights, new SequenceBatch(one, first, new SampledSupport[] {rows}), new float[] {1.3f})
                        .logProbs();
                float[] whole = scoring.score(weights, new SequenceBatch(one, first), new float[] {1.3f})
                        .logProbs();
                float[] behavior = PackedFloats.toArray(ComparedDistribution.behaviorLogProbs(rollout));
                for (int t = 0; t < behavior.length; t++) {
                    if (PackedMask.get(rollout.getMask(), t) == 1) {
                        assertThat(Math.exp(over[t] - behavior[t])).isCloseTo(1, within(1e-5));
                        largestGap = Math.max(largestGap, behavior[t] - whole[t]);
                    }
                }
                environmentSpoke |= rollout.getTurns().size() > 1;
            }
        }
        assertThat(largestGap).as("what truncation gives to a token, in nats").isGreaterThan(0.05);
        assertThat(environmentSpoke).isTrue();
    }

    /** An engine of another precision chooses other experts now and then; through its own ones the scorer is nearer to it. */
    @Test
    void shouldRecordTheRoutingThatScoringReplays() throws Exception {
        DecoderShape experts = new DecoderShape(16, 32, 2, 4, 2, 8, 48, 64, 100, 1e-6, false, false)
                .with(new DecoderTraits(new RopeScaling.None(), false, false, true, 0, 0, new Experts(32, 3, 8, true)));
        Weights ofExperts = Weights.random(experts, 4);
        GeneratorConfig config = new GeneratorConfig(
                "g",
                5,
                1,
                16,
                3,
                3,
                7,
                Precision.INT8,
                WeightPlacement.AUTO,
                WeightUpdate.MULTI_VERSION,
                CacheOnSwap.KEEP,
                25,
                0,
                0,
                1000,
                0,
                1,
                1);
        SamplingParameters recording = new SamplingParameters(1.0, 0, 1.0, 8, 9L, false, 0, 0.0, true);
        List<PromptRequest> requests = requests(8, 4, DIGITS).stream()
                .map(request -> PromptRequest.newBuilder(request)
                        .setEnvironment(new Guess().name())
                        .setEnvironmentState("7/3")
                        .setSampling(recording)
                        .build())
                .toList();
        RolloutValidator validator =
                new RolloutValidator(new RunIdentity("run", 0, "p"), new RolloutLimits("h", 16, 16, 4, 10));
        double own = 0;
        double replayed = 0;
        try (RolloutSampler routed = new RolloutSampler(Engine.cpu(), experts, Environments.builtIn(), config, STILL);
                ScoringSession scoring = new ScoringSession(Engine.cpu(), experts, 64)) {
            for (Rollout rollout : routed.sample(requests, ofExperts, 0)) {
                validator.validate(rollout, rollout.getGroupId().getBytes(StandardCharsets.UTF_8));
                int prompt = PackedInts.length(rollout.getPromptTokens());
                int[] tokens = new int[prompt + PackedInts.length(rollout.getResponseTokens())];
                PackedInts.copyTo(rollout.getPromptTokens(), tokens, 0);
                PackedInts.copyTo(rollout.getResponseTokens(), tokens, prompt);
                RecordedRouting record = Objects.requireNonNull(ComparedDistribution.routing(rollout));
                RoutedExperts routing = RoutedExperts.of(
                        record.getLayers(), record.getExpertsPerToken(), record.getExperts(), record.getWeights());
                routing.require(experts, rollout.getRolloutId());
                assertThat(routing.isNoted(prompt - 1, 1)).isTrue();
                SequenceBatch one = new SequenceBatch(new int[][] {tokens}, new int[] {prompt});
                float[] behavior = PackedFloats.toArray(rollout.getBehaviorLogProbs());
                float[] alone = scoring.score(ofExperts, one, new float[] {1}).logProbs();
                float[] through = scoring.score(ofExperts, one.routed(new RoutedExperts[] {routing}), new float[] {1})
                        .logProbs();
                for (int t = 0; t < behavior.length; t++) {
                    if (PackedMask.get(rollout.getMask(), t) == 1) {
                        own += Math.abs(behavior[t] - alone[t]);
                        replayed += Math.abs(behavior[t] - through[t]);
                    }
                }
            }
        }
        assertThat(replayed).as("sum of differences in nats").isPositive().isLessThan(0.9 * own);
    }

    @Test
    void shouldRefuseARequestThatDoesNotFitASlot() {
        assertThatThrownBy(() -> sampler.sample(requests(1, 1, 4), weights, 0))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("need 9 positions, a slot has 8 (capacity_tokens)");
    }

    @ParameterizedTest
    @EnumSource(CacheOnSwap.class)
    void shouldSampleAgainWhatAGeneratorDidThatSwappedWeightsInMidSequence(CacheOnSwap cacheOnSwap) {
        Weights newer = Weights.random(SHAPE, 2);
        GeneratorConfig config = new GeneratorConfig(
                "g",
                5,
                1,
                8,
                2,
                3,
                64,
                Precision.F32,
                WeightPlacement.AUTO,
                WeightUpdate.IN_FLIGHT,
                cacheOnSwap,
                25,
                0,
                0,
                1000,
                0,
                1,
                1);
        List<Rollout> swapped = new ArrayList<>();
        try (ContinuousBatcher pool = new ContinuousBatcher(Engine.cpu(), SHAPE, config)) {
            RolloutRecords records = new RolloutRecords("g");
            for (PromptRequest request : requests(4, 1, DIGITS)) {
                pool.add(new RunningSequence(
                        new AcceptedPrompt(
                                request,
                                PackedInts.toArray(request.getPromptTokens()),
                                Environments.builtIn().playing(request),
                                new TopicPartition("prompts", 0),
                                0),
                        0,
                        SHAPE.vocabSize(),
                        0));
            }
            for (int call = 0; pool.active() > 0; call++) {
                pool.advance(
                        call < 1 ? weights : newer, call < 1 ? 7 : 9, sequence -> swapped.add(records.of(sequence, 0)));
            }
        }
        assertThat(swapped)
                .hasSize(4)
                .allSatisfy(rollout -> assertThat(rollout.getVersionSpans())
                        .containsExactly(new VersionSpan(7L, 0, 2), new VersionSpan(9L, 2, DIGITS)));
        List<VersionedSample> samples = new ArrayList<>();
        for (PromptRequest request : requests(4, 1, DIGITS)) {
            samples.add(
                    new VersionedSample(request, 0, swapped.get(samples.size()).getVersionSpans()));
        }
        samples.add(new VersionedSample(requests(1, 1, DIGITS).get(0), 3, List.of(new VersionSpan(9L, 0, DIGITS))));
        try (RolloutSampler again = new RolloutSampler(Engine.cpu(), SHAPE, Environments.builtIn(), config, STILL)) {
            List<Rollout> rollouts = again.sample(samples, version -> version == 7 ? weights : newer);
            assertThat(rollouts.subList(0, 4)).isEqualTo(swapped);
            assertThat(rollouts.get(4).getVersionSpans()).containsExactly(new VersionSpan(9L, 0, DIGITS));
        }
    }
}
