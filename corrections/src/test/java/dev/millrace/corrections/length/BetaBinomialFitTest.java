package dev.millrace.corrections.length;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.corrections.length.BetaBinomialFit.LogGamma;
import java.util.Arrays;
import java.util.Random;
import org.junit.jupiter.api.Test;

class BetaBinomialFitTest {
    @Test
    void shouldKnowTheGammaFunction() {
        assertThat(LogGamma.value(0.5)).isCloseTo(0.5 * Math.log(Math.PI), within(1e-14));
        assertThat(LogGamma.value(1)).isCloseTo(0, within(1e-14));
        assertThat(LogGamma.value(6)).isCloseTo(Math.log(120), within(1e-13));
        assertThat(LogGamma.value(100)).isCloseTo(359.1342053695754, within(1e-12));
        assertThat(LogGamma.derivative(1)).isCloseTo(-0.5772156649015329, within(1e-13));
        assertThat(LogGamma.derivative(0.5)).isCloseTo(-0.5772156649015329 - 2 * Math.log(2), within(1e-13));
        assertThat(LogGamma.secondDerivative(1)).isCloseTo(Math.PI * Math.PI / 6, within(1e-13));
        assertThat(LogGamma.secondDerivative(0.5)).isCloseTo(Math.PI * Math.PI / 2, within(1e-12));
    }

    /** Beta(a, b) with whole or half parameters as sums of squared normals: Gamma(a) = half of chi-squared of 2a. */
    private static double beta(Random random, int twiceAlpha, int twiceBeta) {
        double x = 0;
        double y = 0;
        for (int i = 0; i < twiceAlpha; i++) {
            x += Math.pow(random.nextGaussian(), 2);
        }
        for (int i = 0; i < twiceBeta; i++) {
            y += Math.pow(random.nextGaussian(), 2);
        }
        return x / (x + y);
    }

    @Test
    void shouldRecoverTheDistributionThatMadeTheCounts() {
        Random random = new Random(1);
        int problems = 3000;
        long[] samples = new long[problems];
        long[] correct = new long[problems];
        for (int i = 0; i < problems; i++) {
            double rate = beta(random, 1, 6); // Beta(0.5, 3)
            samples[i] = 20 + random.nextInt(30);
            for (int j = 0; j < samples[i]; j++) {
                correct[i] += random.nextDouble() < rate ? 1 : 0;
            }
        }

        BetaBinomialFit fit = BetaBinomialFit.of(samples, correct);

        assertThat(fit.alpha()).isCloseTo(0.5, within(0.05));
        assertThat(fit.beta()).isCloseTo(3, within(0.3));
        assertThat(fit.concentrated()).isFalse();
        double truth = -Math.expm1(LogGamma.betaRatio(0.5, 3, 0, 10_000));
        assertThat(fit.passAtK(10_000)).isCloseTo(truth, within(0.01));
    }

    @Test
    void shouldStandAtAnOptimum() {
        long[] samples = {8, 8, 8, 8, 16, 4};
        long[] correct = {0, 1, 8, 3, 0, 4};
        BetaBinomialFit fit = BetaBinomialFit.of(samples, correct);

        assertThat(fit.logLikelihood()).isCloseTo(likelihood(samples, correct, fit.alpha(), fit.beta()), within(1e-9));
        for (double factor : new double[] {0.99, 1.01}) {
            assertThat(likelihood(samples, correct, fit.alpha() * factor, fit.beta()))
                    .isLessThan(fit.logLikelihood());
            assertThat(likelihood(samples, correct, fit.alpha(), fit.beta() * factor))
                    .isLessThan(fit.logLikelihood());
        }
    }

    private static double likelihood(long[] samples, long[] correct, double a, double b) {
        double sum = 0;
        for (int i = 0; i < samples.length; i++) {
            for (int j = 0; j < samples[i]; j++) { // one sample after the other, as from an urn
                sum += Math.log(j < correct[i] ? (a + j) / (a + b + j) : (b + j - correct[i]) / (a + b + j));
            }
        }
        return sum;
    }

    @Test
    void shouldPredictOneSampleAsTheMeanRate() {
        BetaBinomialFit fit = new BetaBinomialFit(1, 3, 0, false);

        assertThat(fit.passAtK(1)).isCloseTo(0.25, within(1e-12));
        assertThat(fit.passAtK(2)).isCloseTo(1 - 0.75 * 0.8, within(1e-12));
    }

    @Test
    void shouldReportThatOneRateExplainsEverything() {
        long[] samples = new long[50];
        long[] correct = new long[50];
        Arrays.fill(samples, 10);
        Arrays.fill(correct, 3);

        BetaBinomialFit fit = BetaBinomialFit.of(samples, correct);

        assertThat(fit.concentrated()).isTrue();
        assertThat(fit.passAtK(5)).isCloseTo(1 - Math.pow(0.7, 5), within(1e-3));
    }

    @Test
    void shouldRefuseCountsThatSayNothingAboutASpread() {
        assertThatThrownBy(() -> BetaBinomialFit.of(new long[] {4, 4}, new long[] {0, 0}))
                .hasMessageContaining("where nothing was solved");
        assertThatThrownBy(() -> BetaBinomialFit.of(new long[] {4, 4}, new long[] {4, 4}))
                .hasMessageContaining("where everything was solved");
        assertThatThrownBy(() -> BetaBinomialFit.of(new long[] {1, 1}, new long[] {0, 1}))
                .hasMessageContaining("2 or more samples");
        assertThatThrownBy(() -> BetaBinomialFit.of(new long[] {4}, new long[] {5}))
                .hasMessageContaining("correct=5");
        assertThatThrownBy(() -> new BetaBinomialFit(1, 1, 0, false).passAtK(0)).hasMessageContaining("k must be");
    }
}
