package dev.millrace.workloads.topology;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.workloads.topology.Distribution.Kind;
import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;

class DistributionTest {
    private static final int DRAWS = 100_000;

    private static long[] drawn(Distribution distribution) {
        SplittableRandom random = new SplittableRandom(3);
        return LongStream.generate(() -> distribution.draw(random))
                .limit(DRAWS)
                .sorted()
                .toArray();
    }

    @Test
    void shouldDrawTheSameNumberWhereItIsFixed() {
        assertThat(drawn(Distribution.fixed(17))).containsOnly(17);
    }

    @Test
    void shouldDrawEveryNumberOfAUniformDistributionEquallyOften() {
        long[] drawn = drawn(Distribution.uniform(2, 5));
        for (long number = 2; number <= 5; number++) {
            long wanted = number;
            assertThat(LongStream.of(drawn).filter(n -> n == wanted).count())
                    .isCloseTo(DRAWS / 4, within(DRAWS / 100L));
        }
        assertThat(drawn[0]).isEqualTo(2);
        assertThat(drawn[DRAWS - 1]).isEqualTo(5);
    }

    /** ln X has median ln 1000 and deviation 0.5, so its 84.13 % quantile is 1000 e^0.5 = 1648.7. */
    @Test
    void shouldDrawLogNormalNumbersWithTheirMedianAndSpread() {
        long[] drawn = drawn(new Distribution(Kind.LOG_NORMAL, 1000, 0.5, 0, Long.MAX_VALUE));
        assertThat(drawn[DRAWS / 2]).isCloseTo(1000, within(15L));
        assertThat(drawn[(int) (DRAWS * 0.8413)]).isCloseTo(1649, within(30L));
    }

    /** P(X > x) = (m / x)^a for least m; with a = 2 a hundredth lies above ten times the least, which is median / sqrt 2. */
    @Test
    void shouldDrawAParetoTailOfItsIndex() {
        long[] drawn = drawn(new Distribution(Kind.PARETO, 1000, 2, 0, Long.MAX_VALUE));
        assertThat(drawn[DRAWS / 2]).isCloseTo(1000, within(15L));
        assertThat(drawn[0]).isGreaterThanOrEqualTo(707);
        assertThat(LongStream.of(drawn).filter(n -> n > 7071).count()).isCloseTo(DRAWS / 100, within(DRAWS / 500L));
    }

    @Test
    void shouldMoveWhatLiesOutsideToTheBounds() {
        long[] drawn = drawn(new Distribution(Kind.LOG_NORMAL, 1000, 2, 900, 1100));
        assertThat(drawn[0]).isEqualTo(900);
        assertThat(drawn[DRAWS - 1]).isEqualTo(1100);
    }

    @Test
    void shouldRefuseWhatIsNoDistribution() {
        assertThatThrownBy(() -> new Distribution(Kind.UNIFORM, 0, 0, 5, 2)).hasMessageContaining("least=5, most=2");
        assertThatThrownBy(() -> new Distribution(Kind.LOG_NORMAL, 100, 0, 0, 200))
                .hasMessageContaining("spread")
                .hasMessageContaining("0.0");
        assertThatThrownBy(() -> new Distribution(Kind.FIXED, 300, 0, 0, 200)).hasMessageContaining("300");
        assertThatThrownBy(() -> new Distribution(Kind.LOG_NORMAL, Double.NaN, 1, 0, 200))
                .hasMessageContaining("NaN");
    }

    @Test
    void shouldDrawAsOftenAsWasCounted() {
        long[] counted = new long[1000];
        for (int i = 0; i < counted.length; i++) {
            counted[counted.length - 1 - i] = i < 700 ? 16 : i < 950 ? 200 : 4000;
        }
        Distribution distribution = Distribution.counted(counted);
        assertThat(distribution.least()).isEqualTo(16);
        assertThat(distribution.most()).isEqualTo(4000);
        long[] drawn = drawn(distribution);
        assertThat(share(drawn, 16, 16)).isCloseTo(0.7, within(0.02));
        assertThat(share(drawn, 200, 200)).isCloseTo(0.25, within(0.03));
        assertThat(share(drawn, 4000, 4000)).isCloseTo(0.05, within(0.015));
        assertThat(drawn(Distribution.counted(new long[] {7}))).containsOnly(7);
    }

    private static double share(long[] drawn, long from, long to) {
        return (double) Arrays.stream(drawn).filter(n -> n >= from && n <= to).count() / drawn.length;
    }

    @Test
    void shouldRefuseQuantilesThatAreNone() {
        assertThatThrownBy(() -> new Distribution(Kind.EMPIRICAL, 0, 0, 0, 9, List.of(1L)))
                .hasMessageContaining("1 quantiles");
        assertThatThrownBy(() -> new Distribution(Kind.FIXED, 1, 0, 0, 9, List.of(1L, 2L)))
                .hasMessageContaining("kind=fixed");
        assertThatThrownBy(() -> new Distribution(Kind.EMPIRICAL, 0, 0, 0, 9, List.of(3L, 2L)))
                .hasMessageContaining("3 before 2");
    }
}
