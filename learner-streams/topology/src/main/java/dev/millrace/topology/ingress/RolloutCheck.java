package dev.millrace.topology.ingress;

import dev.millrace.schemas.LogProbDistribution;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.SamplingParameters;
import dev.millrace.schemas.Speaker;
import dev.millrace.schemas.Turn;
import dev.millrace.schemas.refusal.RefusalReason;
import dev.millrace.schemas.refusal.RefusedException;
import dev.millrace.schemas.run.RunIdentity;
import java.nio.ByteBuffer;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Holds a rollout to everything it claims about itself.
 *
 * <p>It must be of this run and epoch and lie under its group id; its ids must agree; every vector must have one
 * element per response token; version spans and turns must be in order and cover the response; the mask may be 1
 * only where the policy spoke; log-probs at those tokens must be finite, at most 0 and comparable with a score;
 * sampling parameters and rewards must be possible. Values at tokens that are never trained on are not looked at.
 *
 * <p>Pure, thread-safe, O(tokens), allocates nothing that grows with them.
 */
public final class RolloutCheck {
    private final OwnershipCheck ownership;
    private final IngressConfig config;

    public RolloutCheck(RunIdentity run, IngressConfig config) {
        this.ownership = new OwnershipCheck(run);
        this.config = config;
    }

    /**
     * @param rollout decoded
     * @param key the record's key as it came, may be null
     * @return the rollout's name, taken apart
     * @throws RefusedException naming the first claim that does not hold
     */
    public SampleName check(Rollout rollout, byte @Nullable [] key) throws RefusedException {
        ownership.requireOurs(rollout.getRunId(), rollout.getEpoch());
        SampleName name = checkIdentity(rollout);
        OwnershipCheck.requireKey(key, rollout.getGroupId(), "group_id");
        checkTokenizer(rollout);
        int tokens = checkTokens(rollout);
        SpanCheck.requireVersionSpans(rollout.getVersionSpans(), tokens, "version_spans");
        SpanCheck.requireTurns(rollout.getTurns(), tokens);
        checkMask(rollout, tokens);
        checkSampling(rollout.getSampling(), tokens);
        checkLogProbs(rollout, tokens);
        checkReward(rollout);
        return name;
    }

    private SampleName checkIdentity(Rollout rollout) throws RefusedException {
        SampleName name = SampleName.of(rollout.getRolloutId(), rollout.getGroupId(), config.maxGroupSize());
        if (rollout.getGroupSize() < 1 || rollout.getGroupSize() > config.maxGroupSize()) {
            throw new RefusedException(
                    RefusalReason.IDENTITY,
                    "group_size",
                    "group_size must be in [1, " + config.maxGroupSize() + "]: " + rollout.getGroupSize());
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
                    "tokenizer_hash must say which vocabulary the token ids are of: it is empty");
        }
        if (!config.tokenizerHash().isEmpty() && !config.tokenizerHash().equals(hash)) {
            throw new RefusedException(
                    RefusalReason.WRONG_TOKENIZER,
                    "tokenizer_hash",
                    "the token ids are of vocabulary '" + hash + "', this run's is '" + config.tokenizerHash() + "'");
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
        VectorCheck.requireTokenIds(rollout.getPromptTokens(), config.vocabularySize(), "prompt_tokens");
        VectorCheck.requireTokenIds(rollout.getResponseTokens(), config.vocabularySize(), "response_tokens");
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
        if (!(sampling.getTemperature() > 0.0 && sampling.getTemperature() < Double.POSITIVE_INFINITY)) {
            throw sampling("temperature", "finite and greater than 0", sampling.getTemperature());
        }
        if (sampling.getTopK() < 0) {
            throw sampling("top_k", "at least 0", sampling.getTopK());
        }
        if (!(sampling.getTopP() > 0.0 && sampling.getTopP() <= 1.0)) {
            throw sampling("top_p", "in (0, 1]", sampling.getTopP());
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
    }

    private void checkReward(Rollout rollout) throws RefusedException {
        VectorCheck.requireReward(rollout.getReward(), config.maxReward());
        for (Map.Entry<String, Double> component : rollout.getRewardComponents().entrySet()) {
            if (!Double.isFinite(component.getValue())) {
                throw new RefusedException(
                        RefusalReason.REWARD,
                        "reward_components." + component.getKey(),
                        "a reward component must be finite: " + component.getValue());
            }
        }
    }
}
