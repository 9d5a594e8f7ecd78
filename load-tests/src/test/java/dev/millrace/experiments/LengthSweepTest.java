package dev.millrace.experiments;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.experiments.LengthSweep.Moments;
import dev.millrace.experiments.LengthSweep.Row;
import java.util.List;
import org.junit.jupiter.api.Test;

class LengthSweepTest {
    @Test
    void derivesBiasVarianceAndProgress() {
        Moments oracle = Moments.of(List.of(new double[] {4, 1}, new double[] {4, -1}));
        assertThat(oracle.mean()).containsExactly(4, 0);
        assertThat(oracle.variance()).isEqualTo(2); // signal 16 - 2/2 = 15, progress of a batch 15² / 2
        Moments of = Moments.of(List.of(new double[] {3, 3}, new double[] {1, 3})); // mean (2, 3), variance 2

        Row row = Row.of(1, 64, "token", 0.5, 0.9, of, oracle);

        assertThat(row.bias()).isCloseTo((4 + 9 - 1 - 1) / 15.0, within(1e-12));
        assertThat(row.variance()).isCloseTo(2 / 15.0, within(1e-12));
        assertThat(row.cosine()).isCloseTo(8 / (4 * Math.sqrt(13)), within(1e-12));
        assertThat(row.norm()).isCloseTo(Math.sqrt(13) / 4, within(1e-12));
        assertThat(row.progress()).isCloseTo(64 / (2 + 11.0) / (225 / 2.0), within(1e-12));
    }

    @Test
    void seesNoDifferenceWhereThePoliciesAreTheSame() {
        List<Row> rows = new LengthSweep(List.of(6, 4), List.of(1L), 1, 2, 1e-12, 2, 2).run(line -> {});

        assertThat(rows).hasSize(2 * 7).allSatisfy(row -> {
            Row first = rows.get(row.length() == 4 ? 0 : 7);
            assertThat(row.ess()).isCloseTo(1, within(1e-4));
            assertThat(row.variance()).isCloseTo(first.variance(), within(1e-2 * first.variance()));
            assertThat(row.cosine()).isCloseTo(first.cosine(), within(1e-2));
        });
    }

    @Test
    void refusesWhatCannotBeMeasured() {
        assertThatThrownBy(() -> new LengthSweep(List.of(1), List.of(1L), 1, 2, 1e-3, 2, 2))
                .hasMessageContaining("lengths must be at least 2");
        assertThatThrownBy(() -> new LengthSweep(List.of(4), List.of(1L), 1, 2, 1e-3, 1, 2))
                .hasMessageContaining("batches and oracle-batches at least 2: 1, 1 and 2");
    }
}
