package dev.millrace.corrections.stage;

import dev.millrace.corrections.NonFiniteLogProbException;
import dev.millrace.corrections.TokenBatch;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/**
 * A batch during its stages: facts and decisions so far. A stage acts by calling one of the methods that return its outcome.
 *
 * <p>Used by one thread.
 */
public final class StageBatch {
    /** Stage name of a sequence that arrived without trained tokens. */
    public static final String OWN_MASK = "rollout";

    private final StageFacts facts;
    private final @Nullable String[] maskedBy;
    private final List<StageOutcome> outcomes = new ArrayList<>();
    private TokenBatch left;
    private double[] rewards;
    private double[] advantages;
    private float @Nullable [] tokenAdvantages;
    private float @Nullable [] returns;
    private float @Nullable [] weights;
    private OptionalDouble essRatio = OptionalDouble.empty();
    private OptionalDouble essRatioTruncated = OptionalDouble.empty();
    private OptionalDouble secondMoment = OptionalDouble.empty();
    private double stepScale = 1;

    private StageBatch(StageFacts facts) {
        this.facts = facts;
        this.left = facts.tokens();
        this.rewards = facts.rewards().clone();
        this.advantages = new double[rewards.length];
        this.maskedBy = new String[rewards.length];
        note(OWN_MASK);
    }

    /**
     * Runs the stages over a batch in their order.
     *
     * @throws AbsentInputException if the batch lacks an input of a stage
     * @throws NonFiniteLogProbException naming vector, sequence and token
     * @throws StageFailedException if a stage throws anything else
     */
    public static Decision decide(StageFacts facts, List<Stage> stages) {
        StageBatch batch = new StageBatch(facts);
        for (Stage stage : stages) {
            try {
                batch.outcomes.add(stage.apply(batch));
            } catch (AbsentInputException | NonFiniteLogProbException e) {
                throw e;
            } catch (RuntimeException e) {
                throw new StageFailedException(stage.name(), e);
            }
        }
        return batch.decision();
    }

    private Decision decision() {
        return new Decision(
                left,
                rewards,
                advantages,
                Optional.ofNullable(tokenAdvantages),
                Optional.ofNullable(returns),
                weights == null ? ones() : weights,
                maskedBy.clone(),
                List.copyOf(outcomes),
                essRatio,
                essRatioTruncated,
                secondMoment,
                stepScale);
    }

    private float[] ones() {
        float[] ones = new float[facts.tokens().tokenCount()];
        for (int t = 0; t < ones.length; t++) {
            ones[t] = facts.tokens().trained(t);
        }
        return ones;
    }

    public StageFacts facts() {
        return facts;
    }

    /** The layout under the mask so far. */
    public TokenBatch left() {
        return left;
    }

    /** One reward per sequence, after earlier stages; do not write. */
    public double[] rewards() {
        return rewards;
    }

    /** One advantage per sequence, 0 before an estimator; do not write. */
    public double[] advantages() {
        return advantages;
    }

    /** Copy of the advantages per packed token, 0 at context; the sequence's for all its tokens if there is one. */
    public float[] tokenAdvantages() {
        if (tokenAdvantages != null) {
            return tokenAdvantages.clone();
        }
        TokenBatch own = facts.tokens();
        float[] spread = new float[own.tokenCount()];
        for (int s = 0; s < own.sequenceCount(); s++) {
            for (int t = own.start(s); t < own.end(s); t++) {
                spread[t] = own.isTrained(t) ? (float) advantages[s] : 0f;
            }
        }
        return spread;
    }

    /** Per sequence, the largest absolute advantage of its tokens. */
    public double[] largestAdvantages() {
        double[] largest = new double[advantages.length];
        TokenBatch own = facts.tokens();
        for (int s = 0; s < largest.length; s++) {
            largest[s] = tokenAdvantages == null ? Math.abs(advantages[s]) : 0;
            for (int t = own.start(s); tokenAdvantages != null && t < own.end(s); t++) {
                largest[s] = Math.max(largest[s], Math.abs(tokenAdvantages[t]));
            }
        }
        return largest;
    }

    /** One weight per packed token, 1 at trained tokens before a weight stage; do not write. */
    public float[] weights() {
        return weights == null ? ones() : weights;
    }

    /** Replaces the rewards, one per sequence; sequences with another reward count as acted on. */
    public StageOutcome reward(Stage by, double[] shaped, Map<String, Double> values) {
        left.requireFinitePerSequence("rewards", shaped);
        double[] before = rewards;
        rewards = shaped.clone();
        return acted(by, s -> before[s] == rewards[s] ? 0 : left.trainedTokens(s), values);
    }

    /** Sets one advantage per sequence; sequences with a nonzero one count as acted on. */
    public StageOutcome advantage(Stage by, double[] perSequence, Map<String, Double> values) {
        left.requireFinitePerSequence("advantages", perSequence);
        advantages = perSequence.clone();
        tokenAdvantages = null;
        return acted(by, s -> advantages[s] == 0 ? 0 : left.trainedTokens(s), values);
    }

    /** Sets one advantage per packed token; ignored at untrained tokens. */
    public StageOutcome tokenAdvantage(Stage by, float[] perToken, Map<String, Double> values) {
        TokenBatch own = facts.tokens();
        own.requireFinite("advantages", perToken);
        float[] tokens = perToken.clone();
        for (int s = 0; s < own.sequenceCount(); s++) {
            double sum = 0;
            for (int t = own.start(s); t < own.end(s); t++) {
                tokens[t] = own.isTrained(t) ? tokens[t] : 0f;
                sum += tokens[t];
            }
            advantages[s] = own.trainedTokens(s) == 0 ? 0 : sum / own.trainedTokens(s);
        }
        tokenAdvantages = tokens;
        return acted(
                by,
                s -> {
                    int moved = 0;
                    for (int t = left.start(s); t < left.end(s); t++) {
                        moved += left.isTrained(t) && tokens[t] != 0 ? 1 : 0;
                    }
                    return moved;
                },
                values);
    }

    /** Sets the targets of the value function, one per packed token; ignored at untrained tokens. */
    public void returns(float[] perToken) {
        facts.tokens().requireFinite("returns", perToken);
        returns = perToken.clone();
    }

    /**
     * Masks tokens, which count as acted on.
     *
     * @param keep one per packed token: 1 to keep the token unchanged, 0 to mask it
     */
    public StageOutcome mask(Stage by, byte[] keep, Map<String, Double> values) {
        TokenBatch before = left;
        before.requireLength("mask", keep.length);
        if (masksAny(keep)) {
            byte[] mask = keep.clone();
            for (int t = 0; t < mask.length; t++) {
                mask[t] &= (byte) before.trained(t);
            }
            left = before.withMask(mask);
            note(by.name());
        }
        return outcome(by, before, s -> (long) before.trainedTokens(s) - left.trainedTokens(s), values);
    }

    private boolean masksAny(byte[] keep) {
        int masked = 0;
        for (int t = 0; t < keep.length; t++) {
            masked |= left.trained(t) & ~keep[t];
        }
        return masked != 0;
    }

    /**
     * Sets importance weights, one per packed token, not negative.
     *
     * @param actedTokens number of trained tokens whose weight was truncated, zeroed or bounded
     * @param actedSequences number of sequences with such a token
     */
    public StageOutcome weigh(
            Stage by, float[] perToken, long actedTokens, long actedSequences, Map<String, Double> values) {
        left.requireFinite("importance weights", perToken);
        weights = perToken.clone();
        return new StageOutcome(
                by.name(),
                by.unit(),
                left.trainedTokens(),
                actedTokens,
                trainedSequences(left),
                actedSequences,
                new TreeMap<>(values));
    }

    /** Multiplies the importance weights, one factor per packed token; trained tokens with a factor other than 1 count as acted on. */
    public StageOutcome scaleWeights(Stage by, double[] factors, Map<String, Double> values) {
        left.requireFinite("factors of importance weights", factors);
        float[] scaled = weights().clone();
        for (int t = 0; t < scaled.length; t++) {
            scaled[t] *= left.isTrained(t) ? (float) factors[t] : 1f;
        }
        weights = scaled;
        return acted(
                by,
                s -> {
                    int moved = 0;
                    for (int t = left.start(s); t < left.end(s); t++) {
                        moved += left.isTrained(t) && factors[t] != 1 ? 1 : 0;
                    }
                    return moved;
                },
                values);
    }

    /** Records the effective sample size and multiplies the step scale; acts unless the factor is 1. */
    public StageOutcome sampleSize(
            Stage by, OptionalDouble raw, OptionalDouble truncated, double scale, Map<String, Double> values) {
        essRatio = raw;
        essRatioTruncated = truncated;
        stepScale *= scale;
        return acted(by, s -> scale == 1 ? 0 : left.trainedTokens(s), values);
    }

    /** Records the second moment of the log ratio over the trained tokens. */
    public StageOutcome secondMoment(Stage by, OptionalDouble mean, Map<String, Double> values) {
        secondMoment = mean;
        return observed(by, values);
    }

    /** Reports without acting. */
    public StageOutcome observed(Stage by, Map<String, Double> values) {
        return acted(by, s -> 0, values);
    }

    private interface ActedTokens {
        long of(int sequence);
    }

    private StageOutcome acted(Stage by, ActedTokens acted, Map<String, Double> values) {
        return outcome(by, left, acted, values);
    }

    private static StageOutcome outcome(Stage by, TokenBatch seen, ActedTokens acted, Map<String, Double> values) {
        long tokens = 0;
        long sequences = 0;
        for (int s = 0; s < seen.sequenceCount(); s++) {
            long ofSequence = acted.of(s);
            tokens += ofSequence;
            sequences += ofSequence > 0 ? 1 : 0;
        }
        return new StageOutcome(
                by.name(),
                by.unit(),
                seen.trainedTokens(),
                tokens,
                trainedSequences(seen),
                sequences,
                new TreeMap<>(values));
    }

    private static long trainedSequences(TokenBatch batch) {
        long trained = 0;
        for (int s = 0; s < batch.sequenceCount(); s++) {
            trained += batch.trainedTokens(s) > 0 ? 1 : 0;
        }
        return trained;
    }

    private void note(String stage) {
        for (int s = 0; s < maskedBy.length; s++) {
            if (maskedBy[s] == null && left.trainedTokens(s) == 0) {
                maskedBy[s] = stage;
            }
        }
    }

    @Override
    public String toString() {
        return "after " + outcomes.size() + " stages: " + left.trainedTokens() + " of "
                + facts.tokens().trainedTokens() + " tokens left, rewards " + Arrays.toString(rewards);
    }
}
