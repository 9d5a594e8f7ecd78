package dev.millrace.corrections.diagnostics;

import dev.millrace.corrections.diagnostics.PolicyGap.Divergence;
import dev.millrace.corrections.diagnostics.PolicyGap.ProbabilityAgreement;
import dev.millrace.corrections.diagnostics.PolicyGap.WeightMoments;
import dev.millrace.corrections.ratio.LogRatio;
import java.util.OptionalDouble;

/** Adds up one {@link PolicyGap}, block by block, sequence by sequence. Confined to one call. */
final class GapSums {
    private int tokens;
    private double logRatios;
    private double k3;
    private double ratios;
    private double ratioSquares;
    private final PairMoments probabilities = new PairMoments();
    private double firstDifference;
    private double differences;
    private double differenceSquares;
    private double maxDifference;
    private boolean withProbabilities = true;

    private int sequences;
    private double perplexityRatios;
    private double squaredSequenceRatios;
    private final SequenceWeights sequenceWeights = new SequenceWeights();

    private int tokensHere;
    private double logRatioHere;

    void add(GapBlock block) {
        tokens += block.tokens;
        logRatios += block.logRatios;
        k3 += block.k3;
        ratios += block.ratios;
        ratioSquares += block.ratioSquares;
        probabilities.add(block);
        withProbabilities = block.withProbabilities();
        firstDifference = block.firstDifference;
        differences += block.differences;
        differenceSquares += block.differenceSquares;
        maxDifference = Math.max(maxDifference, block.maxDifference);
        tokensHere += block.tokens;
        logRatioHere += block.logRatios;
    }

    /** Closes a sequence; one that had no token in the set is not counted. */
    void endOfSequence() {
        if (tokensHere > 0) {
            sequences++;
            perplexityRatios += Math.exp(-logRatioHere / tokensHere);
            squaredSequenceRatios += Math.exp(2.0 * LogRatio.bounded(logRatioHere));
            sequenceWeights.add(logRatioHere);
        }
        tokensHere = 0;
        logRatioHere = 0;
    }

    PolicyGap gap() {
        if (tokens == 0) {
            return PolicyGap.NONE;
        }
        double n = tokens;
        double mean = ratios / n;
        double meanSquare = ratioSquares / n;
        WeightMoments weights = new WeightMoments(
                mean,
                Math.sqrt(Math.max(0, meanSquare - mean * mean)),
                Math.min(1.0, mean * mean / meanSquare),
                sequenceWeights.effectiveSampleSize());
        ProbabilityAgreement agreement = new ProbabilityAgreement(
                compared(firstDifference + differences / n),
                compared(maxDifference),
                compared(differenceDeviation()),
                probabilities.correlation());
        return new PolicyGap(
                tokens,
                sequences,
                new Divergence(-logRatios / n, k3 / n, meanSquare - 1.0, squaredSequenceRatios / sequences - 1.0),
                perplexityRatios / sequences,
                weights,
                agreement);
    }

    /** Returns NaN for figures that were not computed. */
    private double compared(double value) {
        return withProbabilities ? value : Double.NaN;
    }

    private double differenceDeviation() {
        return tokens < 2
                ? 0
                : Math.sqrt(Math.max(0, (differenceSquares - differences * differences / tokens) / (tokens - 1)));
    }

    /**
     * {@code (sum w)^2 / (n sum w^2)} of weights given by their logs, relative to the largest so far: no weight of a
     * long sequence overflows, none needs a bound.
     */
    private static final class SequenceWeights {
        private int count;
        private double largest = Double.NEGATIVE_INFINITY;
        private double sum;
        private double squares;

        void add(double logWeight) {
            if (logWeight > largest) {
                double scale = Math.exp(largest - logWeight);
                sum *= scale;
                squares *= scale * scale;
                largest = logWeight;
            }
            double relative = Math.exp(logWeight - largest);
            sum += relative;
            squares += relative * relative;
            count++;
        }

        double effectiveSampleSize() {
            return Math.min(1.0, sum * sum / (count * squares));
        }
    }

    /** The correlation of two probabilities of each token, added up block by block; see {@link GapBlock} for what is added. */
    static final class PairMoments {
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
            // compares the numbers themselves: rounding can leave a small variance for constants
            if (count < 2 || !variesP || !variesQ || !(varianceP > 0) || !(varianceQ > 0)) {
                return OptionalDouble.empty();
            }
            double r = (products - sumP * sumQ / count) / (Math.sqrt(varianceP) * Math.sqrt(varianceQ));
            return OptionalDouble.of(Math.max(-1, Math.min(1, r)));
        }
    }
}
