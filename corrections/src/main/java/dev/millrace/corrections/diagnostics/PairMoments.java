package dev.millrace.corrections.diagnostics;

import java.util.OptionalDouble;

/** The correlation of two probabilities of each token, added up block by block; see {@link GapBlock} for what is added. */
final class PairMoments {
    private int count;
    private double startP;
    private double startQ;
    private boolean variesP;
    private boolean variesQ;
    private double sumP;
    private double sumQ;
    private double squaresP;
    private double squaresQ;
    private double products;

    void add(GapBlock block) {
        if (count == 0) {
            startP = block.startP;
            startQ = block.startQ;
        }
        count += block.tokens;
        variesP |= block.variesP || block.startP != startP;
        variesQ |= block.variesQ || block.startQ != startQ;
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
        if (count < 2 || !variesP || !variesQ || !(varianceP > 0) || !(varianceQ > 0)) {
            return OptionalDouble.empty();
        }
        double r = (products - sumP * sumQ / count) / (Math.sqrt(varianceP) * Math.sqrt(varianceQ));
        return OptionalDouble.of(Math.max(-1, Math.min(1, r)));
    }
}
