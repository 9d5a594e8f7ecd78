package dev.millrace.workloads;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.millrace.corrections.algorithm.Algorithm;
import dev.millrace.corrections.algorithm.StalenessRules;
import dev.millrace.runtime.config.ConfigException;
import dev.millrace.runtime.config.ConfigTree;
import dev.millrace.workloads.WorkloadFile.SweepPoint;
import dev.millrace.workloads.topology.RecordedShape;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class WorkloadFileTest {
    @TempDir
    Path directory;

    private List<SweepPoint> points(String yaml) throws IOException {
        Path file = Files.writeString(directory.resolve("workload.yaml"), yaml);
        return WorkloadFile.read(file).points(WorkloadFileTest::notRecorded);
    }

    private void assertRefused(String yaml, String... saying) {
        assertThatThrownBy(() -> points(yaml))
                .isInstanceOf(ConfigException.class)
                .hasMessageContainingAll(saying);
    }

    @Test
    void shouldMakeAPointOfEveryCombination() throws IOException {
        List<SweepPoint> points =
                points("seconds: 7\nsweep: {load.rollouts_per_second: [10, 20, 30], topology.runtime.threads: [1, 2]}");
        assertThat(points).hasSize(6);
        assertThat(points.get(3).settings().toString())
                .isEqualTo("{load.rollouts_per_second=20, topology.runtime.threads=2}");
        assertThat(points.get(3).workload().load().rolloutsPerSecond()).isEqualTo(20);
        assertThat(points.get(3).workload().topology().runtime().threads()).isEqualTo(2);
        assertThat(points).allMatch(point -> point.workload().seconds() == 7);
    }

    @Test
    void shouldMakeThePointsOfSeveralSweepsAndNoneTwice() throws IOException {
        assertThat(
                        points(
                                "sweep: [{exactly_once: [true, false]}, {topology.runtime.threads: [2]}, {exactly_once: [false]}]"))
                .extracting(point -> point.settings().toString())
                .containsExactly("{exactly_once=true}", "{exactly_once=false}", "{topology.runtime.threads=2}");
    }

    @Test
    void shouldSweepWholeDistributions() throws IOException {
        List<SweepPoint> points =
                points("sweep: {rollouts.response_tokens: [{kind: fixed, value: 9, least: 9, most: 9}, "
                        + "{kind: uniform, least: 1, most: 5}]}");
        assertThat(points.get(0).workload().rollouts().responseTokens().most()).isEqualTo(9);
        assertThat(points.get(1).workload().rollouts().responseTokens().most()).isEqualTo(5);
    }

    @Test
    void shouldNeverLoseARolloutAsStaleUnlessTheFileSaysSo() throws IOException {
        assertThat(points("seconds: 7").get(0).workload().algorithm().algorithm())
                .isEqualTo(Algorithm.defaults()
                        .with(changed -> changed.staleness(new StalenessRules(1_000_000_000, 0, 0))));
        assertThat(points("algorithm: {staleness: {max_versions: 3, max_age_ms: 5, half_life_versions: 2}}")
                        .get(0)
                        .workload()
                        .algorithm()
                        .staleness())
                .isEqualTo(new StalenessRules(3, 5, 2));
        assertRefused(
                "algorithm: {staleness: {max_versions: -1}}", "algorithm.staleness.max_versions must be at least 0");
    }

    @Test
    void shouldRefuseInSentences() {
        assertRefused("second: 10", "unknown key second", "did you mean seconds?");
        assertRefused(
                "sweep: {load.rollouts_per_secnd: [1]}",
                "load.rollouts_per_secnd in sweep",
                "did you mean load.rollouts_per_second?");
        assertRefused("sweep: {seconds: 3}", "sweep.seconds must be a list");
        assertRefused("sweep: [1]", "sweep must hold keys with lists");
        assertRefused("load: {rollouts_per_second: 0}", "load.rollouts_per_second must be greater than 0");
        assertRefused("rollouts: {group_size: 1}", "rollouts.group_size must be at least 2");
        assertRefused(
                "rollouts: {response_tokens: {kind: gamma}}",
                "rollouts.response_tokens.kind must be one of fixed, uniform");
        assertRefused("rollouts: {unscored_share: 1.5}", "rollouts.unscored_share must be in [0, 1");
        assertRefused("backlog: {rollouts: 7}", "backlog.rollouts must be whole groups", "7");
        assertRefused("fault: {kill_after_seconds: 10}", "fault.kill_after_seconds must be below seconds 10");
        assertRefused(
                "learner: {enabled: false}\ntopology: {batch: {max_outstanding: 2}}",
                "max_outstanding 2 waits for a learner");
        assertRefused(
                "knee: {search: true}\nsweep: {load.rollouts_per_second: [1, 2]}",
                "knee.search chooses the rates itself");
        assertRefused(
                "exactly_once: false\nfault: {kill_after_seconds: 5}",
                "kill_after_seconds must be 0 with exactly_once=false");
        assertRefused("brokers: 0", "brokers must be 1 to 9: 0");
        assertRefused("sweep: [{exactly_once: [true]}, {brokers: [1, 3]}]", "brokers cannot be swept");
        assertRefused("sweep: []", "sweep must hold keys with lists");
        assertRefused("knee: {points: 1}", "knee.points must be 3 to 32");
    }

    @Test
    void shouldUnderstandEveryWorkloadThatComesWithIt() throws IOException {
        try (Stream<Path> files = Files.list(Path.of("workloads"))) {
            List<Path> workloads = files.filter(file -> file.toString().endsWith(".yaml"))
                    .sorted()
                    .toList();
            assertThat(workloads).hasSizeGreaterThan(5);
            for (Path workload : workloads) {
                if (ClosedFile.isOne(ConfigTree.read(workload))) {
                    assertThat(ClosedFile.of(ConfigTree.read(workload)).points())
                            .as(workload.toString())
                            .hasSizeGreaterThan(1);
                    assertThat(ClosedFile.of(ConfigTree.read(workload)).resolved())
                            .contains("closed:", "admission:");
                    continue;
                }
                WorkloadFile file = WorkloadFile.read(workload);
                List<SweepPoint> points = file.points(WorkloadFileTest::notRecorded);
                assertThat(points).as(workload.toString()).isNotEmpty();
                assertThat(file.resolved(points.get(0))).contains("rollouts_per_second");
            }
        }
    }

    private static RecordedShape notRecorded(String folder) {
        throw new AssertionError("no recorded run is asked for: " + folder);
    }
}
