package dev.millrace.schemas.rollout;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.millrace.schemas.Agent;
import dev.millrace.schemas.BlobReference;
import dev.millrace.schemas.Branch;
import dev.millrace.schemas.BranchReason;
import dev.millrace.schemas.Credit;
import dev.millrace.schemas.FinishReason;
import dev.millrace.schemas.ImageReference;
import dev.millrace.schemas.KeptSupport;
import dev.millrace.schemas.LogProbDistribution;
import dev.millrace.schemas.RecordedRouting;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.Sampler;
import dev.millrace.schemas.SamplingParameters;
import dev.millrace.schemas.SamplingTrace;
import dev.millrace.schemas.Speaker;
import dev.millrace.schemas.TopLogProbs;
import dev.millrace.schemas.Turn;
import dev.millrace.schemas.VersionSpan;
import dev.millrace.schemas.packed.PackedFloats;
import dev.millrace.schemas.packed.PackedInts;
import dev.millrace.schemas.packed.PackedMask;
import dev.millrace.schemas.run.RunIdentity;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.function.UnaryOperator;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

class RolloutValidatorTest {
    private static final RunIdentity RUN = new RunIdentity("run-1", 2, "policy");
    private static final int FED = 4; // tokens of prompt and response but the last
    private static final byte[] KEY = "g".getBytes(StandardCharsets.UTF_8);
    private static final RolloutValidator VALIDATOR =
            new RolloutValidator(RUN, new RolloutLimits("vocabulary", 16, 20, 8, 100));

    private static Arguments wrong(
            String what, RefusalReason reason, String field, UnaryOperator<Rollout.Builder> change) {
        return Arguments.of(what, reason, field, change);
    }

    private static SamplingParameters sampling(double temperature, int topK, double topP, int maxTokens) {
        return new SamplingParameters(temperature, topK, topP, maxTokens, 1L, false, 0, 0.0, false);
    }

    private static SamplingParameters keepingItsMask(int topK) {
        return new SamplingParameters(1.0, topK, 1.0, 8, 1L, true, 0, 0.0, false);
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
                        "an engine's stand-in for minus infinity",
                        RefusalReason.LOG_PROBS,
                        "behavior_log_probs[1]",
                        r -> r.setBehaviorLogProbs(PackedFloats.of(-1f, -9999f, -1f))),
                wrong(
                        "a log-prob just below the least",
                        RefusalReason.LOG_PROBS,
                        "behavior_log_probs[1]",
                        r -> r.setBehaviorLogProbs(
                                PackedFloats.of(-1f, Math.nextDown(VectorCheck.LEAST_LOG_PROB), -1f))),
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
                wrong(
                        "truncated log-probs that nothing can be compared with",
                        RefusalReason.LOG_PROBS,
                        "tempered_log_probs",
                        r -> r.setLogProbDistribution(LogProbDistribution.TRUNCATED)
                                .setSampling(sampling(1, 3, 1, 8))),
                wrong(
                        "a mask that is to be kept, and was not",
                        RefusalReason.SAMPLING,
                        "sampling_trace.kept_tokens",
                        r -> r.setLogProbDistribution(LogProbDistribution.TRUNCATED)
                                .setTemperedLogProbs(PackedFloats.of(-1f, -1f, -1f))
                                .setSampling(keepingItsMask(3))),
                wrong(
                        "a routing that is to be recorded, and was not",
                        RefusalReason.SAMPLING,
                        "sampling_trace.routing",
                        r -> r.setSampling(new SamplingParameters(1.0, 0, 1.0, 8, 1L, false, 0, 0.0, true))),
                wrong(
                        "a routing of too few tokens",
                        RefusalReason.LENGTHS,
                        "sampling_trace.routing",
                        r -> r.setSamplingTrace(routing(new byte[2], new float[2]))),
                wrong(
                        "a routing with fewer weights than experts",
                        RefusalReason.LENGTHS,
                        "sampling_trace.routing",
                        r -> r.setSamplingTrace(routing(new byte[FED], new float[FED - 1]))),
                wrong(
                        "an expert below the first",
                        RefusalReason.SAMPLING,
                        "sampling_trace.routing",
                        r -> r.setSamplingTrace(routing(filled((byte) -2), new float[FED]))),
                wrong(
                        "a mask that is to be kept where nothing is left out",
                        RefusalReason.SAMPLING,
                        "sampling.keep_sampling_mask",
                        r -> r.setSampling(keepingItsMask(0))),
                wrong(
                        "tempered log-probs where those over the kept tokens are compared",
                        RefusalReason.LOG_PROBS,
                        "log_prob_distribution",
                        r -> r.setLogProbDistribution(LogProbDistribution.TEMPERED)
                                .setSampling(keepingItsMask(3))),
                wrong(
                        "fewer than no likeliest tokens",
                        RefusalReason.SAMPLING,
                        "sampling.top_log_probs",
                        r -> r.setSampling(new SamplingParameters(1.0, 0, 1.0, 8, 1L, false, -1, 0.0, false))),
                wrong("a NaN reward", RefusalReason.REWARD, "reward", r -> r.setReward(Double.NaN)),
                wrong("an absurd reward", RefusalReason.REWARD, "reward", r -> r.setReward(-100.5)),
                wrong(
                        "an infinite part of the reward",
                        RefusalReason.REWARD,
                        "reward_components.length",
                        r -> r.setRewardComponents(Map.of("length", Double.POSITIVE_INFINITY))));
    }

    /** Of one layer, with one expert for each token. */
    private static SamplingTrace routing(byte[] experts, float[] weights) {
        return new SamplingTrace(
                null, null, null, new RecordedRouting(1, 1, PackedMask.of(experts), PackedFloats.of(weights)));
    }

    private static byte[] filled(byte value) {
        byte[] values = new byte[FED];
        Arrays.fill(values, value);
        return values;
    }

    static Stream<Arguments> notesThatDoNotHold() {
        String top = "sampling_trace.top_log_probs";
        String kept = "sampling_trace.kept_tokens";
        return Stream.of(
                wrong(
                        "an end that no schema of ours has",
                        RefusalReason.UNKNOWN_SYMBOL,
                        "finish_reason",
                        r -> r.setFinishReason(FinishReason.UNKNOWN)),
                wrong(
                        "a distribution that no schema of ours has",
                        RefusalReason.UNKNOWN_SYMBOL,
                        "log_prob_distribution",
                        r -> r.setLogProbDistribution(LogProbDistribution.UNKNOWN)),
                wrong(
                        "a speaker that no schema of ours has",
                        RefusalReason.UNKNOWN_SYMBOL,
                        "turns[0].speaker",
                        r -> r.setTurns(List.of(new Turn(Speaker.UNKNOWN, 0, 3, null)))),
                wrong(
                        "a temperature that an engine rounds to 0",
                        RefusalReason.SAMPLING,
                        "sampling.temperature",
                        r -> r.setSampling(sampling(1e-50, 0, 1, 8))),
                wrong(
                        "more tokens than positions",
                        RefusalReason.LENGTHS,
                        "response_tokens",
                        r -> r.setPromptTokens(PackedInts.of(new int[18]))),
                wrong(
                        "a reward too few",
                        RefusalReason.LENGTHS,
                        "credit.token_level_rewards",
                        r -> r.setCredit(new Credit(null, PackedFloats.of(1f, 2f), null, null, null, null))),
                wrong(
                        "a turn's reward too many",
                        RefusalReason.LENGTHS,
                        "credit.turn_level_rewards",
                        r -> r.setCredit(new Credit(PackedFloats.of(1f, 2f), null, null, null, null, null))),
                wrong(
                        "an absurd token reward",
                        RefusalReason.REWARD,
                        "credit.token_level_rewards[1]",
                        r -> r.setCredit(new Credit(null, PackedFloats.of(1f, 101f, 0f), null, null, null, null))),
                wrong(
                        "no number for an advantage",
                        RefusalReason.REWARD,
                        "credit.turn_level_advantages[0]",
                        r -> r.setCredit(new Credit(null, null, PackedFloats.of(Float.NaN), null, null, null))),
                wrong(
                        "fewer values than tokens",
                        RefusalReason.LENGTHS,
                        "credit.token_level_values",
                        r -> r.setCredit(new Credit(null, null, null, null, PackedFloats.of(1f, 2f), null))),
                wrong(
                        "no number for a greedy answer's reward",
                        RefusalReason.REWARD,
                        "credit.greedy_reward",
                        r -> r.setCredit(new Credit(null, null, null, null, null, Double.NaN))),
                wrong(
                        "another policy",
                        RefusalReason.IDENTITY,
                        "policy_id",
                        r -> r.setSampler(new Sampler("other", null, null, null))),
                wrong(
                        "tokens to train of an agent that is not trained",
                        RefusalReason.MASK,
                        "sampler.agent.trained",
                        r -> r.setSampler(new Sampler(null, null, new Agent("critic", false), null))),
                wrong("no likeliest token", RefusalReason.LENGTHS, top + ".k", r -> r.setSamplingTrace(top(0, 0.25f))),
                wrong(
                        "probabilities that are more than one",
                        RefusalReason.LOG_PROBS,
                        top + "[0]",
                        r -> r.setSamplingTrace(top(2, 0.75f))),
                wrong(
                        "rows for two of three tokens",
                        RefusalReason.LENGTHS,
                        top + ".remainder_log_probs",
                        r -> r.setMask(PackedMask.of((byte) 1, (byte) 1, (byte) 0))
                                .setSamplingTrace(top(2, 0.25f))),
                wrong(
                        "nothing that was kept",
                        RefusalReason.LENGTHS,
                        kept + ".counts[1]",
                        r -> r.setSamplingTrace(kept(PackedInts.of(1, 0, 1), PackedInts.of(3, 5)))),
                wrong(
                        "a sampled token that was not kept",
                        RefusalReason.TOKENS,
                        kept + ".token_ids[1]",
                        r -> r.setSamplingTrace(kept(PackedInts.of(1, 1, 1), PackedInts.of(3, 9, 5)))),
                wrong(
                        "kept tokens without a row",
                        RefusalReason.LENGTHS,
                        kept + ".token_ids",
                        r -> r.setSamplingTrace(kept(PackedInts.of(1, 1, 1), PackedInts.of(3, 4, 5, 6)))),
                wrong(
                        "a branch of itself",
                        RefusalReason.IDENTITY,
                        "branch",
                        r -> r.setBranch(new Branch("g/0", 1, BranchReason.RETRY, null))),
                wrong(
                        "a branch of another group",
                        RefusalReason.IDENTITY,
                        "rollout_id",
                        r -> r.setBranch(new Branch("h/1", 1, BranchReason.RETRY, null))),
                wrong(
                        "more than a session's reward",
                        RefusalReason.REWARD,
                        "branch.reward_share",
                        r -> r.setBranch(new Branch("g/1", 1, BranchReason.RETRY, 1.5))),
                wrong(
                        "an image beyond the end",
                        RefusalReason.LENGTHS,
                        "images[0]",
                        r -> r.setImages(List.of(new ImageReference(blob("ab".repeat(32)), 4, 2)))),
                wrong(
                        "an image without a hash",
                        RefusalReason.BLOB,
                        "images[0].image.sha256",
                        r -> r.setImages(List.of(new ImageReference(blob("AB"), 0, 2)))));
    }

    /** Three rows of two tokens with this probability each and a remainder of a half. */
    private static SamplingTrace top(int k, float probability) {
        float each = (float) Math.log(probability);
        float rest = (float) Math.log(0.5);
        return new SamplingTrace(
                new TopLogProbs(
                        k,
                        PackedInts.of(3, 4, 4, 5, 5, 6),
                        PackedFloats.of(each, each, each, each, each, each),
                        PackedFloats.of(rest, rest, rest)),
                null,
                null,
                null);
    }

    private static SamplingTrace kept(ByteBuffer counts, ByteBuffer ids) {
        return new SamplingTrace(null, new KeptSupport(counts, ids), null, null);
    }

    private static BlobReference blob(String sha256) {
        return new BlobReference(sha256, "s3://bucket/blob", "image/png", 12L, null, List.of(480L, 640L));
    }

    /** Three policy tokens by version 3, reward 1, in a group of two. */
    private static Rollout.Builder rollout(String groupId, int sample) {
        return Rollout.newBuilder()
                .setRunId(RUN.runId())
                .setEpoch(RUN.epoch())
                .setRolloutId(groupId + "/" + sample)
                .setGroupId(groupId)
                .setOrdinal(7)
                .setSampleIndex(sample)
                .setGroupSize(2)
                .setGeneratorId("generator-0")
                .setEnvironment("inc")
                .setTokenizerHash("vocabulary")
                .setPromptTokens(PackedInts.of(1, 2))
                .setResponseTokens(PackedInts.of(3, 4, 5))
                .setMask(PackedMask.of((byte) 1, (byte) 1, (byte) 1))
                .setBehaviorLogProbs(PackedFloats.of(-0.5f, -1f, -1.5f))
                .setLogProbDistribution(LogProbDistribution.TEMPERED)
                .setSampling(sampling(1, 0, 1, 8))
                .setTurns(List.of(new Turn(Speaker.POLICY, 0, 3, null)))
                .setVersionSpans(List.of(new VersionSpan(3L, 0, 3)))
                .setReward(1.0)
                .setFinishReason(FinishReason.STOP)
                .setAdmittedVersion(3)
                .setStartedAtMs(1000)
                .setFinishedAtMs(1100);
    }

    @Test
    void shouldAcceptNotesThatHold() throws RefusedException {
        Rollout noted = rollout("g", 0)
                .setFinishReason(FinishReason.TOOL_CALLS)
                .setCredit(new Credit(
                        PackedFloats.of(1f),
                        PackedFloats.of(0f, 0f, 1f),
                        null,
                        PackedFloats.of(-1e9f, 0f, 1f),
                        PackedFloats.of(-1e9f, 0f, 1f),
                        0.5))
                .setSampler(new Sampler("policy", "adapter-3", new Agent("solver", true), null))
                .setSamplingTrace(new SamplingTrace(
                        top(2, 0.25f).getTopLogProbs(),
                        new KeptSupport(PackedInts.of(2, 1, 1), PackedInts.of(9, 3, 4, 5)),
                        null,
                        null))
                .setBranch(new Branch("g/1", 0, BranchReason.COMPACTION, 0.5))
                .setImages(List.of(new ImageReference(blob("ab".repeat(32)), 0, 2)))
                .build();

        assertThat(VALIDATOR.validate(noted, KEY)).isEqualTo(new SampleName("g", 0));
    }

    @ParameterizedTest(name = "{0}")
    @MethodSource({"claimsThatDoNotHold", "notesThatDoNotHold"})
    void shouldRefuseNamingReasonAndField(
            String what, RefusalReason reason, String field, UnaryOperator<Rollout.Builder> change) {
        Rollout rollout = change.apply(rollout("g", 0)).build();

        RefusedException refused = catchThrowableOfType(
                RefusedException.class,
                () -> VALIDATOR.validate(rollout, rollout.getGroupId().getBytes(StandardCharsets.UTF_8)));

        assertThat(refused).isNotNull();
        assertThat(refused.refusal().reason()).isEqualTo(reason);
        assertThat(refused.refusal().field()).isEqualTo(field);
        assertThat(refused.getMessage()).isNotBlank();
    }

    @Test
    void shouldAcceptWhatHolds() throws RefusedException {
        assertThat(VALIDATOR.validate(rollout("g", 1).build(), KEY)).isEqualTo(new SampleName("g", 1));
    }

    @Test
    void shouldNotLookAtValuesOfTokensThatAreNotTrained() throws RefusedException {
        Rollout rollout = rollout("g", 0)
                .setMask(PackedMask.of((byte) 1, (byte) 1, (byte) 0))
                .setTurns(List.of(new Turn(Speaker.POLICY, 0, 2, null), new Turn(Speaker.TOOL, 2, 3, null)))
                .setBehaviorLogProbs(PackedFloats.of(-1f, -1f, Float.NaN))
                .build();
        assertThat(VALIDATOR.validate(rollout, KEY).rolloutId()).isEqualTo("g/0");
    }

    @Test
    void shouldAcceptSpansOfSeveralVersionsInAnyOrderOfVersions() throws RefusedException {
        Rollout rollout = rollout("g", 0)
                .setVersionSpans(List.of(new VersionSpan(5L, 0, 1), new VersionSpan(2L, 1, 3)))
                .build();
        assertThat(VALIDATOR.validate(rollout, KEY).rolloutId()).isEqualTo("g/0");
    }

    @Test
    void shouldAcceptRawLogProbsAtTemperatureOne() throws RefusedException {
        Rollout rollout =
                rollout("g", 0).setLogProbDistribution(LogProbDistribution.RAW).build();
        assertThat(VALIDATOR.validate(rollout, KEY).rolloutId()).isEqualTo("g/0");
    }

    @Test
    void shouldForgiveTheRoundingOfACertainToken() throws RefusedException {
        Rollout rollout = rollout("g", 0)
                .setBehaviorLogProbs(PackedFloats.of(6e-8f, -1f, -0f))
                .build();
        assertThat(VALIDATOR.validate(rollout, KEY).rolloutId()).isEqualTo("g/0");
    }

    @Test
    void shouldRefuseAKeyThatIsNotTheGroupId() {
        Rollout rollout = rollout("g", 0).build();
        for (byte[] key : new byte[][] {null, {}, {1, 2}, "h".getBytes(StandardCharsets.UTF_8), new byte[1000]}) {
            assertThatThrownBy(() -> VALIDATOR.validate(rollout, key))
                    .isInstanceOfSatisfying(
                            RefusedException.class,
                            e -> assertThat(e.refusal().reason()).isEqualTo(RefusalReason.WRONG_KEY));
        }
    }

    @Test
    void shouldTakeAnyVocabularyWhereNoneIsConfigured() throws RefusedException {
        RolloutValidator lenient = new RolloutValidator(RUN, new RolloutLimits("", 0, 0, 4096, 1e6));
        Rollout rollout = rollout("g", 0)
                .setTokenizerHash("other")
                .setPromptTokens(PackedInts.of(150_000))
                .build();
        assertThat(lenient.validate(rollout, KEY).rolloutId()).isEqualTo("g/0");
    }
}
