package dev.millrace.workloads.topology;

import static dev.millrace.workloads.topology.GrowthBenchmarkTest.BASE;
import static dev.millrace.workloads.topology.GrowthBenchmarkTest.measured;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.workloads.topology.CapacityPlan.Line;
import dev.millrace.workloads.topology.CapacityPlan.Load;
import dev.millrace.workloads.topology.GrowthBenchmark.Dimension;
import org.junit.jupiter.api.Test;

/** Costs are proportional to tokens and the same at one and four instances: 200 us and 13 kB a rollout of 512 tokens. */
class CapacityPlanTest {
    private static final GrowthBenchmark.Report FIGURES = GrowthBenchmarkTest.report(
            measured(null, BASE, 1, 1, 1),
            measured(Dimension.INSTANCES, BASE.with(Dimension.INSTANCES, 4), 1, 1, 1),
            measured(Dimension.RESPONSE_TOKENS, BASE.with(Dimension.RESPONSE_TOKENS, 2048), 4, 4, 4));

    private static Line line(CapacityPlan plan, String what) {
        return plan.lines().stream()
                .filter(line -> line.what().equals(what))
                .findFirst()
                .orElseThrow();
    }

    /** 1000 rollouts/s of 1024 tokens: 400 us, 26 kB; read are 2 x 8 + 4 + 2 x 12 + 0.2 = 44.2 kB. */
    @Test
    void shouldDeriveEveryLine() {
        CapacityPlan plan = CapacityPlan.of(new Load(1000, 1_024_000, 1, 1024, 256), FIGURES);

        assertThat(plan.lines())
                .extracting(Line::what)
                .containsExactly(
                        "rollouts",
                        "topology instances",
                        "topics.partitions",
                        "brokers",
                        "network in, a broker",
                        "network out, a broker",
                        "disk, a broker",
                        "steps",
                        "weights out, a broker, a MB of a version",
                        "processor time of a rollout after a day, at most");
        assertThat(plan.lines())
                .extracting(Line::value)
                .usingComparatorForType((a, b) -> Math.abs(a - b) < 1e-6 * b ? 0 : 1, Double.class)
                .containsExactly(
                        1000.0, // a second
                        1.0, // 0.4 of a processor
                        4.0,
                        3.0, // 3 x 0.2 of a processor, but three copies
                        26.0, // 1000 x 26 kB x 3 / 3
                        (44.2 + 2 * 26) / 3,
                        26 * 3.6,
                        1000 / 256.0,
                        1000 * 1000 / 256.0 / 3,
                        1.0); // without an exponent
    }

    @Test
    void shouldSayHowFarItReachesBeyondTheFigures() {
        CapacityPlan plan = CapacityPlan.of(new Load(1000, 1_024_000, 1, 1024, 256), FIGURES);

        assertThat(line(plan, "topology instances").extrapolated()).isEmpty();
        assertThat(line(plan, "topology instances").factor()).isEqualTo(1);
        assertThat(line(plan, "disk, a broker").extrapolated()).isEqualTo("3 copies, measured 1");
        assertThat(line(plan, "brokers").extrapolated()).isEqualTo("3 copies, measured 1; producers 1,000, measured 1");
        assertThat(line(plan, "brokers").factor()).isEqualTo(1000);
        // 86.4 million rollouts a day over the 10240 measured
        assertThat(line(plan, "processor time of a rollout after a day, at most")
                        .factor())
                .isCloseTo(8437.5, within(1e-6));
        CapacityPlan longer = CapacityPlan.of(new Load(1, 8192, 1, 8192, 256), FIGURES);
        assertThat(line(longer, "topology instances").extrapolated())
                .isEqualTo("response tokens 8,192, measured 512 to 2,048");
        assertThat(line(longer, "network in, a broker").value()).isCloseTo(0.208, within(1e-9));
    }

    /** 4000 rollouts/s need 1.6 processors: four instances at half of their own, and so eight partitions. */
    @Test
    void shouldAddInstancesUntilHalfOfThemIsUsed() {
        CapacityPlan plan = CapacityPlan.of(new Load(8, 4_096_000, 1, 1024, 256), FIGURES);
        assertThat(line(plan, "topology instances").value()).isEqualTo(4);
        assertThat(line(plan, "topics.partitions").value()).isEqualTo(8);
        assertThat(line(plan, "topics.partitions").extrapolated()).isEqualTo("partitions 8, measured 4");

        CapacityPlan spread = CapacityPlan.of(new Load(8, 4_096_000, 4, 1024, 256), FIGURES);
        assertThat(line(spread, "topology instances").value()).isEqualTo(4);
        assertThat(line(spread, "topics.partitions").value()).isEqualTo(4);
        assertThat(line(spread, "steps").value()).isCloseTo(4000 / 256.0 / 4, within(1e-9));
    }

    @Test
    void shouldRefuseWhatTheFiguresDoNotReach() {
        assertThatThrownBy(() -> CapacityPlan.of(new Load(8, 6_144_000, 1, 1024, 256), FIGURES))
                .hasMessageContaining("needs 2.4 processors")
                .hasMessageContaining("expected at most 2.0")
                .hasMessageEndingWith("spread the load over more --policies");
        assertThatThrownBy(() -> CapacityPlan.of(new Load(8, 1e6, 1, 20_481, 256), FIGURES))
                .hasMessageStartingWith(
                        "cannot plan: --response-tokens is 20,481, measured 512 to 2,048, expected at most"
                                + " 10 times beyond");
        assertThatThrownBy(() -> CapacityPlan.of(new Load(8, 1e6, 1, 51, 256), FIGURES))
                .hasMessageContaining("--response-tokens is 51");
    }

    @Test
    void shouldRefuseAbsurdNumbers() {
        assertThatThrownBy(() -> new Load(0, 1, 1, 1, 1))
                .hasMessage("cannot plan: --generators is 0, expected 1 to 1,000,000");
        assertThatThrownBy(() -> new Load(1, Double.NaN, 1, 1, 1)).hasMessageContaining("--tokens-per-second is NaN");
        assertThatThrownBy(() -> new Load(1, 2e9, 1, 1, 1))
                .hasMessageContaining("--tokens-per-second is 2,000,000,000, expected 1 to 1,000,000,000");
        assertThatThrownBy(() -> new Load(2, 1, 3, 1, 1))
                .hasMessage("cannot plan: --policies is 3, expected at most one for each of --generators 2");
    }
}
