package dev.millrace.corrections.diagnostics;

import java.util.OptionalDouble;

/** The correlation of two probabilities of each token, added up block by block; see {@link GapBlock} for what is added. */
final class PairMoments {
    private int count;
    private double minP = Double.POSITIVE_INFINITY;
    private double maxP = Double.NEGATIVE_INFINITY;
    private double minQ = Double.POSITIVE_INFINITY;
    private double maxQ = Double.NEGATIVE_INFINITY;
    private double sumP;
    private double sumQ;
    private double squaresP;
    private double squaresQ;
    private double products;

    void add(GapBlock block) {
        count += block.tokens;
        minP = Math.min(minP, block.minP);
        maxP = Math.max(maxP, block.maxP);
        minQ = Math.min(minQ, block.minQ);
        maxQ = Math.max(maxQ, block.maxQ);
        sumP += block.sumP;
        sumQ += block.sumQ;
        squaresP += block.squaresP;
        squaresQ += block.squaresQ;
        products += block.products;
    }

    /** Pearson's r in [-1, 1]; empty of fewer than two tokens, or if one of the two never varies. */
    OptionalDouble correlation() {
        double varianceP = squaresP - sumP * sumP / count;
        double varianceQ = squaresQ - sumQ * sumQ / count;
        // that nothing varies is asked of the numbers themselves: rounding leaves a little of a variance of 0
        if (count < 2 || minP == maxP || minQ == maxQ || !(varianceP > 0) || !(varianceQ > 0)) {
            return OptionalDouble.empty();
        }
        double r = (products - sumP * sumQ / count) / (Math.sqrt(varianceP) * Math.sqrt(varianceQ));
        return OptionalDouble.of(Math.max(-1, Math.min(1, r)));
    }
}
