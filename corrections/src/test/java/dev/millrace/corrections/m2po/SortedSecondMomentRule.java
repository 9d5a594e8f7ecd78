package dev.millrace.corrections.m2po;

import dev.millrace.corrections.TokenBatch;
import java.math.BigDecimal;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;

/** The literal M2PO rule: sort everything, sum suffixes exactly, cut at the first one below the threshold. */
final class SortedSecondMomentRule {
    private SortedSecondMomentRule() {}

    static byte[] mask(TokenBatch batch, float[] behavior, float[] proximal, double threshold) {
        List<Integer> candidates = new ArrayList<>();
        for (int t = 0; t < batch.tokenCount(); t++) {
            if (batch.isTrained(t)) {
                candidates.add(t);
            }
        }
        byte[] mask = batch.mask();
        for (int t : masked(candidates, behavior, proximal, threshold)) {
            mask[t] = 0;
        }
        return mask;
    }

    static List<Integer> masked(List<Integer> candidates, float[] behavior, float[] proximal, double threshold) {
        List<Integer> sorted = new ArrayList<>(candidates);
        sorted.sort(Comparator.comparingDouble((Integer t) -> -squared(behavior, proximal, t))
                .thenComparing(t -> t));
        BigDecimal suffix = BigDecimal.ZERO;
        for (int t : sorted) {
            suffix = suffix.add(new BigDecimal(squared(behavior, proximal, t)));
        }
        for (int cut = 0; cut < sorted.size(); cut++) {
            BigDecimal bound = new BigDecimal(threshold).multiply(BigDecimal.valueOf(sorted.size() - cut));
            if (suffix.compareTo(bound) < 0) {
                return sorted.subList(0, cut);
            }
            suffix = suffix.subtract(new BigDecimal(squared(behavior, proximal, sorted.get(cut))));
        }
        return sorted.isEmpty() ? sorted : sorted.subList(0, sorted.size() - 1);
    }

    private static double squared(float[] behavior, float[] proximal, int t) {
        double logRatio = (double) proximal[t] - behavior[t];
        return logRatio * logRatio;
    }
}
