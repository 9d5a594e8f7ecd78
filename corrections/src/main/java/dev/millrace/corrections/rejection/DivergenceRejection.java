package dev.millrace.corrections.rejection;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.ratio.LogRatio;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * Takes tokens, or whole sequences, out of training whose divergence between target and sampler is outside a bound.
 *
 * <p>Several rules are a conjunction: a token stays trained if every rule keeps it. Every rule looks at the batch as it
 * came, not at what an earlier rule left, so their order does not matter. Rejecting does not rescale: whoever divides
 * the loss decides whether by all tokens or by the remaining ones.
 *
 * <p>Length trap: a sum over a sequence grows with its length, so {@code seq_sum_*} rejects long answers whatever their
 * quality. Prefer {@code seq_mean_*}.
 *
 * <p>Immutable and thread-safe; O(tokens) per rule, no allocation proportional to the tokens. The masks are those of
 * verl {@code compute_rollout_rejection_mask}, but for a mean that divides by the count and not by count + 1e-8.
 */
public final class DivergenceRejection {
    private final List<RejectionRule> rules;

    /** @param rules at least one */
    public DivergenceRejection(List<RejectionRule> rules) {
        if (rules.isEmpty()) {
            throw new IllegalArgumentException("rejection needs at least one rule");
        }
        this.rules = List.copyOf(rules);
    }

    /**
     * Overwrites {@code mask} with the mask of {@code batch} without the rejected tokens.
     *
     * @param mask one per packed token, the caller's
     * @throws dev.millrace.corrections.NonFiniteLogProbException naming sequence and token; {@code mask} is then partly
     *     written
     */
    public RejectionSummary apply(TokenBatch batch, LogRatio ratio, byte[] mask) {
        ratio.requireFits(batch);
        batch.requireLength("mask", mask.length);
        batch.copyMask(0, mask, 0, mask.length);
        int[] tokens = new int[rules.size()];
        int[] sequences = new int[rules.size()];
        int trainedSequences = 0;
        int left = 0;
        int touched = 0;
        int emptied = 0;
        for (int s = 0; s < batch.sequenceCount(); s++) {
            if (batch.trainedTokens(s) == 0) {
                continue;
            }
            for (int r = 0; r < tokens.length; r++) {
                int rejected = reject(batch, ratio, s, rules.get(r), mask);
                tokens[r] += rejected;
                sequences[r] += rejected > 0 ? 1 : 0;
            }
            int leftHere = countTrained(mask, batch.start(s), batch.end(s));
            trainedSequences++;
            left += leftHere;
            touched += leftHere < batch.trainedTokens(s) ? 1 : 0;
            emptied += leftHere == 0 ? 1 : 0;
        }
        List<RejectionSummary.RuleCount> counts = new ArrayList<>();
        for (int r = 0; r < tokens.length; r++) {
            counts.add(new RejectionSummary.RuleCount(rules.get(r), tokens[r], sequences[r]));
        }
        return new RejectionSummary(
                batch.trainedTokens(), batch.trainedTokens() - left, trainedSequences, touched, emptied, counts);
    }

    private static int reject(TokenBatch batch, LogRatio ratio, int s, RejectionRule rule, byte[] mask) {
        RejectionDivergence divergence = rule.mode().divergence();
        if (rule.mode().aggregation() == RejectionAggregation.TOKEN) {
            int rejected = 0;
            for (int t = batch.start(s); t < batch.end(s); t++) {
                if (batch.isTrained(t) && !rule.keeps(divergence.of(LogRatio.bounded(ratio.finiteAt(batch, s, t))))) {
                    mask[t] = 0;
                    rejected++;
                }
            }
            return rejected;
        }
        if (rule.keeps(statistic(batch, ratio, s, rule.mode()))) {
            return 0;
        }
        Arrays.fill(mask, batch.start(s), batch.end(s), (byte) 0);
        return batch.trainedTokens(s);
    }

    /** The statistic of a sequence with at least one trained token. */
    static double statistic(TokenBatch batch, LogRatio ratio, int s, RejectionMode mode) {
        double sum = 0;
        double max = Double.NEGATIVE_INFINITY;
        for (int t = batch.start(s); t < batch.end(s); t++) {
            if (batch.isTrained(t)) {
                double value = mode.divergence().of(LogRatio.bounded(ratio.finiteAt(batch, s, t)));
                sum += value;
                max = Math.max(max, value);
            }
        }
        return switch (mode.aggregation()) {
            case SUM -> sum;
            case MEAN -> sum / batch.trainedTokens(s);
            case MAX -> max;
            case TOKEN -> throw new IllegalArgumentException(mode.label() + " has no statistic per sequence");
        };
    }

    private static int countTrained(byte[] mask, int from, int to) {
        int count = 0;
        for (int t = from; t < to; t++) {
            count += mask[t];
        }
        return count;
    }
}
