package dev.millrace.replay.retrain;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.corrections.advantage.EmaBaseline;
import dev.millrace.corrections.algorithm.Algorithm;
import dev.millrace.corrections.algorithm.Mode;
import dev.millrace.corrections.ratio.ComparedPolicies;
import dev.millrace.corrections.rollout.Rejection;
import dev.millrace.learner.batch.TrainingBatch;
import dev.millrace.learner.step.OptimizerConfig;
import dev.millrace.learner.step.StepConfig;
import dev.millrace.policy.session.Engine;
import dev.millrace.policy.weights.Weights;
import dev.millrace.replay.OtherRewards;
import dev.millrace.replay.Verifier;
import dev.millrace.replay.Verifier.Verdict;
import dev.millrace.replay.archive.ArchiveException;
import dev.millrace.replay.archive.RecordedRun;
import dev.millrace.replay.archive.RecordedVersions;
import dev.millrace.replay.retrain.Retraining.RetrainListener;
import dev.millrace.schemas.LogCoordinates;
import dev.millrace.schemas.Trajectory;
import dev.millrace.weights.VersionHash;
import dev.millrace.weights.WeightsConfig;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalDouble;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

class RetrainingTest {
    private static final Variant OWN = variant("recorded", Algorithm.defaults(), 1e-2);
    private static LearntRun learnt;

    /** Output of a re-train, in order. */
    static final class Heard implements RetrainListener {
        final List<RetrainedStep> steps = new ArrayList<>();
        final List<Long> evaluatedAt = new ArrayList<>();
        final List<List<OptionalDouble>> rewards = new ArrayList<>();
        final List<String> endings = new ArrayList<>();

        @Override
        public void step(RetrainedStep step) {
            steps.add(step);
        }

        @Override
        public void evaluated(long version, List<OptionalDouble> found) {
            evaluatedAt.add(version);
            rewards.add(found);
        }

        @Override
        public void ended(int variant, long version, String why) {
            endings.add(variant + " at " + version + ": " + why);
        }

        List<VariantStep> of(int variant) {
            return steps.stream()
                    .map(step -> step.variants().get(variant).orElseThrow())
                    .toList();
        }
    }

    @BeforeAll
    static void learn() {
        learnt = new LearntRun(OWN);
    }

    static Variant variant(String name, Algorithm corrections, double learningRate) {
        OptimizerConfig usual = OptimizerConfig.defaults();
        return new Variant(
                name,
                corrections,
                StepConfig.defaults()
                        .withCut(64, 2)
                        .withOptimizer(new OptimizerConfig(
                                learningRate,
                                0,
                                usual.decay(),
                                usual.beta1(),
                                usual.beta2(),
                                usual.epsilon(),
                                usual.weightDecay(),
                                usual.maxGradNorm())));
    }

    /** Weights and masks by what the recorded noise of 0.02 is too much for. */
    static Algorithm strict() {
        return Algorithm.defaults()
                .with(a -> a.rejection(new Rejection("seq_mean_k3", "1e-5", ComparedPolicies.ANCHOR)));
    }

    private static Heard retrain(Optional<PolicyEvaluation> trials, long from, long to, Variant... variants) {
        return retrain(learnt.run, trials, from, to, variants);
    }

    static Heard retrain(RecordedRun run, Optional<PolicyEvaluation> trials, long from, long to, Variant... variants) {
        return retrain(run, trials, from, to, RetrainingTest::asRecorded, variants);
    }

    private static Verdict asRecorded(Trajectory rollout) {
        return new Verdict(rollout.getReward(), rollout.getRewardComponents());
    }

    private static Heard retrain(
            RecordedRun run,
            Optional<PolicyEvaluation> trials,
            long from,
            long to,
            Verifier others,
            Variant... variants) {
        Heard heard = new Heard();
        try (RecordedVersions versions = new RecordedVersions(run, WeightsConfig.defaults())) {
            Retraining retraining = new Retraining(
                            run, versions, Engine.cpu(), List.of(variants), Optional.empty(), trials, 3)
                    .rewardedBy(new OtherRewards(others));
            retraining.replay(VersionInterval.of(from, to, versions), heard);
            assertThat(retraining.passed()).isEqualTo(to - from);
        }
        return heard;
    }

    @Test
    void shouldMakeTheRecordedWeightsAgainBitForBitFromEveryVersion() {
        for (long from = 0; from < LearntRun.STEPS; from++) {
            List<VariantStep> steps =
                    retrain(Optional.empty(), from, LearntRun.STEPS, OWN).of(0);
            assertThat(steps)
                    .extracting(VariantStep::weightsSha256)
                    .isEqualTo(learnt.hashes.subList((int) from + 1, LearntRun.STEPS + 1));
            assertThat(steps).allSatisfy(step -> {
                assertThat(step.isAsRecorded()).isTrue();
                assertThat(step.distance()).isZero();
                assertThat(step.estimates().klToRecorded()).isZero();
                assertThat(step.estimates().reward()).isBetween(0.0, 1.0);
                assertThat(step.update().gradNorm()).isPositive();
            });
        }
    }

    @Test
    void shouldLearnFromTheRecordedRolloutsUnderOtherRewards() {
        Heard same = retrain(Optional.empty(), 0, LearntRun.STEPS, OWN, OWN.rewarded());
        assertThat(same.of(1)).as("a verifier that says what the record says").allMatch(VariantStep::isAsRecorded);

        Heard other = retrain(
                learnt.run,
                Optional.empty(),
                0,
                LearntRun.STEPS,
                rollout -> new Verdict(1 - rollout.getReward(), Map.of()),
                OWN,
                OWN.rewarded());
        assertThat(other.of(0)).allMatch(VariantStep::isAsRecorded);
        for (int step = 0; step < LearntRun.STEPS; step++) {
            VariantStep own = other.of(0).get(step);
            VariantStep rewarded = other.of(1).get(step);
            assertThat(rewarded.isAsRecorded()).isFalse();
            assertThat(rewarded.batchReward()).isCloseTo(1 - own.batchReward(), within(1e-9));
            assertThat(rewarded.rolloutsAsRecorded()).isLessThan(LearntRun.MEMBERS);
        }
        assertThat(other.of(1).get(0).estimates().reward())
                .as("of the same policy, by the rewards that it sees")
                .isCloseTo(1 - other.of(0).get(0).estimates().reward(), within(1e-9));
    }

    /** Only version 2 has the optimizer's state, and version 0, whose state is nothing but zeros. */
    @Test
    void shouldLearnTheStateOfAVersionFromTheCheckpointBeforeIt() {
        LearntRun rare = new LearntRun(OWN, version -> version == 2);
        assertThat(rare.hashes).isEqualTo(learnt.hashes);
        for (long from = 0; from < LearntRun.STEPS; from++) {
            assertThat(retrain(rare.run, Optional.empty(), from, LearntRun.STEPS, OWN)
                            .of(0))
                    .as("from version %d", from)
                    .allMatch(VariantStep::isAsRecorded);
        }
        Variant faster = variant("recorded", OWN.algorithm(), 2e-2);
        assertThatThrownBy(() -> retrain(rare.run, Optional.empty(), 3, 4, faster))
                .isInstanceOf(ArchiveException.class)
                .hasMessageStartingWith("the optimiser's state of version 3 must be retrained from version 2, and here")
                .hasMessageEndingWith("start with --from-version 2");
    }

    @Test
    void shouldShowWhereAnotherConfigurationPartsFromTheRecord() {
        List<VariantStep> steps = retrain(Optional.empty(), 1, 3, variant("recorded", OWN.algorithm(), 2e-2))
                .of(0);
        assertThat(steps).noneMatch(VariantStep::isAsRecorded);
        assertThat(steps)
                .extracting(VariantStep::distance)
                .as("from what the log holds")
                .allMatch(distance -> distance > 0);
        assertThat(steps.get(0).estimates().klToRecorded())
                .as("before its first step it is the recorded policy")
                .isZero();
        assertThat(steps.get(1).estimates().klToRecorded())
                .as("whose log-probs are not at hand any more")
                .isNaN();
    }

    @Test
    void shouldLearnSomethingElseUnderOtherCorrections() {
        Heard heard = retrain(Optional.empty(), 0, LearntRun.STEPS, OWN, variant("strict", strict(), 1e-2));
        List<VariantStep> own = heard.of(0);
        List<VariantStep> strict = heard.of(1);
        assertThat(own).as("the others change nothing of it").allMatch(VariantStep::isAsRecorded);
        for (int i = 0; i < LearntRun.STEPS; i++) {
            assertThat(strict.get(i).isAsRecorded()).isFalse();
            assertThat(strict.get(i).update().tokensTrained())
                    .isLessThan(own.get(i).update().tokensTrained());
        }
        assertThat(strict.get(0).estimates().klToRecorded()).isZero();
        assertThat(strict.get(2).estimates().klToRecorded()).isPositive();
        assertThat(strict.get(3).distance()).isGreaterThan(strict.get(0).distance());
        assertThat(heard.steps).extracting(RetrainedStep::version).containsExactly(1L, 2L, 3L, 4L);
    }

    @Test
    void shouldDecideAnewUnderOtherCorrectionsWhereTheRecordedDecisionsWouldStand() {
        Variant own = new Variant("recorded", OWN.algorithm().with(a -> a.mode(Mode.RECORDED)), OWN.step());
        Variant other = new Variant("strict", strict(), own.step());
        Heard heard = retrain(Optional.empty(), 0, 1, own, other);
        assertThat(heard.of(1).get(0).update().tokensTrained())
                .isLessThan(heard.of(0).get(0).update().tokensTrained());
    }

    @Test
    void shouldTryThePoliciesEverySoManyStepsAndTheSameWeightsOnce() {
        List<String> tried = new ArrayList<>();
        PolicyEvaluation trials = new PolicyEvaluation() {
            @Override
            public double meanReward(Weights weights, long version) {
                tried.add(version + " " + VersionHash.of(weights));
                return version / 10.0;
            }

            @Override
            public TrainingBatch onPolicy(Weights weights, long version) {
                throw new AssertionError("a re-train needs no gradient of others");
            }
        };
        Heard heard = retrain(
                Optional.of(trials),
                0,
                LearntRun.STEPS,
                OWN,
                variant("same", OWN.algorithm(), 1e-2),
                variant("strict", strict(), 1e-2));
        assertThat(heard.evaluatedAt).containsExactly(0L, 3L, 4L);
        assertThat(heard.rewards)
                .allSatisfy(rewards -> assertThat(rewards).hasSize(3).allMatch(OptionalDouble::isPresent));
        assertThat(tried).hasSize(1 + 2 + 2).doesNotHaveDuplicates().contains("3 " + learnt.hashes.get(3));
    }

    @Test
    void shouldRefuseToTryPoliciesInATaskThatDidNotRewardTheRollouts() {
        PolicyEvaluation task = new PolicyEvaluation() {
            @Override
            public double meanReward(Weights weights, long version) {
                return 0.5;
            }

            @Override
            public TrainingBatch onPolicy(Weights weights, long version) {
                throw new AssertionError("it is refused before");
            }
        };
        var own = learnt.with(
                Trajectory.newBuilder(learnt.trajectories.get(3))
                        .setRewardSource(new LogCoordinates("test.rewards", 0, 0L))
                        .build(),
                3);
        try (RecordedVersions versions = new RecordedVersions(learnt.run, WeightsConfig.defaults())) {
            String why = "rollout " + learnt.trajectories.get(3).getRolloutId()
                    + " has a reward record (topic rewards), and newly sampled rollouts would get the task"
                    + " environment's reward, a different one; ";
            assertThatThrownBy(() -> retrain(Optional.of(task), 0, 1, OWN))
                    .isInstanceOf(ArchiveException.class)
                    .hasMessage(why + "try no policies (--evaluation-prompts 0)");
            assertThat(retrain(Optional.empty(), 0, 1, OWN).of(0)).allMatch(VariantStep::isAsRecorded);
            StepGradients gradients =
                    new StepGradients(learnt.run, versions, Engine.cpu(), List.of(OWN), Optional.of(task));
            assertThatThrownBy(() -> gradients.replay(new VersionInterval(0, 1), every -> true, step -> {}))
                    .isInstanceOf(ArchiveException.class)
                    .hasMessage(why + "leave the on-policy gradient out (--reference-groups 0)");
        } finally {
            learnt.run.put(own);
        }
    }

    @Test
    void shouldEndACourseThatMakesNoNumbersAndGoOnWithTheOthers() {
        Heard heard = retrain(Optional.empty(), 0, LearntRun.STEPS, OWN, variant("wild", OWN.algorithm(), 1e38));
        assertThat(heard.endings).singleElement().asString().startsWith("1 at ");
        assertThat(heard.of(0)).allMatch(VariantStep::isAsRecorded);
        assertThat(heard.steps.get(LearntRun.STEPS - 1).variants().get(1)).isEmpty();
    }

    @Test
    void shouldNameTheBatchThatIsNotThere() {
        var lost = learnt.run.of("test.batches").remove(1L);
        try {
            Heard heard = new Heard();
            try (RecordedVersions versions = new RecordedVersions(learnt.run, WeightsConfig.defaults())) {
                Retraining retraining = new Retraining(
                        learnt.run, versions, Engine.cpu(), List.of(OWN), Optional.empty(), Optional.empty(), 3);
                assertThatThrownBy(() -> retraining.replay(new VersionInterval(0, 3), heard))
                        .isInstanceOf(ArchiveException.class)
                        .hasMessageContaining("the batch that made version 2 is not on test.batches");
            }
            assertThat(heard.steps).as("before anything is learnt").isEmpty();
        } finally {
            learnt.run.put(lost);
        }
    }

    @Test
    void shouldSayWhichVersionsThereAre() {
        try (RecordedVersions versions = new RecordedVersions(learnt.run, WeightsConfig.defaults())) {
            assertThat(VersionInterval.of(null, null, versions)).isEqualTo(new VersionInterval(0, LearntRun.STEPS));
            assertThatThrownBy(() -> VersionInterval.of(3L, 3L, versions))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessage(
                            "no step leads from version 3 to version 3; the recorded versions are 0 to 4, and --from-version must be below --to-version");
            assertThatThrownBy(() -> VersionInterval.of(0L, 9L, versions)).hasMessageContaining("0 to 4");
        }
    }

    @Test
    void shouldFindTheGradientThatTheStepWasTakenBy() {
        List<GradientStep> found = new ArrayList<>();
        List<VariantStep> taken =
                retrain(Optional.empty(), 0, LearntRun.STEPS, OWN).of(0);
        try (RecordedVersions versions = new RecordedVersions(learnt.run, WeightsConfig.defaults())) {
            StepGradients gradients = new StepGradients(
                    learnt.run,
                    versions,
                    Engine.cpu(),
                    List.of(OWN, variant("strict", strict(), 1e-2)),
                    Optional.empty());
            gradients.replay(new VersionInterval(0, LearntRun.STEPS), version -> version != 2, found::add);
        }
        assertThat(found).extracting(GradientStep::version).containsExactly(0L, 1L, 3L);
        for (GradientStep step : found) {
            VariantGradient own = step.variants().get(0).orElseThrow();
            assertThat(own.norm())
                    .isCloseTo(taken.get((int) step.version()).update().gradNorm(), within(1e-6 * own.norm()));
            assertThat(own.sga().signal() + own.sga().noise()).isCloseTo(own.norm() * own.norm(), within(1e-9));
            assertThat(own.sga().noise()).isPositive();
            assertThat(own.sga().progress()).as("without a reference").isNaN();
            assertThat(step.updateNorm()).isPositive();
            assertThat(step.variants().get(1).orElseThrow().tokensTrained()).isLessThan(own.tokensTrained());
        }
        assertThat(found.get(0).variants().get(0).orElseThrow().cosineToUpdate())
                .as("AdamW's first step goes down the gradient's signs")
                .isBetween(0.2, 1.0);
    }

    @Test
    void shouldRebuildWhatAnAdvantageKeepsFromTheRunsFirstBatchOnOrRefuse() {
        Variant averaged = variant(
                "averaged",
                Algorithm.defaults().with(a -> a.advantage(new EmaBaseline(0.5, EmaBaseline.Key.PROMPT))),
                1e-2);
        Heard heard = retrain(Optional.empty(), 0, LearntRun.STEPS, OWN, averaged);
        assertThat(heard.endings).isEmpty();
        assertThat(heard.of(1))
                .hasSize(LearntRun.STEPS)
                .noneMatch(VariantStep::isAsRecorded)
                .isEqualTo(retrain(Optional.empty(), 0, LearntRun.STEPS, OWN, averaged)
                        .of(1));

        assertThatThrownBy(() -> retrain(Optional.empty(), 2, LearntRun.STEPS, OWN, averaged))
                .isInstanceOf(ArchiveException.class)
                .hasMessageContaining("after none comes batch 2; replay the whole run");
    }
}
