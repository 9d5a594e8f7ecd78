package dev.millrace.topology;

import static dev.millrace.topology.Samples.rollout;
import static dev.millrace.topology.Samples.score;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.corrections.algorithm.Algorithm;
import dev.millrace.corrections.ratio.ComparedPolicies;
import dev.millrace.corrections.ratio.MissingOldLogProbs;
import dev.millrace.corrections.rollout.Rejection;
import dev.millrace.replay.Alternative;
import dev.millrace.replay.MaskedShare;
import dev.millrace.replay.MemoryRun;
import dev.millrace.replay.ReplayedStep;
import dev.millrace.replay.StepRange;
import dev.millrace.replay.WhatIf;
import dev.millrace.schemas.BatchEntry;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.PolicyRole;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.Score;
import dev.millrace.schemas.StageReport;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.packed.PackedFloats;
import dev.millrace.topology.batch.BatchConfig;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** A group of two with rewards 0 and 1. The scorer could not load the version that sampled the second. */
class MissingOldLogProbsTest {
    private static final String WHY = "version 3 is no longer kept";

    @TempDir
    Path directory;

    private TopologyHarness topology;

    @AfterEach
    void closeAndReplay() {
        topology.close(); // checks that a replay makes the same bytes
    }

    private static Algorithm corrections(MissingOldLogProbs policy, ComparedPolicies compare) {
        return Algorithm.defaults()
                .with(a ->
                        a.rejection(new Rejection("seq_mean_k3", "10", compare)).missingOldLogProbs(policy));
    }

    private void run(Algorithm corrections) {
        TopologyConfig usual = TopologyConfig.defaults();
        topology = new TopologyHarness(
                new TopologyConfig(
                        usual.ingress(),
                        usual.join(),
                        usual.groups(),
                        new BatchConfig(2, 0, BatchConfig.Order.COMPLETION, 0, false),
                        usual.runtime()),
                corrections,
                directory);
        topology.pipe(Samples.version(3));
        topology.pipe(Samples.version(4));
        Rollout scored = rollout("g", 0).setReward(0).build();
        topology.pipe(score(scored, topology.pipe(scored), -0.5f, -1f, -1.5f).build());
        Rollout unscored = rollout("g", 1).setReward(1).build();
        topology.pipe(withoutOld(unscored, topology.pipe(unscored)));
    }

    /** Proximal is 0.1 above behavior. */
    private static Score withoutOld(Rollout rollout, long offset) {
        Score whole = score(rollout, offset, -0.4f, -0.9f, -1.4f).build();
        return score(rollout, offset)
                .setUnavailable(WHY)
                .setVectors(whole.getVectors().stream()
                        .filter(vector -> vector.getPolicy() == PolicyRole.PROXIMAL)
                        .toList())
                .build();
    }

    private static StageReport stage(LearnerBatch batch, String name) {
        return batch.getStages().stream()
                .filter(report -> report.getStage().equals(name))
                .findFirst()
                .orElseThrow();
    }

    @Test
    void shouldLetItLeaveWhereThereIsNoWayButToScoreIt() {
        run(corrections(MissingOldLogProbs.RECOMPUTE, ComparedPolicies.ANCHOR));

        assertThat(topology.outcomes()).singleElement().satisfies(outcome -> {
            assertThat(outcome.getRolloutId()).isEqualTo("g/1");
            assertThat(outcome.getReason()).isEqualTo("version-unavailable");
            assertThat(outcome.getDetail()).isEqualTo(WHY);
        });
        assertThat(topology.trajectories()).extracting(Trajectory::getRolloutId).containsExactly("g/0");
        assertThat(topology.batches()).isEmpty();
    }

    /** For every compared pair of policies: a sequence without a trained token needs no ratio. */
    @ParameterizedTest
    @EnumSource
    void shouldKeepItAsASiblingThatIsNotTrainedOn(ComparedPolicies compare) {
        run(corrections(MissingOldLogProbs.MASK, compare));

        assertThat(topology.outcomes()).isEmpty();
        LearnerBatch batch = topology.batches().get(0);
        assertThat(batch.getEntries()).extracting(BatchEntry::getRolloutId).containsExactly("g/0", "g/1");
        assertThat(batch.getEntries())
                .extracting(BatchEntry::getAdvantage)
                .as("it still is a baseline")
                .containsExactly(-0.5, 0.5);
        assertThat(batch.getEntries()).extracting(BatchEntry::getTrainedTokens).containsExactly(3, 0);
        assertThat(batch.getEntries())
                .extracting(BatchEntry::getMaskedBy)
                .containsExactly(null, "missing_old_log_probs");
        StageReport report = stage(batch, "missing_old_log_probs");
        assertThat(report.getTokensSeen()).isEqualTo(6);
        assertThat(report.getTokensChanged()).isEqualTo(3);
        assertThat(report.getSequencesChanged()).isEqualTo(1);
        assertThat(report.getValues()).containsEntry("sequences_without", 1.0).containsEntry("tokens_without", 3.0);
        for (String later : List.of("rollout_correction", "m2po", "ess")) {
            assertThat(stage(batch, later).getTokensSeen()).as(later).isEqualTo(3);
        }
        assertThat(batch.getEssRatio()).isEqualTo(1);
        assertThat(batch.getSecondMoment())
                .as("of the other alone, which is on policy")
                .isZero();
    }

    @Test
    void shouldLetItGoOnWithoutAndHaveEveryStageSeeIt() {
        run(corrections(MissingOldLogProbs.INTERPOLATE, ComparedPolicies.ANCHOR));

        LearnerBatch batch = topology.batches().get(0);
        assertThat(batch.getEntries()).extracting(BatchEntry::getTrainedTokens).containsExactly(3, 3);
        StageReport report = stage(batch, "missing_old_log_probs");
        assertThat(report.getTokensChanged())
                .as("the interpolation is the step's")
                .isZero();
        assertThat(report.getValues()).containsEntry("sequences_without", 1.0).containsEntry("tokens_without", 3.0);
        assertThat(stage(batch, "ess").getTokensSeen()).isEqualTo(6);
        assertThat(batch.getSecondMoment()).as("half of the tokens by 0.1").isCloseTo(0.01 / 2, within(1e-8));
    }

    @ParameterizedTest
    @EnumSource(names = {"INTERPOLATE", "MASK"})
    void shouldNotPutOtherWeightsLogProbsInTheirPlace(MissingOldLogProbs policy) {
        run(corrections(policy, ComparedPolicies.ANCHOR));

        Trajectory trajectory = topology.trajectories().get(1);
        assertThat(trajectory.getRolloutId()).isEqualTo("g/1");
        assertThat(trajectory.getOldLogProbs()).isNull();
        assertThat(PackedFloats.toArray(trajectory.getProximalLogProbs())).containsExactly(-0.4f, -0.9f, -1.4f);
        assertThat(trajectory.getProximalVersion()).isEqualTo(4);
        assertThat(trajectory.getScoreSource().getOffset()).isEqualTo(1);
    }

    @ParameterizedTest
    @EnumSource(names = {"INTERPOLATE", "MASK"})
    void shouldLetItLeaveWhereItHasNoProximalLogProbsEither(MissingOldLogProbs policy) {
        run(corrections(policy, ComparedPolicies.ANCHOR));
        Rollout rollout = rollout("h", 0).build();
        topology.pipe(score(rollout, topology.pipe(rollout))
                .setVectors(List.of())
                .setUnavailable(WHY)
                .build());

        assertThat(topology.outcomeNames()).containsExactly("version-unavailable h/0 rollouts@2");
    }

    @Test
    void shouldReplayUnderAnotherPolicy() throws Exception {
        Algorithm masking = corrections(MissingOldLogProbs.MASK, ComparedPolicies.ANCHOR);
        run(masking);

        List<ReplayedStep> steps = new ArrayList<>();
        new WhatIf(
                        MemoryRun.of(topology),
                        StepRange.ALL,
                        List.of(
                                new Alternative("recorded", masking),
                                new Alternative(
                                        "interpolate",
                                        corrections(MissingOldLogProbs.INTERPOLATE, ComparedPolicies.ANCHOR)),
                                new Alternative(
                                        "recompute",
                                        corrections(MissingOldLogProbs.RECOMPUTE, ComparedPolicies.STALENESS))))
                .replay(1, steps::add);

        assertThat(steps).singleElement().satisfies(step -> {
            assertThat(step.isAsRecorded()).isTrue();
            assertThat(step.figures().get(0).tokens()).isEqualTo(new MaskedShare(6, 3));
            assertThat(step.figures().get(1).tokens()).isEqualTo(new MaskedShare(6, 0));
            assertThat(step.figures().get(1).kept().meanWeight()).isCloseTo((1 + Math.exp(0.1)) / 2, within(1e-6));
            assertThat(step.figures().get(2).tokens())
                    .as("it could not have been scored, so it is not trained on")
                    .isEqualTo(new MaskedShare(6, 3));
        });
    }

    @ParameterizedTest
    @EnumSource(names = {"ENGINE_MISMATCH", "STALENESS"})
    void shouldRefuseToInterpolateWhereOldLogProbsAreCompared(ComparedPolicies compare) {
        run(corrections(MissingOldLogProbs.RECOMPUTE, compare));
        assertThatThrownBy(() -> corrections(MissingOldLogProbs.INTERPOLATE, compare))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContainingAll(
                        "missing_old_log_probs=interpolate",
                        "choose missing_old_log_probs=mask",
                        "rollout_correction compares them",
                        "mask or recompute");
    }
}
