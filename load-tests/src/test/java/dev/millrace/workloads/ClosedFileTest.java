package dev.millrace.workloads;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.millrace.generator.sampling.WeightUpdate;
import dev.millrace.infra.broker.Durability;
import dev.millrace.runtime.config.ConfigException;
import dev.millrace.runtime.config.ConfigTree;
import dev.millrace.workloads.topology.Distribution.Kind;
import java.util.List;
import org.junit.jupiter.api.Test;

class ClosedFileTest {
    private static List<ClosedPoint> points(String yaml) {
        return ClosedFile.of(ConfigTree.parse(yaml, "a workload")).points();
    }

    private static void assertRefused(String yaml, String... saying) {
        assertThatThrownBy(() -> points(yaml))
                .isInstanceOf(ConfigException.class)
                .hasMessageContainingAll(saying);
    }

    @Test
    void shouldSweepThePlanAndTheRunTogether() {
        List<ClosedPoint> points = points("""
            closed: {seconds: 7, step_ms: {kind: fixed, value: 5, least: 5, most: 5}}
            generator: {slots: 32}
            sweep:
              closed.batch_sequences: [32, 64]
              closed.environment_ms: [{kind: pareto, value: 100, spread: 1.5, least: 0, most: 9000}]
              generator.weight_update: [group_end]
              admission.eta: [0, 2]
            """);
        assertThat(points).hasSize(4).allSatisfy(point -> {
            assertThat(point.config().generator().slots()).isEqualTo(32);
            assertThat(point.config().generator().weightUpdate()).isEqualTo(WeightUpdate.GROUP_END);
            assertThat(point.plan().environmentMs().kind()).isEqualTo(Kind.PARETO);
            assertThat(point.config().admission().batchSequences())
                    .isEqualTo(point.plan().batchSequences());
            assertThat(point.config().topology().batch().sequences())
                    .isEqualTo(point.plan().batchSequences());
        });
        assertThat(points).extracting(ClosedPoint::eta).containsExactly(0, 2, 0, 2);
        ClosedPoint last = points.get(3);
        assertThat(last.synchronous().eta()).isZero();
        assertThat(last.synchronous().config().admission().batchSequences()).isEqualTo(64);
        assertThat(last.shortened().plan().seconds()).isZero();
        assertThat(last.shortened().plan().tokens()).isEqualTo(1500);
        assertThat(last.named("load-1", "kafka:9092").run().topics().prefix()).isEqualTo("millrace.load-1.");
    }

    @Test
    void shouldWaitForTheDiskWhereTheWorkloadSaysSo() {
        assertThat(durability("closed: {}")).isEqualTo(Durability.SYSTEM);
        assertThat(durability("closed: {}\nbroker: {durability: versions}")).isEqualTo(Durability.VERSIONS);
        assertThat(ClosedFile.of(ConfigTree.parse("closed: {}", "a workload")).resolved())
                .contains("durability: system");
    }

    private static Durability durability(String yaml) {
        ClosedPoint point = points(yaml).get(0);
        assertThat(point.synchronous().config().broker())
                .isEqualTo(point.config().broker());
        return point.named("load-1", "kafka:9092").broker().durability();
    }

    @Test
    void shouldRefuseInSentences() {
        assertRefused("closed: {second: 7}", "unknown key closed.second", "did you mean closed.seconds?");
        assertRefused("closed: {seconds: 0}", "closed.seconds and tokens must be at least 0");
        assertRefused("closed: {}\nadmision: {eta: 1}", "unknown key admision", "did you mean admission?");
        assertRefused("closed: {}\ngoal: {mean_reward: 0.8}", "goal must not be in a workload", "closed.seconds");
        assertRefused("closed: {}\nrun: {id: mine}", "run.id must not be in a workload", "a name of its own");
        assertRefused("closed: {}\nsweep: {goal.mean_reward: [0.8]}", "unknown key goal.mean_reward in sweep");
        assertRefused(
                "closed: {}\nalgorithm: {staleness: {max_versions: 8}}\nsweep: {admission.eta: [9]}",
                "admission.eta is 9 and algorithm.staleness.max_versions is 8");
        assertRefused(
                "closed: {}\nbroker: {port: 9092}", "broker.port must not be in a workload", "a process of its own");
        assertRefused(
                "closed: {}\nsweep: {broker.durability: [system, versions]}", "broker.durability cannot be swept");
        assertRefused(
                "closed: {}\nsweep: {closed.broker_heap_mb: [512, 1024]}", "closed.broker_heap_mb cannot be swept");
    }
}
