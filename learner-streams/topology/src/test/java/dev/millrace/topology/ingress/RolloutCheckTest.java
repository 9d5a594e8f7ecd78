package dev.millrace.topology.ingress;

import static dev.millrace.topology.Samples.RUN;
import static dev.millrace.topology.Samples.rollout;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.millrace.schemas.LogProbDistribution;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.SamplingParameters;
import dev.millrace.schemas.Speaker;
import dev.millrace.schemas.Turn;
import dev.millrace.schemas.VersionSpan;
import dev.millrace.schemas.packed.PackedFloats;
import dev.millrace.schemas.packed.PackedInts;
import dev.millrace.schemas.packed.PackedMask;
import dev.millrace.schemas.refusal.RefusalReason;
import dev.millrace.schemas.refusal.RefusedException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.function.UnaryOperator;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

class RolloutCheckTest {
    private static final byte[] KEY = "g".getBytes(StandardCharsets.UTF_8);
    private static final RolloutCheck CHECK = new RolloutCheck(RUN, new IngressConfig("vocabulary", 16, 8, 100));

    private static Arguments wrong(
            String what, RefusalReason reason, String field, UnaryOperator<Rollout.Builder> change) {
        return Arguments.of(what, reason, field, change);
    }

    private static SamplingParameters sampling(double temperature, int topK, double topP, int maxTokens) {
        return new SamplingParameters(temperature, topK, topP, maxTokens, 1L);
    }

    static Stream<Arguments> claimsThatDoNotHold() {
        return Stream.of(
                wrong("another run", RefusalReason.WRONG_RUN, "run_id", r -> r.setRunId("other")),
                wrong("an older epoch", RefusalReason.WRONG_EPOCH, "epoch", r -> r.setEpoch(1)),
                wrong("a later epoch", RefusalReason.WRONG_EPOCH, "epoch", r -> r.setEpoch(3)),
                wrong(
                        "no group id",
                        RefusalReason.IDENTITY,
                        "group_id",
                        r -> r.setGroupId("").setRolloutId("/0")),
                wrong("a group id without end", RefusalReason.IDENTITY, "group_id", r -> r.setGroupId("g".repeat(513))),
                wrong("the id of another group", RefusalReason.IDENTITY, "rollout_id", r -> r.setRolloutId("h/0")),
                wrong("an id without an index", RefusalReason.IDENTITY, "rollout_id", r -> r.setRolloutId("g/")),
                wrong("an id with a padded index", RefusalReason.IDENTITY, "rollout_id", r -> r.setRolloutId("g/00")),
                wrong(
                        "an id with a huge index",
                        RefusalReason.IDENTITY,
                        "rollout_id",
                        r -> r.setRolloutId("g/99999999999")),
                wrong("the id of a sibling", RefusalReason.IDENTITY, "rollout_id", r -> r.setRolloutId("g/1")),
                wrong(
                        "a sample beyond the group",
                        RefusalReason.IDENTITY,
                        "sample_index",
                        r -> r.setSampleIndex(2).setRolloutId("g/2")),
                wrong("a negative sample", RefusalReason.IDENTITY, "sample_index", r -> r.setSampleIndex(-1)),
                wrong("an empty group", RefusalReason.IDENTITY, "group_size", r -> r.setGroupSize(0)),
                wrong("a group above the bound", RefusalReason.IDENTITY, "group_size", r -> r.setGroupSize(9)),
                wrong("a negative ordinal", RefusalReason.IDENTITY, "ordinal", r -> r.setOrdinal(-1)),
                wrong("no tokenizer", RefusalReason.WRONG_TOKENIZER, "tokenizer_hash", r -> r.setTokenizerHash("")),
                wrong(
                        "another tokenizer",
                        RefusalReason.WRONG_TOKENIZER,
                        "tokenizer_hash",
                        r -> r.setTokenizerHash("x")),
                wrong("no prompt", RefusalReason.LENGTHS, "prompt_tokens", r -> r.setPromptTokens(PackedInts.of())),
                wrong(
                        "half a prompt token",
                        RefusalReason.LENGTHS,
                        "prompt_tokens",
                        r -> r.setPromptTokens(ByteBuffer.wrap(new byte[6]))),
                wrong(
                        "no response",
                        RefusalReason.LENGTHS,
                        "response_tokens",
                        r -> r.setResponseTokens(PackedInts.of())),
                wrong(
                        "a negative token",
                        RefusalReason.TOKENS,
                        "response_tokens[1]",
                        r -> r.setResponseTokens(PackedInts.of(1, -1, 2))),
                wrong(
                        "a token beyond the vocabulary",
                        RefusalReason.TOKENS,
                        "prompt_tokens[0]",
                        r -> r.setPromptTokens(PackedInts.of(16))),
                wrong(
                        "a negative version",
                        RefusalReason.VERSION_SPANS,
                        "version_spans[0]",
                        r -> r.setVersionSpans(List.of(new VersionSpan(-1L, 0, 3)))),
                wrong(
                        "a span that starts late",
                        RefusalReason.VERSION_SPANS,
                        "version_spans[0]",
                        r -> r.setVersionSpans(List.of(new VersionSpan(1L, 1, 3)))),
                wrong(
                        "a gap between spans",
                        RefusalReason.VERSION_SPANS,
                        "version_spans[1]",
                        r -> r.setVersionSpans(List.of(new VersionSpan(1L, 0, 1), new VersionSpan(1L, 2, 3)))),
                wrong(
                        "spans that overlap",
                        RefusalReason.VERSION_SPANS,
                        "version_spans[1]",
                        r -> r.setVersionSpans(List.of(new VersionSpan(1L, 0, 2), new VersionSpan(1L, 1, 3)))),
                wrong(
                        "an empty span",
                        RefusalReason.VERSION_SPANS,
                        "version_spans[0]",
                        r -> r.setVersionSpans(List.of(new VersionSpan(1L, 0, 0), new VersionSpan(1L, 0, 3)))),
                wrong(
                        "a span beyond the response",
                        RefusalReason.VERSION_SPANS,
                        "version_spans[0]",
                        r -> r.setVersionSpans(List.of(new VersionSpan(1L, 0, 4)))),
                wrong(
                        "spans that stop early",
                        RefusalReason.VERSION_SPANS,
                        "version_spans",
                        r -> r.setVersionSpans(List.of(new VersionSpan(1L, 0, 2)))),
                wrong("no spans", RefusalReason.VERSION_SPANS, "version_spans", r -> r.setVersionSpans(List.of())),
                wrong(
                        "turns that stop early",
                        RefusalReason.TURNS,
                        "turns",
                        r -> r.setTurns(List.of(new Turn(Speaker.POLICY, 0, 1, null)))),
                wrong(
                        "turns out of order",
                        RefusalReason.TURNS,
                        "turns[0]",
                        r -> r.setTurns(
                                List.of(new Turn(Speaker.POLICY, 1, 3, null), new Turn(Speaker.POLICY, 0, 1, null)))),
                wrong("a short mask", RefusalReason.LENGTHS, "mask", r -> r.setMask(PackedMask.of((byte) 1))),
                wrong(
                        "a mask that is none",
                        RefusalReason.MASK,
                        "mask[1]",
                        r -> r.setMask(PackedMask.of((byte) 1, (byte) 2, (byte) 0))),
                wrong(
                        "training on the environment",
                        RefusalReason.MASK,
                        "mask[2]",
                        r -> r.setTurns(List.of(
                                new Turn(Speaker.POLICY, 0, 2, null), new Turn(Speaker.ENVIRONMENT, 2, 3, null)))),
                wrong(
                        "no temperature",
                        RefusalReason.SAMPLING,
                        "sampling.temperature",
                        r -> r.setSampling(sampling(0, 0, 1, 8))),
                wrong(
                        "NaN as temperature",
                        RefusalReason.SAMPLING,
                        "sampling.temperature",
                        r -> r.setSampling(sampling(Double.NaN, 0, 1, 8))),
                wrong(
                        "a negative top_k",
                        RefusalReason.SAMPLING,
                        "sampling.top_k",
                        r -> r.setSampling(sampling(1, -1, 1, 8))),
                wrong(
                        "a top_p of 0",
                        RefusalReason.SAMPLING,
                        "sampling.top_p",
                        r -> r.setSampling(sampling(1, 0, 0, 8))),
                wrong(
                        "a top_p above 1",
                        RefusalReason.SAMPLING,
                        "sampling.top_p",
                        r -> r.setSampling(sampling(1, 0, 1.1, 8))),
                wrong(
                        "more tokens than allowed",
                        RefusalReason.SAMPLING,
                        "sampling.max_tokens",
                        r -> r.setSampling(sampling(1, 0, 1, 2))),
                wrong(
                        "too few log-probs",
                        RefusalReason.LENGTHS,
                        "behavior_log_probs",
                        r -> r.setBehaviorLogProbs(PackedFloats.of(-1f, -1f))),
                wrong(
                        "a NaN log-prob",
                        RefusalReason.LOG_PROBS,
                        "behavior_log_probs[2]",
                        r -> r.setBehaviorLogProbs(PackedFloats.of(-1f, -1f, Float.NaN))),
                wrong(
                        "an infinite log-prob",
                        RefusalReason.LOG_PROBS,
                        "behavior_log_probs[0]",
                        r -> r.setBehaviorLogProbs(PackedFloats.of(Float.NEGATIVE_INFINITY, -1f, -1f))),
                wrong(
                        "a probability above 1",
                        RefusalReason.LOG_PROBS,
                        "behavior_log_probs[1]",
                        r -> r.setBehaviorLogProbs(PackedFloats.of(-1f, 0.1f, -1f))),
                wrong(
                        "too many tempered log-probs",
                        RefusalReason.LENGTHS,
                        "tempered_log_probs",
                        r -> r.setTemperedLogProbs(PackedFloats.of(-1f, -1f, -1f, -1f))),
                wrong(
                        "a NaN tempered log-prob",
                        RefusalReason.LOG_PROBS,
                        "tempered_log_probs[0]",
                        r -> r.setTemperedLogProbs(PackedFloats.of(Float.NaN, -1f, -1f))),
                wrong(
                        "raw log-probs at a temperature",
                        RefusalReason.LOG_PROBS,
                        "log_prob_distribution",
                        r -> r.setLogProbDistribution(LogProbDistribution.RAW).setSampling(sampling(0.7, 0, 1, 8))),
                wrong("a NaN reward", RefusalReason.REWARD, "reward", r -> r.setReward(Double.NaN)),
                wrong("an absurd reward", RefusalReason.REWARD, "reward", r -> r.setReward(-100.5)),
                wrong(
                        "an infinite part of the reward",
                        RefusalReason.REWARD,
                        "reward_components.length",
                        r -> r.setRewardComponents(Map.of("length", Double.POSITIVE_INFINITY))));
    }

    @ParameterizedTest(name = "{0}")
    @MethodSource("claimsThatDoNotHold")
    void shouldRefuseNamingReasonAndField(
            String what, RefusalReason reason, String field, UnaryOperator<Rollout.Builder> change) {
        Rollout rollout = change.apply(rollout("g", 0)).build();

        RefusedException refused = catchThrowableOfType(
                RefusedException.class,
                () -> CHECK.check(rollout, rollout.getGroupId().getBytes(StandardCharsets.UTF_8)));

        assertThat(refused).isNotNull();
        assertThat(refused.refusal().reason()).isEqualTo(reason);
        assertThat(refused.refusal().field()).isEqualTo(field);
        assertThat(refused.getMessage()).isNotBlank();
    }

    @Test
    void shouldAcceptWhatHolds() throws RefusedException {
        assertThat(CHECK.check(rollout("g", 1).build(), KEY)).isEqualTo(new SampleName("g", 1));
    }

    @Test
    void shouldNotLookAtValuesOfTokensThatAreNotTrained() throws RefusedException {
        Rollout rollout = rollout("g", 0)
                .setMask(PackedMask.of((byte) 1, (byte) 1, (byte) 0))
                .setTurns(List.of(new Turn(Speaker.POLICY, 0, 2, null), new Turn(Speaker.TOOL, 2, 3, null)))
                .setBehaviorLogProbs(PackedFloats.of(-1f, -1f, Float.NaN))
                .build();
        assertThat(CHECK.check(rollout, KEY).rolloutId()).isEqualTo("g/0");
    }

    @Test
    void shouldAcceptSpansOfSeveralVersionsInAnyOrderOfVersions() throws RefusedException {
        Rollout rollout = rollout("g", 0)
                .setVersionSpans(List.of(new VersionSpan(5L, 0, 1), new VersionSpan(2L, 1, 3)))
                .build();
        assertThat(CHECK.check(rollout, KEY).rolloutId()).isEqualTo("g/0");
    }

    @Test
    void shouldAcceptRawLogProbsAtTemperatureOne() throws RefusedException {
        Rollout rollout =
                rollout("g", 0).setLogProbDistribution(LogProbDistribution.RAW).build();
        assertThat(CHECK.check(rollout, KEY).rolloutId()).isEqualTo("g/0");
    }

    @Test
    void shouldForgiveTheRoundingOfACertainToken() throws RefusedException {
        Rollout rollout = rollout("g", 0)
                .setBehaviorLogProbs(PackedFloats.of(6e-8f, -1f, -0f))
                .build();
        assertThat(CHECK.check(rollout, KEY).rolloutId()).isEqualTo("g/0");
    }

    @Test
    void shouldRefuseAKeyThatIsNotTheGroupId() {
        Rollout rollout = rollout("g", 0).build();
        for (byte[] key : new byte[][] {null, {}, {1, 2}, "h".getBytes(StandardCharsets.UTF_8), new byte[1000]}) {
            assertThatThrownBy(() -> CHECK.check(rollout, key))
                    .isInstanceOfSatisfying(
                            RefusedException.class,
                            e -> assertThat(e.refusal().reason()).isEqualTo(RefusalReason.WRONG_KEY));
        }
    }

    @Test
    void shouldTakeAnyVocabularyWhereNoneIsConfigured() throws RefusedException {
        RolloutCheck lenient = new RolloutCheck(RUN, IngressConfig.defaults());
        Rollout rollout = rollout("g", 0)
                .setTokenizerHash("other")
                .setPromptTokens(PackedInts.of(150_000))
                .build();
        assertThat(lenient.check(rollout, KEY).rolloutId()).isEqualTo("g/0");
    }
}
