package dev.millrace.corrections.filter;

import dev.millrace.corrections.NonFiniteLogProbException;
import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.stage.MaskStage;
import dev.millrace.corrections.stage.StageBatch;
import dev.millrace.corrections.stage.StageInput;
import dev.millrace.corrections.stage.StageOutcome;
import dev.millrace.corrections.stage.StageSettings;
import java.util.Map;
import java.util.Set;

/**
 * Masks trained tokens that the behavior policy did not really choose, {@code log mu_t = 0 or log mu_t > forcedAbove}: those
 * with log-prob exactly 0 (prompt) and those with log-prob above a threshold, -0.01 by default (forced).
 *
 * <p>A prompt or tool token that slipped into the mask usually carries the placeholder 0. A token forced by a template,
 * a grammar or near-certainty carries no choice. Its ratio is 1 up to engine noise, so it does not bias a correction,
 * but it dilutes every mean over tokens (KL, ESS, second moments). Where the engines disagree about it, its ratio is
 * noise without information. Publish the fractions: a share of prompt tokens above 0 means that masks are built
 * wrongly.
 *
 * <p>A log-prob of exactly 0 can also be a sampled token whose probability rounds to 1; it is masked either way.
 *
 * <p>Unit: token. Source: our own. Immutable and thread-safe.
 *
 * @param forcedAbove log-prob above which a token is forced; finite, at most 0
 */
public record ForcedTokenMask(double forcedAbove) implements MaskStage {
    /** The usual threshold, a probability of 0.99. */
    public static final double DEFAULT_FORCED_ABOVE = -0.01;

    /** How far rounding may lift the log of a certain token's probability above 0. */
    private static final float ROUNDING = 1e-3f;

    public ForcedTokenMask {
        if (!(forcedAbove <= 0.0 && forcedAbove > Double.NEGATIVE_INFINITY)) {
            throw new IllegalArgumentException(
                    "forced_above is a log-prob and must be finite and at most 0: " + forcedAbove);
        }
    }

    public static ForcedTokenMask defaults() {
        return new ForcedTokenMask(DEFAULT_FORCED_ABOVE);
    }

    @Override
    public String name() {
        return "forced_token";
    }

    @Override
    public Set<StageInput> inputs() {
        return Set.of(StageInput.BEHAVIOR);
    }

    @Override
    public Set<StageInput> optionalInputs() {
        return Set.of(StageInput.FORCED_TOKENS);
    }

    /**
     * Also masks tokens that are recorded as forced, regardless of their log-prob. The fractions refer to the tokens
     * that were still trained before.
     */
    @Override
    public StageOutcome apply(StageBatch batch) {
        TokenBatch left = batch.left();
        byte[] keep = new byte[left.tokenCount()];
        Summary summary = compute(left, batch.facts().vector(StageInput.BEHAVIOR), keep);
        Map<String, Double> values = StageSettings.of(this);
        if (left.trainedTokens() > 0) {
            values.put("prompt_fraction", summary.promptFraction());
            values.put("forced_fraction", summary.forcedFraction());
        }
        if (batch.facts().has(StageInput.FORCED_TOKENS)) {
            double recorded = 0;
            boolean[] forced = batch.facts().forcedTokens();
            for (int t = 0; t < keep.length; t++) {
                recorded += left.isTrained(t) && forced[t] ? 1 : 0;
                keep[t] &= (byte) (forced[t] ? 0 : 1);
            }
            values.put("recorded_tokens", recorded);
        }
        return batch.mask(this, keep, values);
    }

    /**
     * Result among the trained tokens.
     *
     * @param trainedTokens trained tokens before
     * @param promptTokens of those, with log-prob exactly 0
     * @param forcedTokens of those, with another log-prob above the threshold
     */
    public record Summary(int trainedTokens, int promptTokens, int forcedTokens) {

        /** Prompt tokens over trained tokens; 0 without trained tokens. */
        public double promptFraction() {
            return trainedTokens == 0 ? 0.0 : (double) promptTokens / trainedTokens;
        }

        /** Forced tokens over trained tokens; 0 without trained tokens. */
        public double forcedFraction() {
            return trainedTokens == 0 ? 0.0 : (double) forcedTokens / trainedTokens;
        }
    }

    /**
     * Overwrites {@code mask}, one byte per packed token: 1 if trained and chosen, else 0.
     *
     * @param behavior log-probs of the policy that sampled
     * @throws IllegalArgumentException if an array has another length than the batch, or a trained token's log-prob is
     *     positive, naming sequence and token
     * @throws NonFiniteLogProbException naming sequence and token
     */
    public Summary compute(TokenBatch batch, float[] behavior, byte[] mask) {
        batch.requireFinite("behavior log-probs", behavior);
        batch.requireLength("mask", mask.length);
        int prompt = 0;
        int forced = 0;
        for (int s = 0; s < batch.sequenceCount(); s++) {
            for (int t = batch.start(s); t < batch.end(s); t++) {
                mask[t] = 0;
                if (batch.isTrained(t)) {
                    if (behavior[t] > ROUNDING) {
                        throw new IllegalArgumentException("a log-prob must not be positive: sequence=" + s + ", token="
                                + (t - batch.start(s)) + ", value=" + behavior[t]);
                    }
                    boolean isPrompt = behavior[t] == 0f;
                    boolean isForced = !isPrompt && behavior[t] > (float) forcedAbove; // -0.01f is above -0.01
                    prompt += isPrompt ? 1 : 0;
                    forced += isForced ? 1 : 0;
                    mask[t] = (byte) (isPrompt || isForced ? 0 : 1);
                }
            }
        }
        return new Summary(batch.trainedTokens(), prompt, forced);
    }
}
