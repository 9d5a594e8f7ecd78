package dev.millrace.generator.sampling;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.Arrays;
import java.util.HashSet;
import java.util.Set;
import org.junit.jupiter.api.Test;

class CounterBasedRandomTest {

    @Test
    void shouldDependOnNothingButStreamAndPosition() {
        long stream = CounterBasedRandom.stream(1, 2, 3);
        float later = CounterBasedRandom.uniform(stream, 9);
        assertThat(CounterBasedRandom.uniform(stream, 8)).isNotEqualTo(later);
        assertThat(CounterBasedRandom.uniform(CounterBasedRandom.stream(1, 2, 3), 9))
                .isEqualTo(later);
    }

    @Test
    void shouldGiveEveryCoordinateAStreamOfItsOwn() {
        Set<Long> streams = new HashSet<>();
        for (long seed = 0; seed < 20; seed++) {
            for (long a = 0; a < 20; a++) {
                for (long b = 0; b < 20; b++) {
                    streams.add(CounterBasedRandom.stream(seed, a, b));
                }
            }
        }
        assertThat(streams).hasSize(8000);
    }

    @Test
    void shouldFillTheUnitIntervalEvenly() {
        int[] tenths = new int[10];
        for (int stream = 0; stream < 1000; stream++) {
            for (int position = 0; position < 100; position++) {
                float u = CounterBasedRandom.uniform(CounterBasedRandom.stream(42, stream, 0), position);
                assertThat(u).isGreaterThanOrEqualTo(0f).isLessThan(1f);
                tenths[(int) (u * 10)]++;
            }
        }
        // 10,000 expected, standard deviation 95
        assertThat(Arrays.stream(tenths).boxed())
                .allSatisfy(count -> assertThat(count).isBetween(9_600, 10_400));
    }

    @Test
    void shouldDrawEveryValueBelowTheBoundAndNoOther() {
        int[] counts = new int[7];
        for (int position = 0; position < 7000; position++) {
            counts[CounterBasedRandom.below(99L, position, 7)]++;
        }
        // 1000 expected, standard deviation 29
        assertThat(Arrays.stream(counts).boxed())
                .allSatisfy(count -> assertThat(count).isBetween(880, 1120));
        assertThatThrownBy(() -> CounterBasedRandom.below(1L, 0, 0)).hasMessageContaining("bound=0");
    }
}
