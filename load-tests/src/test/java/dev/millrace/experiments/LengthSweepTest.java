package dev.millrace.experiments;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.experiments.LengthSweep.Fit;
import dev.millrace.experiments.LengthSweep.Moments;
import dev.millrace.experiments.LengthSweep.Row;
import dev.millrace.report.ReportText;
import java.util.List;
import org.junit.jupiter.api.Test;

class LengthSweepTest {
    @Test
    void derivesBiasVarianceAndProgress() {
        Moments oracle = Moments.of(List.of(new double[] {4, 1}, new double[] {4, -1}));
        assertThat(oracle.mean()).containsExactly(4, 0);
        assertThat(oracle.variance()).isEqualTo(2); // signal 16 - 2/2 = 15, progress of a batch 15² / 2
        Moments of = Moments.of(List.of(new double[] {3, 3}, new double[] {1, 3})); // mean (2, 3), variance 2

        Fit fit = Fit.of(of, oracle);

        assertThat(fit.bias()).isCloseTo((4 + 9 - 1 - 1) / 15.0, within(1e-12));
        assertThat(fit.variance()).isCloseTo(2 / 15.0, within(1e-12));
        assertThat(fit.cosine()).isCloseTo(8 / (4 * Math.sqrt(13)), within(1e-12));
        assertThat(fit.norm()).isCloseTo(Math.sqrt(13) / 4, within(1e-12));
        assertThat(fit.progress()).isCloseTo(64 / (2 + 11.0) / (225 / 2.0), within(1e-12));
    }

    @Test
    void comparesGradientsOfTheRewardAlone() {
        assertThat(LengthSweep.ESTIMATORS)
                .allSatisfy(estimator ->
                        assertThat(estimator.algorithm().entropy().bonus()).isZero());
    }

    @Test
    void seesNoDifferenceWhereThePoliciesAreTheSame() {
        List<Row> rows = new LengthSweep(List.of(6, 4), List.of(1L), 1, 2, 1e-12, 2, 2).run(line -> {});

        assertThat(rows).hasSize(2 * 7).allSatisfy(row -> {
            Row first = rows.get(row.length() == 4 ? 0 : 7);
            assertThat(row.ess()).isCloseTo(1, within(1e-4));
            Fit fit = row.fit();
            assertThat(fit.variance())
                    .isCloseTo(first.fit().variance(), within(1e-2 * first.fit().variance()));
            assertThat(fit.cosine()).isCloseTo(first.fit().cosine(), within(1e-2));
        });
    }

    @Test
    void leavesUndecidedWhatTheNoiseOfTheOnPolicyGradientExceeds() {
        Moments noise = Moments.of(List.of(new double[] {2, 0}, new double[] {0, 0})); // signal 1 - 2/2 = 0
        Moments weaker = Moments.of(List.of(new double[] {2, 0}, new double[] {-1, 0})); // 1/4 - 4.5/2 < 0
        Moments exact = Moments.of(List.of(new double[] {1, 0}, new double[] {1, 0})); // no noise to compare with
        Moments none = Moments.of(List.of(new double[] {0, 0}, new double[] {0, 0}));

        assertThat(Fit.of(exact, noise)).isEqualTo(new Fit(null, null, 1.0, 1.0, null));
        assertThat(Fit.of(exact, weaker)).isEqualTo(new Fit(null, null, 1.0, 2.0, null));
        assertThat(Fit.of(noise, exact)).isEqualTo(new Fit(null, null, 1.0, 1.0, null));
        assertThat(Fit.of(none, none)).isEqualTo(new Fit(null, null, null, null, null));
    }

    @Test
    void reportsUndecidedLengthsAndTakesNoneOfThemForTheBest() {
        LengthSweep sweep = new LengthSweep(List.of(16, 64), List.of(1L), 1, 2, 1e-3, 2, 2);
        Fit undecided = new Fit(null, null, 0.5, 1.0, null);
        List<Row> rows = List.of(
                new Row(1, 16, "none", 0.5, 1, new Fit(0.0, 1.0, 0.5, 1.0, 0.25)),
                new Row(1, 16, "prefix", 0.5, 0.5, new Fit(0.0, 1.0, 0.5, 1.0, 0.75)),
                new Row(1, 64, "none", 0.5, 1, undecided),
                new Row(1, 64, "prefix", 0.5, 0.5, undecided));

        assertThat(ReportText.markdown(sweep.report(rows)))
                .contains("1 of 2 times; 1 undecided", "0.75      | undecided")
                .doesNotContain("NaN");
    }

    @Test
    void refusesWhatCannotBeMeasured() {
        assertThatThrownBy(() -> new LengthSweep(List.of(1), List.of(1L), 1, 2, 1e-3, 2, 2))
                .hasMessageContaining("lengths must be at least 2");
        assertThatThrownBy(() -> new LengthSweep(List.of(4), List.of(1L), 1, 2, 1e-3, 1, 2))
                .hasMessageContaining("batches and oracle-batches at least 2: 1, 1 and 2");
    }
}
