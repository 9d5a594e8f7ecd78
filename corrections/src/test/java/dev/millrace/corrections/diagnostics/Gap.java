package dev.millrace.corrections.diagnostics;

import dev.millrace.corrections.diagnostics.PolicyGap.ProbabilityAgreement;
import dev.millrace.corrections.diagnostics.PolicyGap.WeightMoments;
import java.util.OptionalDouble;

/** A gap to be made by hand: engines in working order, but for what is set. */
final class Gap {
    int tokens = 1000;
    double kl = 0.001;
    double k3 = 0.001;
    double chiSquare = 0.01;
    double sequenceChiSquare = 0.1;
    double perplexityRatio = 1.001;
    double meanWeight = 1;
    double sampleSize = 0.99;
    double sequenceSampleSize = 0.95;
    double meanDifference = 0.002;
    double maxDifference = 0.05;
    double correlation = 0.999;

    Gap kl(double value) {
        kl = value;
        return this;
    }

    Gap k3(double value) {
        k3 = value;
        return this;
    }

    Gap tokens(int value) {
        tokens = value;
        return this;
    }

    Gap chiSquare(double value, double sampleSizeThen) {
        chiSquare = value;
        sampleSize = sampleSizeThen;
        return this;
    }

    Gap sequences(double chiSquareThen, double sampleSizeThen) {
        sequenceChiSquare = chiSquareThen;
        sequenceSampleSize = sampleSizeThen;
        return this;
    }

    Gap perplexityRatio(double value) {
        perplexityRatio = value;
        return this;
    }

    Gap meanWeight(double value) {
        meanWeight = value;
        return this;
    }

    Gap probabilities(double correlationThen, double mean, double max) {
        correlation = correlationThen;
        meanDifference = mean;
        maxDifference = max;
        return this;
    }

    PolicyGap made() {
        return new PolicyGap(
                tokens,
                10,
                new PolicyGap.Divergence(kl, k3, chiSquare, sequenceChiSquare),
                perplexityRatio,
                new WeightMoments(meanWeight, 0.1, sampleSize, sequenceSampleSize),
                new ProbabilityAgreement(meanDifference, maxDifference, 0.01, OptionalDouble.of(correlation)));
    }
}
