package dev.millrace.experiments;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.experiments.Grid.RunKey;
import dev.millrace.experiments.LagLawReport.LagLaw;
import dev.millrace.experiments.LagLawReport.LagLaw.Point;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.function.DoubleUnaryOperator;
import org.junit.jupiter.api.Test;

class LagLawTest {
    private static final int[] LAGS = {1, 10, 50, 100, 200, 400, 800};

    /** Three runs at each lag, with a noise of {@code deviation} in log ESS. */
    private static List<Point> runs(DoubleUnaryOperator logEss, double deviation) {
        SplittableRandom random = new SplittableRandom(5);
        List<Point> points = new ArrayList<>();
        for (int lag : LAGS) {
            for (int seed = 0; seed < 3; seed++) {
                points.add(new Point(
                        lag,
                        Math.exp(Math.min(0, logEss.applyAsDouble(lag) + deviation * random.nextGaussian())),
                        lag <= 100));
            }
        }
        return points;
    }

    @Test
    void shouldFindThePowerLawThatTheRunsWereMadeOf() { // L = 0.25 ESS^-2.5, that is ESS = (L / 0.25)^-0.4
        LagLaw law = LagLaw.fit(runs(lag -> -0.4 * Math.log(lag / 0.25), 0.05));
        assertThat(law.alpha().value()).isCloseTo(-2.5, within(0.1));
        assertThat(law.c().value()).isCloseTo(0.25, within(0.05));
        assertThat(-2.5).isBetween(law.alpha().low(), law.alpha().high());
        assertThat(law.alpha().high() - law.alpha().low()).isBetween(0.02, 0.4);
        assertThat(law.lagAt(0.1)).isCloseTo(0.25 * Math.pow(0.1, -2.5), within(15.0));
        assertThat(law.isSupported()).isTrue();
        assertThat(law.bound())
                .as("the runs that keep up lie on the curve, up to noise")
                .isCloseTo(0.25, within(0.12));
    }

    @Test
    void shouldNotSupportThePowerLawWhereAnExponentialExplainsMore() {
        LagLaw law = LagLaw.fit(runs(lag -> -lag / 200.0, 0.02));
        assertThat(law.exponentialRSquared()).isGreaterThan(0.95).isGreaterThan(law.rSquared());
        assertThat(law.isSupported()).isFalse();
        assertThat(law.verdict()).contains("do not support");
    }

    @Test
    void shouldNotSupportALawWhereTheLagDecidesNothing() {
        LagLaw law = LagLaw.fit(runs(lag -> -1, 0.3));
        assertThat(law.isSupported()).isFalse();
        assertThat(law.verdict()).contains("less than 0.8 of the variance");
    }

    /** The second moment is the lag's square. */
    private static RunRow row(int lag, double logEss, RunRow.Outcome outcome) {
        return new RunRow(
                new RunKey(lag, Correction.of("sequence_tis"), 1),
                outcome,
                new RunRow.Learning(0, 0, 0, 0, -1, -1),
                new RunRow.Drift(Math.exp(logEss), lag * lag, 0, null, null),
                new RunRow.Treatment(0, 0, 1, 1, null),
                null);
    }

    private static LagLawReport report(RunRow... rows) {
        return LagLawReport.of(
                new Grid(
                        List.of(0, 1, 2, 4),
                        List.of(Correction.of("sequence_tis")),
                        List.of(1L),
                        new StalenessSettings(StalenessSettings.SMALL_MODEL, 2, 16, 4, 0.5, 2, 8, 4, 8)),
                List.of(rows));
    }

    @Test
    void shouldFitThePublishedLawsToTheSamePoints() { // -log ESS = (0.5 L)^2
        LagLawReport report = report(
                row(1, -0.25, RunRow.Outcome.KEEPS_UP),
                row(2, -1, RunRow.Outcome.KEEPS_UP),
                row(4, -4, RunRow.Outcome.BEHIND));
        List<LagLawReport.Fit> fits = report.fits();

        assertThat(report.driftExponent(1)).isNaN();
        assertThat(report.driftExponent(4)).isCloseTo(1, within(1e-12));

        assertThat(fits.get(3).rSquared()).isCloseTo(1, within(1e-12));
        assertThat(fits.get(3).parameters()).isEqualTo("k 1.00");
        assertThat(fits.get(3).residuals())
                .allSatisfy(residual -> assertThat(residual).isCloseTo(0, within(1e-12)));
        // by hand: the line through (1, -1/4), (2, -1), (4, -4) has slope -9/7 and passes through (7/3, -7/4)
        assertThat(fits.get(1).residuals().get(0)).isCloseTo(-0.25 + 1.75 - 9 / 7.0 * 4 / 3, within(1e-12));
        assertThat(fits.get(2).rSquared()).as("ESS does not grow with the lag").isNegative();
    }

    @Test
    void shouldCountTheRunsThatAConditionJudgesRightly() { // L / ESS: 1, 4, 8; in sequences of 16: 1/16, 1/4, 1/2
        List<LagLawReport.Condition> conditions = report(
                        row(1, 0, RunRow.Outcome.KEEPS_UP),
                        row(2, -Math.log(2), RunRow.Outcome.KEEPS_UP),
                        row(4, -Math.log(2), RunRow.Outcome.BEHIND))
                .conditions();

        assertThat(conditions).extracting(LagLawReport.Condition::right).containsExactly(2L, 2L, 3L, 3L, 3L);
        assertThat(conditions.get(2).bound()).isEqualTo("4.00 to 8.00, fitted");
        assertThat(conditions.get(3).bound()).isEqualTo("1.00 to 2.00, fitted");
    }

    @Test
    void shouldRefuseWhatNoLineCanBeHeldAgainst() {
        assertThatThrownBy(() -> LagLaw.fit(List.of(new Point(1, 0.9, true), new Point(10, 0.5, true))))
                .hasMessageContaining("3 lags");
        assertThatThrownBy(() -> new Point(0, 0.5, true)).hasMessageContaining("lag=0.0");
        assertThatThrownBy(() -> new Point(1, Double.NaN, true)).hasMessageContaining("NaN");
    }
}
