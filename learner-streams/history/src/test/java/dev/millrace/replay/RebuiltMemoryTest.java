package dev.millrace.replay;

import static dev.millrace.topology.Samples.rollout;
import static dev.millrace.topology.Samples.score;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.millrace.corrections.advantage.BatchMean;
import dev.millrace.corrections.advantage.EmaBaseline;
import dev.millrace.corrections.advantage.ValueTracker;
import dev.millrace.corrections.algorithm.Algorithm;
import dev.millrace.corrections.algorithm.StalenessRules;
import dev.millrace.replay.archive.ArchiveException;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.packed.PackedInts;
import dev.millrace.topology.Samples;
import dev.millrace.topology.TopologyConfig;
import dev.millrace.topology.TopologyHarness;
import dev.millrace.topology.batch.BatchConfig;
import dev.millrace.topology.batch.GroupsConfig;
import dev.millrace.topology.batch.GroupsConfig.ZeroVariance;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Three batches of two lone rollouts, whose advantage compares with earlier batches. */
class RebuiltMemoryTest {
    private static final EmaBaseline HALF = new EmaBaseline(0.5, EmaBaseline.Key.PROMPT);

    @TempDir
    Path directory;

    private TopologyHarness topology;
    private int rollouts;

    private void run(Algorithm algorithm) {
        TopologyConfig defaults = TopologyConfig.defaults();
        topology = new TopologyHarness(
                new TopologyConfig(
                        defaults.ingress(),
                        defaults.join(),
                        new GroupsConfig(60_000, 1, 10_000, 600_000, ZeroVariance.KEEP),
                        new BatchConfig(2, 0, BatchConfig.Order.COMPLETION, 0, false),
                        defaults.runtime()),
                algorithm,
                directory);
        topology.pipe(Samples.version(3));
        topology.pipe(Samples.version(4));
        pipe(1, 1);
        pipe(2, 0);
        pipe(2, 1);
        pipe(1, 1);
        pipe(1, 0);
        pipe(3, 0);
    }

    private void pipe(int prompt, double reward) {
        Rollout lone = rollout("g" + rollouts, 0)
                .setGroupSize(1)
                .setOrdinal(rollouts++)
                .setPromptTokens(PackedInts.of(prompt))
                .setReward(reward)
                .build();
        topology.pipe(score(lone, topology.pipe(lone)).build());
    }

    @AfterEach
    void close() {
        topology.close();
    }

    private static Algorithm with(Algorithm algorithm, EmaBaseline advantage) {
        return algorithm.with(a -> a.advantage(advantage));
    }

    private static List<ReplayedStep> replay(WhatIf whatIf) throws InterruptedException {
        List<ReplayedStep> steps = new ArrayList<>();
        whatIf.replay(2, steps::add);
        return steps;
    }

    private WhatIf whatIf(StepRange range, Algorithm own, Alternative... others) {
        List<Alternative> alternatives = new ArrayList<>(List.of(new Alternative("recorded", own)));
        alternatives.addAll(List.of(others));
        return new WhatIf(MemoryRun.of(topology), range, alternatives);
    }

    private static List<Double> meanAbsoluteAdvantages(List<ReplayedStep> steps, int alternative) {
        return steps.stream()
                .map(step -> step.figures().get(alternative).advantages().meanAbsolute())
                .toList();
    }

    @Test
    void shouldDecideAsRecordedByTheRecordedBaselines() throws Exception {
        Algorithm tracking = Algorithm.defaults().with(a -> a.advantage(ValueTracker.defaults()));
        run(tracking);
        Algorithm stricter = tracking.with(a -> a.staleness(new StalenessRules(0, 0, 0)));
        StepRange last = new StepRange(Long.MIN_VALUE, Long.MAX_VALUE, Long.MIN_VALUE, Long.MAX_VALUE, 1, 2);

        List<ReplayedStep> steps = replay(whatIf(last, tracking, new Alternative("stricter", stricter)));

        assertThat(steps).extracting(step -> step.batch().id()).containsExactly(1L, 2L);
        assertThat(steps).allMatch(ReplayedStep::isAsRecorded);
        assertThat(steps.get(0).figures().get(1).advantages().changed()).isZero();
    }

    @Test
    void shouldRebuildTheMemoryOfAnAdvantageThatTheRunDidNotHave() throws Exception {
        Algorithm batchMean = Algorithm.defaults().with(a -> a.advantage(new BatchMean()));
        run(batchMean);

        List<ReplayedStep> steps =
                replay(whatIf(StepRange.ALL, batchMean, new Alternative("averaged", with(batchMean, HALF))));

        assertThat(steps).allMatch(ReplayedStep::isAsRecorded);
        // 1 and 0 against 0; 1 against 0 and 1 against 0.5; 0 against 0.75 and 0 against 0
        assertThat(meanAbsoluteAdvantages(steps, 1)).containsExactly(0.5, 0.75, 0.375);
    }

    @Test
    void shouldRebuildTheMemoryFromOtherRewards() throws Exception {
        Algorithm averaged = with(Algorithm.defaults(), HALF);
        run(averaged);

        List<ReplayedStep> steps = replay(whatIf(
                        StepRange.ALL, averaged, new Alternative("doubled", averaged, false, true))
                .rewardedBy(new OtherRewards(rollout -> new Verifier.Verdict(2 * rollout.getReward(), Map.of()))));

        assertThat(steps).allMatch(ReplayedStep::isAsRecorded);
        assertThat(meanAbsoluteAdvantages(steps, 0)).containsExactly(0.5, 0.75, 0.375);
        assertThat(meanAbsoluteAdvantages(steps, 1)).containsExactly(1.0, 1.5, 0.75);
    }

    @Test
    void shouldRefuseToRebuildAMemoryFromTheMiddleOfARun() {
        Algorithm batchMean = Algorithm.defaults().with(a -> a.advantage(new BatchMean()));
        run(batchMean);
        StepRange second = new StepRange(Long.MIN_VALUE, Long.MAX_VALUE, Long.MIN_VALUE, Long.MAX_VALUE, 1, 1);

        assertThatThrownBy(() -> replay(whatIf(second, batchMean, new Alternative("averaged", with(batchMean, HALF)))))
                .isInstanceOf(ArchiveException.class)
                .hasMessage("advantage.kind=ema_baseline carries baselines over batches, which are rebuilt from the"
                        + " run's first batch on, and after none comes batch 1; replay the whole run, or"
                        + " choose an advantage without state, such as batch_mean");
    }
}
