package dev.millrace.corrections.length;

import dev.millrace.corrections.TokenBatch;
import java.util.Arrays;

/**
 * A price on what exceeds the group's anchor, the shortest correct answer: {@code price · max(0, length / anchor − 1 −
 * tolerance)}, at most {@code largest}, for correct answers only.
 *
 * <p>Unit: sequence, against its group. A solution shows how long the problem needs to be; being within the tolerance
 * of it is free. Wrong answers pay nothing, so being wrong briefly never pays, and a group without a correct answer has
 * no anchor and no price.
 *
 * <p>Source: after the lazy length penalty of Yuan et al. 2025 (arXiv 2505.12284), which also waits until accuracy has
 * stopped rising; that is the caller's to decide. The relative form and the bound are this reading's.
 *
 * @param price price of twice the anchor's length; finite, not negative
 * @param tolerance free excess, as a share of the anchor; finite, not negative
 * @param largest largest price
 * @param correctAbove reward above which a sequence is correct; finite
 */
public record AnchorLengthPenalty(double price, double tolerance, double largest, double correctAbove)
        implements LengthPenalty {
    public AnchorLengthPenalty {
        LengthPenaltyInput.requirePrice("price", price);
        LengthPenaltyInput.requirePrice("tolerance", tolerance);
        LengthPenaltyInput.requirePrice("largest", largest);
        LengthPenaltyInput.requireFinite("correct_above", correctAbove);
    }

    /** Correct is what is rewarded with more than a half. */
    public AnchorLengthPenalty(double price, double tolerance, double largest) {
        this(price, tolerance, largest, 0.5);
    }

    /** A tenth of a reward for twice the length, a fifth of the length for nothing, and never more than half a reward. */
    public static AnchorLengthPenalty defaults() {
        return new AnchorLengthPenalty(0.1, 0.2, 0.5);
    }

    @Override
    public String name() {
        return "anchor_length";
    }

    @Override
    public double[] perSequence(TokenBatch batch, boolean[] correct) {
        LengthPenaltyInput.requireVerdicts(batch, correct);
        int[] anchors = new int[batch.groupCount()];
        Arrays.fill(anchors, Integer.MAX_VALUE);
        for (int s = 0; s < correct.length; s++) {
            if (correct[s] && batch.trainedTokens(s) > 0) {
                anchors[batch.group(s)] = Math.min(anchors[batch.group(s)], batch.trainedTokens(s));
            }
        }
        double[] penalties = new double[correct.length];
        for (int s = 0; s < penalties.length; s++) {
            if (correct[s] && batch.trainedTokens(s) > 0) {
                double excess = (double) batch.trainedTokens(s) / anchors[batch.group(s)] - 1 - tolerance;
                penalties[s] = Math.min(largest, price * Math.max(0, excess));
            }
        }
        return penalties;
    }
}
