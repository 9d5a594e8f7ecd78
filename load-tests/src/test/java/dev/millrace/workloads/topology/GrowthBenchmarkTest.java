package dev.millrace.workloads.topology;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.tuple;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.report.ReportOrigin;
import dev.millrace.workloads.Goal;
import dev.millrace.workloads.topology.GrowthBenchmark.Config;
import dev.millrace.workloads.topology.GrowthBenchmark.Cost;
import dev.millrace.workloads.topology.GrowthBenchmark.Dimension;
import dev.millrace.workloads.topology.GrowthBenchmark.LogBytes;
import dev.millrace.workloads.topology.GrowthBenchmark.Measured;
import dev.millrace.workloads.topology.GrowthBenchmark.Plan;
import dev.millrace.workloads.topology.GrowthBenchmark.Point;
import dev.millrace.workloads.topology.GrowthBenchmark.PowerLaw;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

class GrowthBenchmarkTest {
    static final Point BASE = new Point(10_240, 4, 1, 512);

    /** Of a machine with two processors. */
    static GrowthBenchmark.Report report(Measured... measured) {
        return GrowthBenchmark.report(
                new ReportOrigin("c", "abc", "m", 2, new ReportOrigin.Software("j", "4"), "now", 1),
                new Config(256, 100, "lz4", "IN_MEMORY"),
                BASE,
                List.of(measured));
    }

    /** @param scale of the costs of the base point */
    static Measured measured(@Nullable Dimension varied, Point at, double... scale) {
        return new Measured(
                varied,
                at,
                Arrays.stream(scale)
                        .mapToObj(by -> new Cost(
                                200 * by,
                                100 * by,
                                2,
                                new LogBytes(4000 * by, 2000 * by, 6000 * by, 100 * by, 900 * by)))
                        .toList());
    }

    /** u = 0, 1, 2 and v = 0, 1, 1: slope 1/2, squared residuals 1/6, standard error sqrt(1/6 / 1 / 2). */
    @Test
    void shouldFitAnExponentWithItsStandardError() {
        PowerLaw fit = PowerLaw.fit(new double[] {1, Math.E, Math.E * Math.E}, new double[] {1, Math.E, Math.E});

        assertThat(fit.exponent()).isCloseTo(0.5, within(1e-12));
        assertThat(fit.standardError()).isCloseTo(Math.sqrt(1.0 / 12), within(1e-12));
        PowerLaw exact = PowerLaw.fit(new double[] {1, 4, 16}, new double[] {3, 6, 12});
        assertThat(exact.exponent()).isCloseTo(0.5, within(1e-12));
        assertThat(exact.standardError()).isCloseTo(0, within(1e-12));
    }

    @Test
    void shouldFitNothingToTwoPointsOrOneValue() {
        assertThatThrownBy(() -> PowerLaw.fit(new double[] {1, 2}, new double[] {1, 2}))
                .isInstanceOf(IllegalArgumentException.class);
        assertThatThrownBy(() -> PowerLaw.fit(new double[] {2, 2, 2}, new double[] {1, 2, 3}))
                .isInstanceOf(IllegalArgumentException.class);
    }

    /** Four times the partitions cost twice as much: exponent 1/2. Four times the tokens cost four times as much: 1. */
    @Test
    void shouldNameTheDimensionThatGrowsBeyondItsBound() {
        GrowthBenchmark.Report report = report(
                measured(null, BASE, 1, 1),
                measured(Dimension.PARTITIONS, BASE.with(Dimension.PARTITIONS, 16), 2, 2),
                measured(Dimension.RESPONSE_TOKENS, BASE.with(Dimension.RESPONSE_TOKENS, 2048), 4, 4));

        assertThat(report.goals())
                .filteredOn(goal -> !goal.holds())
                .extracting(Goal::name, Goal::measured, Goal::bound)
                .containsExactly(
                        tuple(
                                "processor time of a rollout over partitions 4 to 16",
                                "exponent 0.500, standard error 0.000",
                                "at most 0.25"),
                        tuple(
                                "bytes on the log of a rollout over partitions 4 to 16",
                                "exponent 0.500, standard error 0.000",
                                "at most 0.25"));
        assertThat(report.goals())
                .filteredOn(Goal::holds)
                .extracting(Goal::measured)
                .containsOnly("exponent 1.000, standard error 0.000");
    }

    /** 256 MB hold 459 rollouts of 32768 tokens, at 17 bytes a token: two batches. */
    @Test
    void shouldMeasureWholeBatchesThatFit() {
        assertThat(BASE.with(Dimension.ROLLOUTS, 1000).wholeBatches(256, 512).rollouts())
                .isEqualTo(1024);
        assertThat(BASE.with(Dimension.ROLLOUTS, 1).wholeBatches(256, 512).rollouts())
                .isEqualTo(256);
        assertThat(BASE.with(Dimension.RESPONSE_TOKENS, 32_768)
                        .wholeBatches(256, 512)
                        .rollouts())
                .isEqualTo(512);
    }

    @Test
    void shouldVaryFromTheUsualPointOrTheFirst() {
        assertThat(new Plan(
                                Map.of(
                                        Dimension.PARTITIONS, List.of(16, 8, 64),
                                        Dimension.RESPONSE_TOKENS, List.of(128, 512, 2048)),
                                1)
                        .base())
                .isEqualTo(new Point(10_240, 8, 1, 512));
    }

    @Test
    void shouldRefuseWhatCannotBeMeasured() {
        assertThatThrownBy(() -> new Plan(Map.of(Dimension.ROLLOUTS, List.of(0)), 3))
                .hasMessage("cannot measure growth: --rollouts is 0, expected 1 to 1000000");
        assertThatThrownBy(() -> new Plan(Map.of(Dimension.RESPONSE_TOKENS, List.of(1 << 20)), 3))
                .hasMessage("cannot measure growth: --tokens is 1048576, expected 1 to 131072");
        assertThatThrownBy(() -> new Plan(Map.of(Dimension.PARTITIONS, List.of(1, 2)), 1))
                .hasMessageContaining("give a third value or --repetitions 2");
    }
}
