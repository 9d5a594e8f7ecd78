package dev.millrace.schemas.rollout;

import dev.millrace.schemas.BlobReference;
import dev.millrace.schemas.Branch;
import dev.millrace.schemas.BranchReason;
import dev.millrace.schemas.FinishReason;
import dev.millrace.schemas.ImageReference;
import dev.millrace.schemas.LogProbDistribution;
import dev.millrace.schemas.RecordedRouting;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.Sampler;
import dev.millrace.schemas.SamplingParameters;
import dev.millrace.schemas.SamplingTrace;
import dev.millrace.schemas.Speaker;
import dev.millrace.schemas.Turn;
import dev.millrace.schemas.packed.PackedFloats;
import dev.millrace.schemas.packed.PackedMask;
import dev.millrace.schemas.run.RunIdentity;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * Checks a rollout for consistency.
 *
 * <p>It must be of this run and epoch and have its group id as key; its ids must agree; every vector must have one
 * element per response token; version spans and turns must be in order and cover the response; the mask may be 1 only
 * for tokens that the policy sampled; log-probs at those tokens must be possible and comparable with a score; sampling
 * parameters and rewards must be possible. Values at untrained tokens are not checked.
 *
 * Checks the shape of optional parts: credit, top log-probs, kept tokens, sampler, branch, blobs. Refuses unknown enum
 * symbols by name, so that the record can be redriven after an update.
 *
 * <p>Pure, thread-safe, O(tokens), constant allocation.
 */
public final class RolloutValidator {
    private final OwnershipCheck ownership;
    private final RolloutLimits limits;

    public RolloutValidator(RunIdentity run, RolloutLimits limits) {
        this.ownership = new OwnershipCheck(run);
        this.limits = limits;
    }

    /**
     * @param key the record's key as received, may be null
     * @return the parsed rollout id
     * @throws RefusedException naming the first violation
     */
    public SampleName validate(Rollout rollout, byte @Nullable [] key) throws RefusedException {
        ownership.requireOurs(rollout.getRunId(), rollout.getEpoch());
        SampleName name = checkIdentity(rollout);
        OwnershipCheck.requireKey(key, rollout.getGroupId(), "group_id");
        checkSymbols(rollout);
        checkTokenizer(rollout);
        int tokens = checkTokens(rollout);
        SpanCheck.requireVersionSpans(rollout.getVersionSpans(), tokens, "version_spans");
        SpanCheck.requireTurns(rollout.getTurns(), tokens);
        checkMask(rollout, tokens);
        checkSampling(rollout.getSampling(), tokens);
        checkLogProbs(rollout, tokens);
        checkReward(rollout);
        checkNotes(rollout, tokens);
        return name;
    }

    private SampleName checkIdentity(Rollout rollout) throws RefusedException {
        SampleName name = SampleName.of(rollout.getRolloutId(), rollout.getGroupId(), limits.maxGroupSize());
        if (rollout.getGroupSize() < 1 || rollout.getGroupSize() > limits.maxGroupSize()) {
            throw new RefusedException(
                    RefusalReason.IDENTITY,
                    "group_size",
                    "group_size must be in [1, " + limits.maxGroupSize() + "]: " + rollout.getGroupSize());
        }
        if (rollout.getSampleIndex() < 0 || rollout.getSampleIndex() >= rollout.getGroupSize()) {
            throw new RefusedException(
                    RefusalReason.IDENTITY,
                    "sample_index",
                    "sample_index must be in [0, group_size " + rollout.getGroupSize() + "): "
                            + rollout.getSampleIndex());
        }
        if (rollout.getSampleIndex() != name.sampleIndex()) {
            throw new RefusedException(
                    RefusalReason.IDENTITY,
                    "rollout_id",
                    "rollout_id must end in sample_index " + rollout.getSampleIndex() + ": '" + rollout.getRolloutId()
                            + "'");
        }
        if (rollout.getOrdinal() < 0) {
            throw new RefusedException(
                    RefusalReason.IDENTITY, "ordinal", "ordinal must be at least 0: " + rollout.getOrdinal());
        }
        return name;
    }

    private void checkTokenizer(Rollout rollout) throws RefusedException {
        String hash = rollout.getTokenizerHash();
        if (hash.isEmpty()) {
            throw new RefusedException(
                    RefusalReason.WRONG_TOKENIZER,
                    "tokenizer_hash",
                    "tokenizer_hash must name the vocabulary of the token ids: it is empty");
        }
        if (!limits.tokenizerHash().isEmpty() && !limits.tokenizerHash().equals(hash)) {
            throw new RefusedException(
                    RefusalReason.WRONG_TOKENIZER,
                    "tokenizer_hash",
                    "the token ids belong to vocabulary '" + hash + "', this run's is '" + limits.tokenizerHash()
                            + "'");
        }
    }

    private int checkTokens(Rollout rollout) throws RefusedException {
        if (VectorCheck.elements(rollout.getPromptTokens(), "prompt_tokens") == 0) {
            throw new RefusedException(
                    RefusalReason.LENGTHS,
                    "prompt_tokens",
                    "prompt_tokens must hold a token: the first response token is predicted from it");
        }
        int tokens = VectorCheck.elements(rollout.getResponseTokens(), "response_tokens");
        if (tokens == 0) {
            throw new RefusedException(RefusalReason.LENGTHS, "response_tokens", "response_tokens must hold a token");
        }
        long positions = (long) rollout.getPromptTokens().remaining() / Integer.BYTES + tokens;
        if (limits.maxPositions() > 0 && positions > limits.maxPositions()) {
            throw new RefusedException(
                    RefusalReason.LENGTHS,
                    "response_tokens",
                    "its " + positions + " tokens are more than the policy's " + limits.maxPositions() + " positions");
        }
        VectorCheck.requireTokenIds(rollout.getPromptTokens(), limits.vocabularySize(), "prompt_tokens");
        VectorCheck.requireTokenIds(rollout.getResponseTokens(), limits.vocabularySize(), "response_tokens");
        return tokens;
    }

    private static void checkMask(Rollout rollout, int tokens) throws RefusedException {
        ByteBuffer mask = rollout.getMask();
        VectorCheck.requireSame(mask.remaining(), tokens, "mask");
        VectorCheck.requireMask(mask);
        for (Turn turn : rollout.getTurns()) {
            if (turn.getSpeaker() != Speaker.POLICY) {
                for (int t = turn.getStart(); t < turn.getEnd(); t++) {
                    if (mask.get(mask.position() + t) != 0) {
                        throw new RefusedException(
                                RefusalReason.MASK,
                                "mask[" + t + "]",
                                "only tokens of the policy may be trained on: token " + t + " is of "
                                        + turn.getSpeaker());
                    }
                }
            }
        }
    }

    private static void checkSampling(SamplingParameters sampling, int tokens) throws RefusedException {
        VectorCheck.requireTemperature(sampling.getTemperature(), "sampling.temperature");
        if (sampling.getTopK() < 0) {
            throw sampling("top_k", "at least 0", sampling.getTopK());
        }
        if (!(sampling.getTopP() > 0.0 && sampling.getTopP() <= 1.0)) {
            throw sampling("top_p", "in (0, 1]", sampling.getTopP());
        }
        if (!(sampling.getMinP() >= 0.0 && sampling.getMinP() <= 1.0)) {
            throw sampling("min_p", "in [0, 1]", sampling.getMinP());
        }
        if (sampling.getTopLogProbs() < 0) {
            throw sampling("top_log_probs", "at least 0", sampling.getTopLogProbs());
        }
        if (sampling.getMaxTokens() < tokens) {
            throw sampling(
                    "max_tokens", "at least the " + tokens + " response tokens there are", sampling.getMaxTokens());
        }
    }

    private static RefusedException sampling(String field, String bound, Number value) {
        return new RefusedException(
                RefusalReason.SAMPLING, "sampling." + field, field + " must be " + bound + ": " + value);
    }

    private static void checkLogProbs(Rollout rollout, int tokens) throws RefusedException {
        VectorCheck.requireElements(rollout.getBehaviorLogProbs(), tokens, "behavior_log_probs");
        VectorCheck.requireLogProbs(rollout.getBehaviorLogProbs(), rollout.getMask(), "behavior_log_probs");
        if (rollout.getTemperedLogProbs() != null) {
            VectorCheck.requireElements(rollout.getTemperedLogProbs(), tokens, "tempered_log_probs");
            VectorCheck.requireLogProbs(rollout.getTemperedLogProbs(), rollout.getMask(), "tempered_log_probs");
        }
        if (rollout.getLogProbDistribution() == LogProbDistribution.RAW
                && rollout.getSampling().getTemperature() != 1.0) {
            throw new RefusedException(
                    RefusalReason.LOG_PROBS,
                    "log_prob_distribution",
                    "RAW log-probs cannot be compared with scores, which are at the rollout's temperature "
                            + rollout.getSampling().getTemperature()
                            + "; record them TEMPERED, or sample at temperature 1");
        }
        checkTruncation(rollout);
        if (rollout.getSampling().getRecordRouting()
                && PackedMask.count(rollout.getMask()) > 0
                && ComparedDistribution.routing(rollout) == null) {
            throw new RefusedException(
                    RefusalReason.SAMPLING,
                    "sampling_trace.routing",
                    "record_routing needs the experts of each token, and the rollout has none; record them,"
                            + " or run with algorithm.routing_replay=none or learner");
        }
    }

    /** Policies must be compared over the same tokens. */
    private static void checkTruncation(Rollout rollout) throws RefusedException {
        SamplingParameters sampling = rollout.getSampling();
        boolean truncatedLogProbs = rollout.getLogProbDistribution() == LogProbDistribution.TRUNCATED;
        if (!sampling.getKeepSamplingMask()) {
            if (truncatedLogProbs && rollout.getTemperedLogProbs() == null) {
                throw new RefusedException(
                        RefusalReason.LOG_PROBS,
                        "tempered_log_probs",
                        "TRUNCATED log-probs cannot be compared with scores, which are over the whole vocabulary, and"
                                + " there are no tempered_log_probs; record these too, or sample with"
                                + " keep_sampling_mask and record the kept tokens");
            }
            return;
        }
        if (!ComparedDistribution.isTruncated(sampling)) {
            throw new RefusedException(
                    RefusalReason.SAMPLING,
                    "sampling.keep_sampling_mask",
                    "keep_sampling_mask must be false with top_k=0, top_p=1.0 and min_p=0.0, which leave out no token: true");
        }
        if (!truncatedLogProbs) {
            throw new RefusedException(
                    RefusalReason.LOG_PROBS,
                    "log_prob_distribution",
                    "with keep_sampling_mask policies are compared over the kept tokens, so behavior_log_probs must be"
                            + " TRUNCATED: " + rollout.getLogProbDistribution());
        }
        if (PackedMask.count(rollout.getMask()) > 0
                && (rollout.getSamplingTrace() == null
                        || rollout.getSamplingTrace().getKeptTokens() == null)) {
            throw new RefusedException(
                    RefusalReason.SAMPLING,
                    "sampling_trace.kept_tokens",
                    "keep_sampling_mask needs the kept tokens, and the rollout has none; record them, or sample"
                            + " with keep_sampling_mask=false to compare over the whole vocabulary");
        }
    }

    private void checkReward(Rollout rollout) throws RefusedException {
        VectorCheck.requireReward(rollout.getReward(), limits.maxReward());
        for (Map.Entry<String, Double> component : rollout.getRewardComponents().entrySet()) {
            if (!Double.isFinite(component.getValue())) {
                throw new RefusedException(
                        RefusalReason.REWARD,
                        "reward_components." + component.getKey(),
                        "a reward component must be finite: " + component.getValue());
            }
        }
    }

    /** Checks optional parts: credit, top log-probs, kept tokens, sampler, branches, blobs. */
    private void checkNotes(Rollout rollout, int tokens) throws RefusedException {
        CreditCheck.require(rollout.getCredit(), rollout.getTurns().size(), tokens, limits.maxReward());
        if (rollout.getSampler() != null) {
            checkSampler(rollout.getSampler(), rollout.getMask());
        }
        if (rollout.getSamplingTrace() != null) {
            checkSamplingTrace(rollout);
        }
        if (rollout.getBranch() != null) {
            checkBranch(rollout, rollout.getBranch());
        }
        if (rollout.getImages() != null) {
            checkImages(rollout.getImages(), rollout.getPromptTokens().remaining() / Integer.BYTES + tokens);
        }
    }

    private void checkSampler(Sampler sampler, ByteBuffer mask) throws RefusedException {
        if (sampler.getPolicyId() != null) {
            ownership.requirePolicy(sampler.getPolicyId());
        }
        if (sampler.getAgent() != null && !sampler.getAgent().getTrained() && PackedMask.count(mask) > 0) {
            throw new RefusedException(
                    RefusalReason.MASK,
                    "sampler.agent.trained",
                    "the agent '" + sampler.getAgent().getName() + "' is not trained, and the mask has "
                            + PackedMask.count(mask) + " tokens to be trained on");
        }
    }

    private void checkSamplingTrace(Rollout rollout) throws RefusedException {
        SamplingTrace trace = rollout.getSamplingTrace();
        if (trace.getTopLogProbs() != null) {
            PositionRows.requireTopLogProbs(
                    trace.getTopLogProbs(),
                    PackedMask.count(rollout.getMask()),
                    limits.vocabularySize(),
                    "sampling_trace.top_log_probs");
        }
        if (trace.getKeptTokens() != null) {
            PositionRows.requireKept(
                    trace.getKeptTokens(),
                    rollout.getMask(),
                    rollout.getResponseTokens(),
                    limits.vocabularySize(),
                    "sampling_trace.kept_tokens");
        }
        if (trace.getRouting() != null) {
            int fed = (rollout.getPromptTokens().remaining()
                                    + rollout.getResponseTokens().remaining())
                            / Integer.BYTES
                    - 1;
            RoutingCheck.require(trace.getRouting(), fed, "sampling_trace.routing");
        }
        if (trace.getExpertRouting() != null) {
            BlobCheck.require(
                    trace.getExpertRouting().getRoutedExperts(), "sampling_trace.expert_routing.routed_experts");
            BlobCheck.require(
                    trace.getExpertRouting().getRouterWeights(), "sampling_trace.expert_routing.router_weights");
        }
    }

    private void checkBranch(Rollout rollout, Branch branch) throws RefusedException {
        requireKnown(branch.getReason() != BranchReason.UNKNOWN, "branch.reason");
        SampleName.of(branch.getParentRolloutId(), rollout.getGroupId(), limits.maxGroupSize());
        if (branch.getParentRolloutId().equals(rollout.getRolloutId()) || branch.getForkPosition() < 0) {
            throw new RefusedException(
                    RefusalReason.IDENTITY,
                    "branch",
                    "a branch continues another rollout of its group, at a position of at least 0: from '"
                            + branch.getParentRolloutId() + "' at " + branch.getForkPosition());
        }
        Double share = branch.getRewardShare();
        if (share != null && !(share >= 0 && share <= 1)) {
            throw new RefusedException(
                    RefusalReason.REWARD,
                    "branch.reward_share",
                    "a share of a session's reward is from 0 to 1: " + share);
        }
    }

    private static void checkImages(List<ImageReference> images, int positions) throws RefusedException {
        int from = 0;
        for (int i = 0; i < images.size(); i++) {
            ImageReference image = images.get(i);
            String field = "images[" + i + "]";
            BlobCheck.require(image.getImage(), field + ".image");
            long end = (long) image.getPosition() + image.getTokens();
            if (image.getPosition() < from || image.getTokens() < 1 || end > positions) {
                throw new RefusedException(
                        RefusalReason.LENGTHS,
                        field,
                        "an image stands behind those before it, from " + from + " on, for a token at least, by "
                                + positions + ": [" + image.getPosition() + ", " + end + ")");
            }
            from = (int) end;
        }
    }

    private static void checkSymbols(Rollout rollout) throws RefusedException {
        requireKnown(rollout.getFinishReason() != FinishReason.UNKNOWN, "finish_reason");
        requireKnown(rollout.getLogProbDistribution() != LogProbDistribution.UNKNOWN, "log_prob_distribution");
        for (int i = 0; i < rollout.getTurns().size(); i++) {
            requireKnown(rollout.getTurns().get(i).getSpeaker() != Speaker.UNKNOWN, "turns[" + i + "].speaker");
        }
    }

    private static void requireKnown(boolean isKnown, String field) throws RefusedException {
        if (!isKnown) {
            throw new RefusedException(
                    RefusalReason.UNKNOWN_SYMBOL,
                    field,
                    field + " has a value that this release does not know; update it, then redrive the record");
        }
    }

    /** Checks a blob reference, without reading the blob. */
    static final class BlobCheck {
        private static final Pattern SHA256 = Pattern.compile("[0-9a-f]{64}");

        private BlobCheck() {}

        static void require(BlobReference blob, String field) throws RefusedException {
            if (!SHA256.matcher(blob.getSha256()).matches()) {
                throw blob(field + ".sha256", "64 lower-case hex digits", blob.getSha256());
            }
            if (blob.getUri().isEmpty()) {
                throw blob(field + ".uri", "where the bytes are", "''");
            }
            if (blob.getBytes() < 0) {
                throw blob(field + ".bytes", "at least 0", blob.getBytes());
            }
            for (long extent : blob.getShape()) {
                if (extent < 0) {
                    throw blob(field + ".shape", "extents of at least 0", blob.getShape());
                }
            }
        }

        private static RefusedException blob(String field, String bound, Object value) {
            return new RefusedException(RefusalReason.BLOB, field, field + " must be " + bound + ": " + value);
        }
    }

    /** Checks that a recorded routing covers the fed tokens. The scorer checks the expert ids. */
    static final class RoutingCheck {
        private static final int NOT_NOTED = -1;

        private RoutingCheck() {}

        static void require(RecordedRouting routing, int fed, String field) throws RefusedException {
            long size = (long) fed * routing.getLayers() * routing.getExpertsPerToken();
            ByteBuffer experts = routing.getExperts();
            if (routing.getLayers() < 1
                    || routing.getExpertsPerToken() < 1
                    || experts.remaining() != size
                    || routing.getWeights().remaining() != size * Float.BYTES) {
                throw new RefusedException(
                        RefusalReason.LENGTHS,
                        field,
                        "a routing has an expert and a weight for each of " + fed + " fed tokens, "
                                + routing.getLayers() + " layers and " + routing.getExpertsPerToken()
                                + " experts of a token: " + experts.remaining() + " experts, "
                                + routing.getWeights().remaining() / Float.BYTES + " weights");
            }
            for (int i = 0; i < experts.remaining(); i++) {
                if (experts.get(experts.position() + i) < NOT_NOTED
                        || !Float.isFinite(PackedFloats.get(routing.getWeights(), i))) {
                    throw new RefusedException(
                            RefusalReason.SAMPLING,
                            field,
                            "an expert is " + NOT_NOTED + " or more and its weight finite: expert "
                                    + experts.get(experts.position() + i) + ", weight "
                                    + PackedFloats.get(routing.getWeights(), i) + " at place " + i);
                }
            }
        }
    }
}
