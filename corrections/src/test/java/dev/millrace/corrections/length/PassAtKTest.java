package dev.millrace.corrections.length;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.math.MathContext;
import org.junit.jupiter.api.Test;

class PassAtKTest {
    private static BigInteger choose(int n, int k) {
        BigInteger result = BigInteger.ONE;
        for (int i = 0; i < k; i++) {
            result = result.multiply(BigInteger.valueOf(n - i)).divide(BigInteger.valueOf(i + 1));
        }
        return result;
    }

    @Test
    void shouldAgreeWithExactBinomials() {
        for (int n = 1; n <= 40; n++) {
            for (int c = 0; c <= n; c++) {
                for (int k = 1; k <= n; k++) {
                    double exact = n - c < k
                            ? 1.0
                            : 1
                                    - new BigDecimal(choose(n - c, k))
                                            .divide(new BigDecimal(choose(n, k)), MathContext.DECIMAL128)
                                            .doubleValue();

                    assertThat(PassAtK.unbiased(n, c, k))
                            .as("n=%d c=%d k=%d", n, c, k)
                            .isCloseTo(exact, within(1e-14));
                }
            }
        }
        assertThat(PassAtK.unbiased(10, 3, 4)).isCloseTo(5 / 6.0, within(1e-15));
    }

    @Test
    void shouldKeepItsDigitsForBillionsOfSamples() {
        assertThat(PassAtK.unbiased(1_000_000_000L, 1, 1_000_000)).isCloseTo(1e-3, within(1e-15));
        assertThat(PassAtK.unbiased(1_000_000_000_000L, 1, 1)).isCloseTo(1e-12, within(1e-26));
        double both = 1e6 / 1e9 + 1e6 / (1e9 - 1) - 1e6 / 1e9 * 1e6 / (1e9 - 1);
        assertThat(PassAtK.unbiased(1_000_000_000L, 2, 1_000_000)).isCloseTo(both, within(1e-15));
    }

    @Test
    void shouldAgreeWithTheProductWhereStirlingTakesOver() {
        long n = 5_000_000;
        long c = 120_000;
        long k = 150_000;
        double product = 0;
        for (long i = 0; i < c; i++) {
            product += Math.log((double) (n - k - i) / (n - i));
        }

        assertThat(PassAtK.logFailure(n, c, k)).isCloseTo(product, within(1e-7 * Math.abs(product)));
        assertThat(PassAtK.logFailure(250_010, 125_000, 125_000))
                .isCloseTo(
                        logFactorial(125_010) - logFactorial(10) + logFactorial(125_010) - logFactorial(250_010),
                        within(1e-6));
    }

    private static double logFactorial(int x) {
        double sum = 0;
        for (int i = 2; i <= x; i++) {
            sum += Math.log(i);
        }
        return sum;
    }

    @Test
    void shouldRefuseWhatIsNotASample() {
        assertThatThrownBy(() -> PassAtK.unbiased(10, 3, 11)).hasMessageContaining("for larger k extrapolate");
        assertThatThrownBy(() -> PassAtK.unbiased(10, 3, 0)).hasMessageContaining("k=0");
        assertThatThrownBy(() -> PassAtK.unbiased(10, 11, 1)).hasMessageContaining("correct=11, samples=10");
        assertThatThrownBy(() -> PassAtK.unbiased(0, 0, 1)).hasMessageContaining("samples=0");
    }

    @Test
    void shouldExtrapolateTheObservedRate() {
        assertThat(BernoulliExtrapolation.passAtK(4, 1, 3)).isCloseTo(1 - Math.pow(0.75, 3), within(1e-15));
        assertThat(BernoulliExtrapolation.passAtK(1_000_000_000L, 1, 1)).isCloseTo(1e-9, within(1e-23));
        assertThat(BernoulliExtrapolation.passAtK(8, 8, 5)).isEqualTo(1);
    }
}
