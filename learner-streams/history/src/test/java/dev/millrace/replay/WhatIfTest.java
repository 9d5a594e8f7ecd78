package dev.millrace.replay;

import static dev.millrace.topology.Samples.rollout;
import static dev.millrace.topology.Samples.score;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.corrections.advantage.PassAtKAdvantage;
import dev.millrace.corrections.algorithm.Algorithm;
import dev.millrace.corrections.algorithm.AlgorithmBuilder;
import dev.millrace.corrections.algorithm.StalenessRules;
import dev.millrace.corrections.ratio.ComparedPolicies;
import dev.millrace.corrections.rollout.Rejection;
import dev.millrace.replay.archive.ArchiveException;
import dev.millrace.replay.archive.RecordedVersions;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.Rollout;
import dev.millrace.topology.Samples;
import dev.millrace.topology.TopologyConfig;
import dev.millrace.topology.TopologyHarness;
import dev.millrace.topology.batch.BatchConfig;
import dev.millrace.weights.VersionUnavailableException;
import dev.millrace.weights.WeightsConfig;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class WhatIfTest {
    @TempDir
    Path directory;

    private TopologyHarness topology;
    private Algorithm corrections;

    /** Three batches of one group of two: rewards 0 and 1, three tokens each, the second of each far off policy. */
    @BeforeEach
    void run() {
        TopologyConfig defaults = TopologyConfig.defaults();
        corrections = Algorithm.defaults();
        topology = new TopologyHarness(
                new TopologyConfig(
                        defaults.ingress(),
                        defaults.join(),
                        defaults.groups(),
                        new BatchConfig(2, 0, BatchConfig.Order.COMPLETION, 0, false),
                        defaults.runtime()),
                corrections,
                directory);
        topology.pipe(Samples.version(3));
        topology.pipe(Samples.version(4));
        for (int g = 0; g < 3; g++) {
            for (int i = 0; i < 2; i++) {
                Rollout rollout = rollout("g" + g, i).setOrdinal(g).setReward(i).build();
                float shift = i == 0 ? 0f : -3f;
                topology.pipe(score(rollout, topology.pipe(rollout), -0.5f + shift, -1f + shift, -1.5f + shift)
                        .build());
            }
        }
    }

    @AfterEach
    void close() {
        topology.close();
    }

    private List<ReplayedStep> replay(StepRange range, int threads, Alternative... others) throws InterruptedException {
        List<Alternative> alternatives = new ArrayList<>(List.of(new Alternative("recorded", corrections)));
        alternatives.addAll(List.of(others));
        List<ReplayedStep> steps = new ArrayList<>();
        new WhatIf(MemoryRun.of(topology), range, alternatives).replay(threads, steps::add);
        return steps;
    }

    private Alternative with(String name, UnaryOperator<AlgorithmBuilder> changes) {
        return new Alternative(name, corrections.with(changes));
    }

    @Test
    void shouldGiveTheRecordedBatchesUnderTheRunsOwnCorrections() throws Exception {
        assertThat(replay(StepRange.ALL, 1))
                .extracting(step -> step.batch().id())
                .containsExactly(0L, 1L, 2L);
        assertThat(replay(StepRange.ALL, 1)).allMatch(ReplayedStep::isAsRecorded);
    }

    @Test
    void shouldDecideByTheRewardsOfAnotherVerifierAndLeaveTheRecordAsItIs() throws Exception {
        OtherRewards opposite = new OtherRewards(rollout -> new Verifier.Verdict(-rollout.getReward(), Map.of()));
        List<ReplayedStep> steps = new ArrayList<>();
        new WhatIf(
                        MemoryRun.of(topology),
                        StepRange.ALL,
                        List.of(
                                new Alternative("recorded", corrections),
                                new Alternative("opposite", corrections, false, true)))
                .rewardedBy(opposite)
                .replay(2, steps::add);

        assertThat(steps).allMatch(ReplayedStep::isAsRecorded);
        assertThat(steps.get(0).figures().get(0).advantages().changed()).isZero();
        // one of two was better than the other, and now is worse by as much
        assertThat(steps.get(0).figures().get(1).advantages().changed()).isEqualTo(2);
        assertThat(steps.get(0).figures().get(1).advantages().meanAbsolute())
                .isEqualTo(steps.get(0).figures().get(0).advantages().meanAbsolute());
        assertThat(opposite.comparison().rollouts()).isEqualTo(6);
        assertThat(opposite.comparison().sumOther())
                .isEqualTo(-opposite.comparison().sumRecorded());
    }

    @Test
    void shouldRefuseAnAlternativeOverRewardsThatNobodyGives() {
        WhatIf nobody = new WhatIf(
                MemoryRun.of(topology),
                StepRange.ALL,
                List.of(new Alternative("recorded", corrections), new Alternative("other", corrections, false, true)));
        assertThatThrownBy(() -> nobody.replay(1, step -> {})).isInstanceOf(IllegalStateException.class);
    }

    @Test
    void shouldDecideOnceAboutABatchThatIsThereOnceMore() throws Exception {
        MemoryRun run = MemoryRun.of(topology);
        run.copy(Samples.TOPICS.batches(), 1);
        run.copy(Samples.TOPICS.batches(), 1);
        List<Long> batches = new ArrayList<>();
        WhatIf whatIf = new WhatIf(run, StepRange.ALL, List.of(new Alternative("recorded", corrections)));

        whatIf.replay(1, step -> batches.add(step.batch().id()));

        assertThat(batches).containsExactly(0L, 1L, 2L);
        assertThat(whatIf.copies()).isEqualTo(2);
    }

    @Test
    void shouldLeaveOutTheBatchesThatAnAlternativeCannotDecideAbout() throws Exception {
        Alternative large = with("large", a -> a.advantage(new PassAtKAdvantage(3, false)));
        List<Long> batches = new ArrayList<>();
        WhatIf whatIf = new WhatIf(
                MemoryRun.of(topology), StepRange.ALL, List.of(new Alternative("recorded", corrections), large));

        whatIf.replay(2, step -> batches.add(step.batch().id()));

        assertThat(batches).isEmpty();
        assertThat(whatIf.undecided())
                .hasValue(
                        "3 batches are left out, the first of them batch 0 under large: stage pass_at_k cannot decide about the"
                                + " batch: pass@k needs groups of at least k sequences: group=0, sequences=2, k=3");
    }

    @Test
    void shouldShowWhomARejectionTakesOut() throws Exception {
        DecidedFigures figures = replay(
                        StepRange.ALL,
                        1,
                        with("rs", a -> a.rejection(new Rejection("seq_mean_k3", "0.5", ComparedPolicies.ANCHOR))))
                .get(0)
                .figures()
                .get(1);

        assertThat(figures.sequences()).isEqualTo(new MaskedShare(2, 1));
        assertThat(figures.tokens()).isEqualTo(new MaskedShare(6, 3));
        assertThat(figures.kept().meanWeight()).isEqualTo(1.0); // the remaining sequence is on policy
        assertThat(figures.kept().k3()).isCloseTo(0, within(1e-9));
        assertThat(figures.breakdown().sequencesBySign())
                .containsEntry(1L, new MaskedShare(1, 1))
                .containsEntry(-1L, new MaskedShare(1, 0));
        assertThat(figures.breakdown().sequencesByLength())
                .containsOnlyKeys(2L)
                .containsEntry(2L, new MaskedShare(2, 1));
        assertThat(figures.breakdown().tokensByLag()).containsOnlyKeys(1L).containsEntry(1L, new MaskedShare(6, 3));
    }

    @Test
    void shouldMaskWhatAStricterLimitOnStalenessMasks() throws Exception {
        DecidedFigures figures = replay(StepRange.ALL, 1, with("fresh", a -> a.staleness(new StalenessRules(0, 0, 0))))
                .get(2)
                .figures()
                .get(1);
        assertThat(figures.tokens()).isEqualTo(new MaskedShare(6, 6));
        assertThat(figures.kept().meanWeight()).isZero();
    }

    @Test
    void shouldGiveTheSameWithAnyNumberOfThreads() throws Exception {
        assertThat(replay(StepRange.ALL, 4)).isEqualTo(replay(StepRange.ALL, 1));
    }

    @Test
    void shouldReplayOnlyTheRange() throws Exception {
        StepRange second = new StepRange(Long.MIN_VALUE, Long.MAX_VALUE, Long.MIN_VALUE, Long.MAX_VALUE, 1, 1);
        assertThat(replay(second, 2)).extracting(step -> step.batch().id()).containsExactly(1L);
        StepRange none =
                new StepRange(5, Long.MAX_VALUE, Long.MIN_VALUE, Long.MAX_VALUE, Long.MIN_VALUE, Long.MAX_VALUE);
        assertThat(replay(none, 2)).isEmpty();
    }

    @Test
    void shouldSayWhichVersionsAreRecordedAndThatWeightsAreNotStored() {
        topology.pipe(Samples.version(5, 0));
        topology.pipeAlone(Samples.version(1_000_000, 0)); // which nothing leads to
        try (RecordedVersions versions = new RecordedVersions(MemoryRun.of(topology), WeightsConfig.defaults())) {
            assertThat(versions.newest()).hasValue(5);
            assertThat(versions.beginningOf(0)).hasValue(4);
            assertThat(versions.beginningOf(4)).isEmpty();
            assertThatThrownBy(() -> versions.manifest(6))
                    .isInstanceOf(VersionUnavailableException.class)
                    .hasMessageContaining("version 6 is not among those that are recorded: 0 to 5");
        }
    }

    @Test
    void shouldTakeASuccessorThatWasMadeUpUntilTheRightOneFollows() {
        PolicyVersion forged = Samples.version(5, 0);
        forged.getWeights().put("sha256", "11");
        topology.pipeAlone(forged);
        try (RecordedVersions versions = new RecordedVersions(MemoryRun.of(topology), WeightsConfig.defaults())) {
            assertThat(versions.newest()).hasValue(5);
            assertThat(versions.manifest(5).getWeights().getSha256()).isEqualTo("11");
        }
        topology.pipeAlone(Samples.version(5, 0));
        MemoryRun run = MemoryRun.of(topology);
        assertThatThrownBy(() -> new RecordedVersions(run, WeightsConfig.defaults()))
                .isInstanceOf(ArchiveException.class)
                .hasMessageContaining("version 5 was published twice");
    }

    @Test
    void shouldReadAVersionOnceThatWasWrittenAgainOverAnother() {
        PolicyVersion forged = Samples.version(4);
        forged.getWeights().put("sha256", "11");
        topology.pipe(forged);
        MemoryRun run = MemoryRun.of(topology);
        assertThatThrownBy(() -> new RecordedVersions(run, WeightsConfig.defaults()))
                .isInstanceOf(ArchiveException.class)
                .hasMessageContaining("version 4 was published twice");
        topology.pipe(Samples.version(4));
        try (RecordedVersions versions = new RecordedVersions(MemoryRun.of(topology), WeightsConfig.defaults())) {
            assertThat(versions.manifest(4).getWeights().getSha256()).isEqualTo("00");
        }
    }

    @Test
    void shouldSayWhichTrajectoryTheLogNoLongerHolds() {
        MemoryRun copy = MemoryRun.of(topology);
        var lost = copy.of(Samples.TOPICS.trajectories()).remove(1L);
        assertThatThrownBy(() -> replay(StepRange.ALL, 1))
                .isInstanceOf(ArchiveException.class)
                .hasMessageContaining("batch 0 names the trajectory of g0/1 at test.trajectories-0@1")
                .hasMessageContaining("no longer has it");
        copy.put(lost);
    }
}
