package dev.millrace.learner.step;

import dev.millrace.corrections.objective.Aggregation;
import dev.millrace.corrections.objective.ClipRange;
import dev.millrace.corrections.objective.Objective;
import dev.millrace.corrections.objective.PolicyGradient;
import dev.millrace.corrections.objective.PpoClip;

/**
 * Which loss is minimised.
 *
 * @param kind         the formula, and the policy its trust region is around
 * @param clipLow      clipped objectives: the ratio moves freely down to {@code 1 - clip_low}
 * @param clipHigh     clipped objectives: and up to {@code 1 + clip_high}
 * @param dualClip     clipped objectives: largest ratio that counts against a token with negative advantage; above 1
 * @param aggregation  how the losses of tokens become one number
 * @param lengthTokens the constant length of {@code seq_mean_token_sum_norm}; unused by the others
 */
public record ObjectiveConfig(
        Kind kind, double clipLow, double clipHigh, double dualClip, AggregationKind aggregation, int lengthTokens) {

    /** The formula. In all of them the trajectory's importance weight multiplies a token's loss. */
    public enum Kind {
        /** {@code −w A log π}; no trust region. The weights should compare proximal with behavior. */
        REINFORCE,
        /** PPO's clipped surrogate around the old policy. The weights should compare old with behavior (engine mismatch). */
        PPO_CLIP,
        /** The clipped surrogate around the proximal policy. The weights should compare proximal with behavior. */
        DECOUPLED_PPO
    }

    /** What the sum over tokens is divided by. */
    public enum AggregationKind { TOKEN_MEAN, TOKEN_SUM, SEQ_MEAN_TOKEN_SUM, SEQ_MEAN_TOKEN_SUM_NORM, SEQ_MEAN_TOKEN_MEAN }

    public ObjectiveConfig {
        atLeastZero("clip_low", clipLow);
        atLeastZero("clip_high", clipHigh);
        if (!(dualClip > 1)) {
            throw new IllegalArgumentException("dual_clip must be above 1: " + dualClip);
        }
        if (aggregation == AggregationKind.SEQ_MEAN_TOKEN_SUM_NORM && lengthTokens < 1) {
            throw new IllegalArgumentException(
                "length_tokens must be at least 1 for aggregation=seq_mean_token_sum_norm: " + lengthTokens);
        }
    }

    public static ObjectiveConfig defaults() {
        return new ObjectiveConfig(Kind.REINFORCE, 0.2, 0.2, PpoClip.DEFAULT_DUAL_CLIP, AggregationKind.TOKEN_MEAN, 0);
    }

    /** True if the loss is not linear in the current log-probs, which then cost a forward pass of their own. */
    boolean needsCurrentLogProbs() {
        return kind != Kind.REINFORCE;
    }

    Objective objective() {
        return switch (kind) {
            case REINFORCE -> new PolicyGradient(perMinibatch());
            case PPO_CLIP, DECOUPLED_PPO -> new PpoClip(new ClipRange(clipLow, clipHigh), dualClip, perMinibatch());
        };
    }

    /** The denominators count one minibatch, since each is an optimiser step of its own. */
    Aggregation perMinibatch() {
        return switch (aggregation) {
            case TOKEN_MEAN -> new Aggregation.TokenMean();
            case TOKEN_SUM -> new Aggregation.TokenSum();
            case SEQ_MEAN_TOKEN_SUM -> new Aggregation.SequenceMeanTokenSum();
            case SEQ_MEAN_TOKEN_SUM_NORM -> new Aggregation.SequenceMeanTokenSumNorm(lengthTokens);
            case SEQ_MEAN_TOKEN_MEAN -> new Aggregation.SequenceMeanTokenMean();
        };
    }

    private static void atLeastZero(String key, double value) {
        if (!(value >= 0 && value < Double.POSITIVE_INFINITY)) {
            throw new IllegalArgumentException(key + " must be at least 0 and finite: " + value);
        }
    }
}
