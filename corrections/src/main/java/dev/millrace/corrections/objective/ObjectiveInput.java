package dev.millrace.corrections.objective;

import dev.millrace.corrections.TokenBatch;
import org.jspecify.annotations.Nullable;

/**
 * Input of an objective: the layout, and vectors with one element per packed token.
 *
 * <p>{@code current} is differentiated. {@code proximal} anchors the trust region: the learner's log-probs at the start
 * of the update, or in bypass mode the behavior policy's own. {@code behavior} is needed only by objectives that
 * correct for staleness themselves. Arrays are not copied; the caller owns them and must not change them during an
 * evaluation. The constructor validates every vector once: right length, finite at trained tokens, weights not
 * negative.
 */
public final class ObjectiveInput {
    private final TokenBatch batch;
    private final float[] current;
    private final float[] advantages;
    private final float @Nullable [] proximal;
    private final float @Nullable [] behavior;
    private final float @Nullable [] weights;

    private ObjectiveInput(
            TokenBatch batch,
            float[] current,
            float[] advantages,
            float @Nullable [] proximal,
            float @Nullable [] behavior,
            float @Nullable [] weights) {
        this.batch = batch;
        this.current = current;
        this.advantages = advantages;
        this.proximal = proximal;
        this.behavior = behavior;
        this.weights = weights;
    }

    /**
     * Input for a plain policy gradient.
     *
     * @param current log-probs of the policy being differentiated
     * @throws IllegalArgumentException if a vector has not one element per token
     * @throws dev.millrace.corrections.NonFiniteLogProbException if a value at a trained token is not finite
     */
    public static ObjectiveInput of(TokenBatch batch, float[] current, float[] advantages) {
        batch.requireFinite("current log-probs", current);
        batch.requireFinite("advantages", advantages);
        return new ObjectiveInput(batch, current, advantages, null, null, null);
    }

    public ObjectiveInput withProximal(float[] proximalLogProbs) {
        batch.requireFinite("proximal log-probs", proximalLogProbs);
        return new ObjectiveInput(batch, current, advantages, proximalLogProbs, behavior, weights);
    }

    public ObjectiveInput withBehavior(float[] behaviorLogProbs) {
        batch.requireFinite("behavior log-probs", behaviorLogProbs);
        return new ObjectiveInput(batch, current, advantages, proximal, behaviorLogProbs, weights);
    }

    /** The same input with importance weights, constants of the loss; none means 1 everywhere. */
    public ObjectiveInput withWeights(float[] importanceWeights) {
        batch.requireFinite("importance weights", importanceWeights);
        for (int t = 0; t < importanceWeights.length; t++) {
            if (batch.isTrained(t) && importanceWeights[t] < 0) {
                int s = batch.sequenceOf(t);
                throw new IllegalArgumentException("importance weights must not be negative: sequence=" + s + ", token="
                        + (t - batch.start(s)) + ", weight=" + importanceWeights[t]);
            }
        }
        return new ObjectiveInput(batch, current, advantages, proximal, behavior, importanceWeights);
    }

    /** The same vectors under another mask, for instance the one a rejection left. */
    public ObjectiveInput withMask(byte[] mask) {
        ObjectiveInput input = of(batch.withMask(mask), current, advantages);
        input = proximal == null ? input : input.withProximal(proximal);
        input = behavior == null ? input : input.withBehavior(behavior);
        return weights == null ? input : input.withWeights(weights);
    }

    public TokenBatch batch() {
        return batch;
    }

    /** Log-probs of the policy being differentiated, one per packed token; not to be written. */
    public float[] current() {
        return current;
    }

    /** One per packed token; not to be written. */
    public float[] advantages() {
        return advantages;
    }

    /**
     * Log-probs of the anchor, one per packed token, which {@code objective} cannot do without; not to be written.
     *
     * @throws IllegalArgumentException if they are not given
     */
    public float[] requireProximal(String objective) {
        if (proximal == null) {
            throw new IllegalArgumentException(objective + " compares the current policy with a proximal one: "
                    + "give proximal log-probs (in bypass mode, the behavior log-probs)");
        }
        return proximal;
    }

    /** Returns whether the anchor's log-probs are given. */
    public boolean hasProximal() {
        return proximal != null;
    }

    /**
     * Log-probs of the policy that sampled, one per packed token, which {@code objective} cannot do without; not to be written.
     *
     * @throws IllegalArgumentException if they are not given
     */
    public float[] requireBehavior(String objective) {
        if (behavior == null) {
            throw new IllegalArgumentException(
                    objective + " weighs tokens by how they were sampled: give behavior log-probs");
        }
        return behavior;
    }

    public boolean hasWeights() {
        return weights != null;
    }

    /** The importance weight of a packed token, 1 where none are given. */
    public double weight(int token) {
        return weights == null ? 1.0 : weights[token];
    }
}
