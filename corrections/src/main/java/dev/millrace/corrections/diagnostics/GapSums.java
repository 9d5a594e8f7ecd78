package dev.millrace.corrections.diagnostics;

import dev.millrace.corrections.diagnostics.PolicyGap.ProbabilityAgreement;
import dev.millrace.corrections.diagnostics.PolicyGap.WeightMoments;
import dev.millrace.corrections.ratio.LogRatio;
import java.util.OptionalDouble;

/** Adds up one {@link PolicyGap}, token by token, sequence by sequence. Confined to one call. */
final class GapSums {
    private final DiagnosticBounds bounds;

    private int tokens;
    private int rejected;
    private double logRatios;
    private double k3;
    private double ratios;
    private double ratioSquares;
    private double minRatio = Double.POSITIVE_INFINITY;
    private double maxRatio = Double.NEGATIVE_INFINITY;
    private int aboveCap;
    private int clippedHigh;
    private int clippedLow;
    private double halfDistances;
    private final PairMoments probabilities = new PairMoments();
    private final PairMoments differences = new PairMoments();
    private double maxDifference;

    private int sequences;
    private double targetPerplexities;
    private double samplerPerplexities;
    private double perplexityRatios;
    private double squaredSequenceRatios;
    private final SequenceWeights sequenceWeights = new SequenceWeights();

    private int tokensHere;
    private double targetHere;
    private double samplerHere;
    private double logRatioHere;

    GapSums(DiagnosticBounds bounds) {
        this.bounds = bounds;
    }

    /** What of a token costs: computed once, however many sums it goes into. Overwritten for each token. */
    static final class Token {
        private double target;
        private double sampler;
        private boolean kept;
        private double bounded;
        private double excess;
        private double ratio;
        private double p;
        private double q;

        Token set(double targetLogProb, double samplerLogProb, boolean isKept) {
            target = targetLogProb;
            sampler = samplerLogProb;
            kept = isKept;
            bounded = LogRatio.bounded(target - sampler);
            excess = Math.expm1(bounded);
            ratio = Math.exp(bounded);
            p = Math.exp(target);
            q = Math.exp(sampler);
            return this;
        }
    }

    void add(Token token) {
        double l = token.target - token.sampler;
        double excess = token.excess;
        double ratio = token.ratio;
        tokens++;
        rejected += token.kept ? 0 : 1;
        logRatios += l;
        k3 += excess - token.bounded;
        ratios += ratio;
        ratioSquares += ratio * ratio;
        minRatio = Math.min(minRatio, ratio);
        maxRatio = Math.max(maxRatio, ratio);
        aboveCap += ratio > bounds.cap() ? 1 : 0;
        clippedHigh += ratio > 1 + bounds.clipHigh() ? 1 : 0;
        clippedLow += ratio < 1 - bounds.clipLow() ? 1 : 0;
        halfDistances += 0.5 * Math.abs(excess);
        double difference = Math.abs(token.p - token.q);
        probabilities.add(token.p, token.q);
        differences.add(difference, 0.0);
        maxDifference = Math.max(maxDifference, difference);
        tokensHere++;
        targetHere += token.target;
        samplerHere += token.sampler;
        logRatioHere += l;
    }

    /** Closes a sequence; one that had no token in the set is not counted. */
    void endOfSequence() {
        if (tokensHere > 0) {
            sequences++;
            targetPerplexities += Math.exp(-targetHere / tokensHere);
            samplerPerplexities += Math.exp(-samplerHere / tokensHere);
            perplexityRatios += Math.exp(-logRatioHere / tokensHere);
            squaredSequenceRatios += Math.exp(2.0 * LogRatio.bounded(logRatioHere));
            sequenceWeights.add(logRatioHere);
        }
        tokensHere = 0;
        targetHere = 0;
        samplerHere = 0;
        logRatioHere = 0;
    }

    PolicyGap gap() {
        if (tokens == 0) {
            return new PolicyGap(0, 0, 0, 0, 0, 0, 0, 0, 0, new WeightMoments(0, 0, 0, 0, 0), 0, 0, 0, 0, 0,
                    new ProbabilityAgreement(0, 0, 0, 0, OptionalDouble.empty()));
        }
        double n = tokens;
        double mean = ratios / n;
        double meanSquare = ratioSquares / n;
        WeightMoments weights = new WeightMoments(mean, Math.sqrt(Math.max(0, meanSquare - mean * mean)), minRatio,
                maxRatio, Math.min(1.0, mean * mean / meanSquare));
        ProbabilityAgreement agreement = new ProbabilityAgreement(differences.meanOfFirst(), maxDifference,
                differences.deviationOfFirst(), halfDistances / n, probabilities.correlation());
        return new PolicyGap(tokens, sequences, -logRatios / n, k3 / n, meanSquare - 1.0,
                squaredSequenceRatios / sequences - 1.0, targetPerplexities / sequences,
                samplerPerplexities / sequences, perplexityRatios / sequences, weights,
                sequenceWeights.effectiveSampleSize(), aboveCap / n, clippedHigh / n, clippedLow / n, rejected / n,
                agreement);
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
}
