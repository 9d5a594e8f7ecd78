package dev.millrace.scorer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.generator.environment.Environments;
import dev.millrace.generator.environment.Guess;
import dev.millrace.generator.sampling.CacheOnSwap;
import dev.millrace.generator.sampling.GeneratorConfig;
import dev.millrace.generator.sampling.RolloutSampler;
import dev.millrace.generator.sampling.WeightUpdate;
import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.decoder.Precision;
import dev.millrace.policy.session.Engine;
import dev.millrace.policy.session.SampledSupport;
import dev.millrace.policy.session.ScoringSession;
import dev.millrace.policy.session.SequenceBatch;
import dev.millrace.policy.session.TokenScores;
import dev.millrace.policy.session.WeightPlacement;
import dev.millrace.policy.weights.Weights;
import dev.millrace.schemas.KeptSupport;
import dev.millrace.schemas.PromptRequest;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.SamplingParameters;
import dev.millrace.schemas.TopLogProbs;
import dev.millrace.schemas.packed.PackedFloats;
import dev.millrace.schemas.packed.PackedInts;
import dev.millrace.schemas.packed.PackedMask;
import dev.millrace.schemas.rollout.ComparedDistribution;
import dev.millrace.scorer.BatchScoring.LikeliestScoring;
import dev.millrace.scorer.RolloutReading.Scorable;
import java.time.Clock;
import java.time.Instant;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Test;

/** One engine samples and scores: top log-probs are equal both times, up to rounding. */
class LikeliestScoringTest {
    private static final DecoderShape SHAPE = new DecoderShape(16, 8, 1, 2, 2, 4, 16, 16, 100, 1e-6, false, false);
    private static final Clock STILL = Clock.fixed(Instant.EPOCH, ZoneOffset.UTC);
    private final Weights weights = Weights.random(SHAPE, 1);

    @Test
    void shouldFindTheLogProbsThatTheRolloutsRecorded() {
        List<Scorable> rollouts = new ArrayList<>();
        rollouts.addAll(sampled(new SamplingParameters(1.2, 3, 1.0, 3, 9L, true, 5, 0.0, false)));
        rollouts.addAll(sampled(new SamplingParameters(0.8, 0, 1.0, 3, 9L, false, 2, 0.0, false)));
        rollouts.addAll(sampled(new SamplingParameters(0.8, 0, 0.7, 3, 9L, false, 0, 0.0, false)));
        SequenceBatch batch = Scorable.batch(rollouts);
        TopLogProbs[] top = new TopLogProbs[rollouts.size()];
        try (ScoringSession session = new ScoringSession(Engine.cpu(), SHAPE, 64)) {
            TokenScores scores = new LikeliestScoring(session, weights).score(rollouts, batch, top);

            assertThat(scores.logProbs())
                    .containsExactly(session.score(weights, batch, Scorable.temperatures(rollouts))
                            .logProbs());
        }
        for (int i = 0; i < top.length; i++) {
            if (rollouts.get(i).rollout().getSampling().getTopLogProbs() == 0) {
                assertThat(top[i]).isNull();
                continue;
            }
            TopLogProbs recorded = rollouts.get(i).rollout().getSamplingTrace().getTopLogProbs();
            assertThat(top[i].getTokenIds()).isEqualTo(recorded.getTokenIds());
            float[] expected = PackedFloats.toArray(recorded.getLogProbs());
            float[] found = PackedFloats.toArray(top[i].getLogProbs());
            assertThat(found).hasSameSizeAs(expected);
            for (int j = 0; j < found.length; j++) {
                assertThat(Math.exp(found[j])).isCloseTo(Math.exp(expected[j]), within(1e-5));
                assertThat(found[j] == Float.NEGATIVE_INFINITY).isEqualTo(expected[j] == Float.NEGATIVE_INFINITY);
            }
            float[] rest = PackedFloats.toArray(recorded.getRemainderLogProbs());
            float[] restFound = PackedFloats.toArray(top[i].getRemainderLogProbs());
            for (int j = 0; j < rest.length; j++) {
                assertThat(Math.exp(restFound[j])).isCloseTo(Math.exp(rest[j]), within(1e-5));
            }
        }
    }

    private List<Scorable> sampled(SamplingParameters sampling) {
        GeneratorConfig config = new GeneratorConfig(
                "g",
                5,
                1,
                8,
                3,
                256,
                1024,
                Precision.F32,
                WeightPlacement.AUTO,
                WeightUpdate.IN_FLIGHT,
                CacheOnSwap.RECOMPUTE,
                25,
                0,
                0,
                1000,
                0,
                1,
                1);
        PromptRequest request = PromptRequest.newBuilder()
                .setRunId("run")
                .setEpoch(0)
                .setGroupId("g")
                .setOrdinal(0)
                .setEnvironment(new Guess().name())
                .setEnvironmentState("7/3")
                .setPromptTokens(PackedInts.of(0, 2))
                .setSamples(6)
                .setSampling(sampling)
                .setTokenizerHash("h")
                .setAdmittedVersion(0)
                .setReleasedAtMs(0)
                .build();
        try (RolloutSampler sampler = new RolloutSampler(Engine.cpu(), SHAPE, Environments.builtIn(), config, STILL)) {
            return sampler.sample(List.of(request), weights, 0).stream()
                    .map(LikeliestScoringTest::scorable)
                    .toList();
        }
    }

    private static Scorable scorable(Rollout rollout) {
        int[] prompt = PackedInts.toArray(rollout.getPromptTokens());
        int[] response = PackedInts.toArray(rollout.getResponseTokens());
        int[] tokens = Arrays.copyOf(prompt, prompt.length + response.length);
        System.arraycopy(response, 0, tokens, prompt.length, response.length);
        KeptSupport kept = ComparedDistribution.keptTokens(rollout);
        return new Scorable(
                rollout,
                0,
                0,
                tokens,
                prompt.length,
                PackedMask.toArray(rollout.getMask()),
                (float) rollout.getSampling().getTemperature(),
                kept == null
                        ? null
                        : new SampledSupport(
                                ComparedDistribution.keptCounts(kept, rollout.getMask()),
                                PackedInts.toArray(kept.getTokenIds())),
                null);
    }
}
