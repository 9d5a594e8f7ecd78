package dev.millrace.topology;

import static dev.millrace.topology.Samples.TOPICS;
import static dev.millrace.topology.Samples.rollout;
import static dev.millrace.topology.Samples.score;
import static dev.millrace.topology.Samples.version;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.tuple;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.corrections.CorrectionUnit;
import dev.millrace.corrections.advantage.Grpo;
import dev.millrace.corrections.advantage.PassAtKAdvantage;
import dev.millrace.corrections.algorithm.Algorithm;
import dev.millrace.corrections.algorithm.StalenessRules;
import dev.millrace.corrections.stage.MaskStage;
import dev.millrace.corrections.stage.StageBatch;
import dev.millrace.corrections.stage.StageOutcome;
import dev.millrace.corrections.vcpo.Ess;
import dev.millrace.schemas.BatchEntry;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.Outcome;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.StageReport;
import dev.millrace.schemas.VersionSpan;
import dev.millrace.schemas.packed.PackedFloats;
import dev.millrace.schemas.packed.PackedMask;
import dev.millrace.schemas.rollout.VectorCheck;
import dev.millrace.topology.batch.BatchConfig;
import dev.millrace.topology.batch.GroupsConfig;
import dev.millrace.topology.batch.GroupsConfig.ZeroVariance;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class GroupRulesTest {
    private static final TopologyConfig DEFAULTS = TopologyConfig.defaults();
    private static final GroupsConfig GROUPS = new GroupsConfig(60_000, 2, 10_000, 600_000, ZeroVariance.KEEP);
    private static final GroupsConfig DROPPING = new GroupsConfig(60_000, 2, 10_000, 600_000, ZeroVariance.DROP);
    private static final Algorithm STALE_AFTER_2 =
            Algorithm.defaults().with(a -> a.staleness(new StalenessRules(2, 0, 0)));

    @TempDir
    Path directory;

    private TopologyHarness topology;

    @AfterEach
    void close() {
        topology.close();
    }

    private void open(int sequences, GroupsConfig groups, Algorithm algorithm) {
        topology = new TopologyHarness(
                new TopologyConfig(
                        DEFAULTS.ingress(),
                        DEFAULTS.join(),
                        groups,
                        new BatchConfig(sequences, 0, BatchConfig.Order.COMPLETION, 0, false),
                        DEFAULTS.runtime()),
                algorithm,
                directory);
    }

    private void open(int sequences) {
        open(sequences, GROUPS, Algorithm.defaults());
    }

    private void pipeScored(Rollout rollout) {
        topology.pipe(score(rollout, topology.pipe(rollout)).build());
    }

    private void pipeGroup(String groupId, double... rewards) {
        for (int i = 0; i < rewards.length; i++) {
            pipeScored(rollout(groupId, i)
                    .setGroupSize(rewards.length)
                    .setReward(rewards[i])
                    .build());
        }
    }

    private static List<String> ids(LearnerBatch batch) {
        return batch.getEntries().stream().map(BatchEntry::getRolloutId).toList();
    }

    private static StageReport stage(LearnerBatch batch, String name) {
        return batch.getStages().stream()
                .filter(s -> s.getStage().equals(name))
                .findFirst()
                .orElseThrow();
    }

    /** As a plug-in's stage: it fails where a reward is 0.25. */
    public record Brittle() implements MaskStage {
        @Override
        public CorrectionUnit unit() {
            return CorrectionUnit.TOKEN;
        }

        @Override
        public StageOutcome apply(StageBatch batch) {
            if (Arrays.stream(batch.rewards()).anyMatch(reward -> reward == 0.25)) {
                throw new ArithmeticException("a reward of 0.25");
            }
            return batch.observed(this, Map.of("not_computed", Double.NaN, "computed", 1.0));
        }
    }

    @Test
    void shouldGiveUpTheBatchOnWhichAStageFailsAndGoOnWithTheNext() {
        open(4, GROUPS, Algorithm.defaults().with(a -> a.masks(new Brittle())));
        pipeGroup("a", 0, 1);
        pipeGroup("b", 0.25, 1);
        String why =
                "batch 0 is given up: stage brittle cannot decide about the batch: ArithmeticException: a reward of 0.25";
        assertThat(topology.outcomes())
                .extracting(Outcome::getReason, Outcome::getStage, Outcome::getRolloutId, Outcome::getDetail)
                .containsExactly(
                        tuple("stage-failed", "groups", "a/0", why),
                        tuple("stage-failed", "groups", "a/1", why),
                        tuple("stage-failed", "groups", "b/0", why),
                        tuple("stage-failed", "groups", "b/1", why));
        assertThat(topology.batches()).isEmpty();
        assertThat(topology.alarms.active()).singleElement().satisfies(alarm -> {
            assertThat(alarm.name()).isEqualTo("batch-failed");
            assertThat(alarm.text()).startsWith(why + "; its rollouts are dropped as stage-failed");
        });

        pipeGroup("c", 0, 1);
        pipeGroup("d", 0, 1);
        LearnerBatch next = topology.batches().get(0);
        assertThat(next.getBatchId()).isZero();
        assertThat(ids(next)).containsExactly("c/0", "c/1", "d/0", "d/1");
        assertThat(stage(next, "brittle").getValues()).containsOnly(Map.entry("computed", 1.0));
        assertThat(topology.outcomes()).isEmpty();
        assertThat(topology.alarms.active()).isEmpty();
    }

    @Test
    void shouldGiveUpAGroupThatIsTooSmallForPassAtK() {
        open(2, GROUPS, Algorithm.defaults().with(a -> a.advantage(new PassAtKAdvantage(3, false))));
        pipeGroup("small", 0, 1);
        assertThat(topology.outcomes())
                .hasSize(2)
                .allSatisfy(outcome -> assertThat(outcome.getDetail())
                        .endsWith("stage pass_at_k cannot decide about the batch: pass@k needs groups of at least k"
                                + " sequences: group=0, sequences=2, k=3"));
        pipeGroup("large", 0, 1, 1);
        assertThat(ids(topology.batches().get(0))).containsExactly("large/0", "large/1", "large/2");
    }

    @Test
    void shouldDeadLetterTheRolloutWithAStandInForMinusInfinityAndNothingElse() {
        open(2);
        topology.pipe(rollout("g", 0)
                .setGroupSize(3)
                .setBehaviorLogProbs(PackedFloats.of(-0.5f, -9999f, -1f))
                .build());
        assertThat(topology.deadLetterNames()).containsExactly("log-probs behavior_log_probs[1]");
        pipeScored(rollout("g", 1).setGroupSize(3).setReward(0).build());
        pipeScored(rollout("g", 2).setGroupSize(3).build());
        topology.idle(Duration.ofSeconds(62));
        assertThat(ids(topology.batches().get(0))).containsExactly("g/1", "g/2");
    }

    @Test
    void shouldReportEveryFigureOfTheLeastLogProb() {
        open(2);
        Rollout far = rollout("g", 0)
                .setBehaviorLogProbs(PackedFloats.of(-0.5f, VectorCheck.LEAST_LOG_PROB, -1f))
                .build();
        topology.pipe(score(far, topology.pipe(far), -0.5f, 0f, -1f).build());
        pipeScored(rollout("g", 1).setReward(0).build());
        assertThat(stage(topology.batches().get(0), "rollout_correction").getValues())
                .hasEntrySatisfying("rollout_corr/k3_kl", k3 -> assertThat(k3).isBetween(1e150, 1e153));
    }

    @Test
    void shouldTakeGroupsInTheOrderInWhichTheyBecomeComplete() {
        open(4);
        Rollout early = rollout("early", 0).setReward(0).build();
        pipeScored(early);
        pipeGroup("late", 0, 1);
        pipeScored(rollout("early", 1).build());
        assertThat(ids(topology.batches().get(0))).containsExactly("late/0", "late/1", "early/0", "early/1");
    }

    @Test
    void shouldPutMembersInTheOrderOfTheirIndexes() {
        open(2);
        pipeScored(rollout("g", 1).build());
        pipeScored(rollout("g", 0).setReward(0).build());
        assertThat(ids(topology.batches().get(0))).containsExactly("g/0", "g/1");
    }

    @Test
    void shouldCutWholeGroupsAtOrAboveTheSize() {
        open(3);
        pipeGroup("a", 0, 1);
        assertThat(topology.batches()).isEmpty();
        pipeGroup("b", 0, 1);
        assertThat(ids(topology.batches().get(0))).hasSize(4);
        pipeGroup("c", 0, 1, 1);
        LearnerBatch second = topology.batches().get(0);
        assertThat(second.getBatchId()).isEqualTo(1);
        assertThat(ids(second)).containsExactly("c/0", "c/1", "c/2");
    }

    @Test
    void shouldTrainOnAShortGroupAfterItsDeadlineIfItHasEnoughMembers() {
        open(2);
        pipeScored(rollout("g", 0).setGroupSize(3).setReward(0).build());
        pipeScored(rollout("g", 2).setGroupSize(3).setReward(1).build());
        topology.idle(Duration.ofSeconds(59));
        assertThat(topology.batches()).isEmpty();
        topology.idle(Duration.ofSeconds(3));
        LearnerBatch batch = topology.batches().get(0);
        assertThat(ids(batch)).containsExactly("g/0", "g/2");
        assertThat(batch.getEntries().get(1).getAdvantage()).isEqualTo(0.5);
    }

    @Test
    void shouldDropAShortGroupThatHasTooFewMembers() {
        open(2);
        pipeScored(rollout("g", 0).setGroupSize(3).build());
        topology.idle(Duration.ofSeconds(62));
        Outcome outcome = topology.outcomes().get(0);
        assertThat(outcome.getReason()).isEqualTo("group-short");
        assertThat(outcome.getStage()).isEqualTo("groups");
        assertThat(outcome.getSource().getTopic()).isEqualTo(TOPICS.rollouts());
        assertThat(outcome.getDetail()).contains("1 of 3", "min_size 2");
        assertThat(topology.batches()).isEmpty();
    }

    @Test
    void shouldCallAMemberLateThatComesAfterItsGroupWasClosed() {
        open(2);
        pipeScored(rollout("g", 0).setGroupSize(3).build());
        topology.idle(Duration.ofSeconds(62));
        topology.outcomes();
        pipeScored(rollout("g", 1).setGroupSize(3).build());
        assertThat(topology.outcomeNames()).containsExactly("group-short g/1 rollouts@1");
    }

    @Test
    void shouldKeepGroupsWithoutVarianceWhereAsked() {
        open(2);
        pipeGroup("g", 1, 1);
        LearnerBatch batch = topology.batches().get(0);
        assertThat(batch.getEntries()).extracting(BatchEntry::getAdvantage).containsExactly(0.0, 0.0);
        assertThat(stage(batch, "grpo").getValues().get("zero_sequences")).isEqualTo(2);
    }

    @Test
    void shouldDropGroupsWithoutVarianceWhereAsked() {
        open(2, DROPPING, Algorithm.defaults());
        pipeGroup("g", 1, 1);
        assertThat(topology.outcomeNames())
                .containsExactly("zero-variance g/0 rollouts@0", "zero-variance g/1 rollouts@1");
        pipeGroup("h", 0, 1);
        assertThat(ids(topology.batches().get(0))).containsExactly("h/0", "h/1");
    }

    @Test
    void shouldAskOncePerGroupForItsPromptToBeSampledAgain() {
        open(2, new GroupsConfig(60_000, 2, 10_000, 600_000, ZeroVariance.RESAMPLE), Algorithm.defaults());
        pipeGroup("g", 1, 1, 1);
        assertThat(topology.outcomeNames())
                .containsExactly(
                        "resample g/0 rollouts@0", "zero-variance g/1 rollouts@1", "zero-variance g/2 rollouts@2");
        assertThat(topology.count("millrace.topology.outcomes", "resample")).isEqualTo(1);
        pipeGroup("h", 0, 1);
        assertThat(ids(topology.batches().get(0))).containsExactly("h/0", "h/1");
        topology.idle(Duration.ofMinutes(20));
        assertThat(topology.outcomes()).as("nothing of the group is left").isEmpty();
    }

    @Test
    void shouldMaskStaleTokensAndKeepTheirSequencesAsSiblings() {
        open(2, GROUPS, STALE_AFTER_2);
        topology.pipe(version(6));
        topology.later(Duration.ofSeconds(1));
        pipeScored(rollout("g", 0)
                .setReward(0)
                .setVersionSpans(List.of(new VersionSpan(3L, 0, 2), new VersionSpan(4L, 2, 3)))
                .build());
        pipeScored(rollout("g", 1)
                .setReward(1)
                .setVersionSpans(List.of(new VersionSpan(3L, 0, 3)))
                .build());
        LearnerBatch batch = topology.batches().get(0);
        assertThat(batch.getAssembledVersion()).isEqualTo(6);
        assertThat(PackedMask.toArray(batch.getEntries().get(0).getMask())).containsExactly(0, 0, 1);
        assertThat(batch.getEntries().get(0).getMaskedBy()).isNull();
        assertThat(batch.getEntries().get(0).getOldestVersion()).isEqualTo(3);
        assertThat(batch.getEntries().get(1).getTrainedTokens()).isZero();
        assertThat(batch.getEntries().get(1).getMaskedBy()).isEqualTo("staleness");
        assertThat(batch.getEntries().get(1).getAdvantage()).isEqualTo(0.5);
        assertThat(batch.getStalenessMax()).isEqualTo(3);
        assertThat(batch.getStalenessMean()).isCloseTo((5 * 3 + 2) / 6.0, within(1e-12));
        StageReport report = stage(batch, "staleness");
        assertThat(report.getTokensSeen()).isEqualTo(6);
        assertThat(report.getTokensChanged()).isEqualTo(5);
        assertThat(report.getSequencesChanged()).isEqualTo(2);
    }

    @Test
    void shouldLetAGroupLeaveThatIsStaleThroughAndThrough() {
        open(2, GROUPS, STALE_AFTER_2);
        topology.pipe(version(6));
        topology.later(Duration.ofSeconds(1));
        pipeGroup("g", 0, 1);
        assertThat(topology.outcomeNames()).containsExactly("stale g/0 rollouts@0", "stale g/1 rollouts@1");
        assertThat(topology.batches()).isEmpty();
    }

    @Test
    void shouldJudgeByTheVersionThatWasCurrentThenHoweverFarVersionsAreReadAhead() {
        open(2, GROUPS, STALE_AFTER_2);
        topology.pipe(version(4));
        Rollout first = rollout("g", 0).setReward(0).build();
        Rollout second = rollout("g", 1).build();
        long firstAt = topology.pipe(first);
        long secondAt = topology.pipe(second);
        topology.later(Duration.ofSeconds(30));
        topology.pipe(version(9));
        topology.later(Duration.ofSeconds(-30));
        topology.pipe(score(first, firstAt).build());
        topology.pipe(score(second, secondAt).build());
        assertThat(topology.batches())
                .singleElement()
                .satisfies(batch -> assertThat(batch.getAssembledVersion()).isEqualTo(4));
    }

    @Test
    void shouldBelieveARolloutThatShowsANewerVersionThanTheClocksSay() {
        open(2);
        topology.pipe(version(1));
        topology.later(Duration.ofSeconds(5));
        topology.pipe(version(5));
        topology.later(Duration.ofSeconds(-5));
        pipeGroup("g", 0, 1);
        assertThat(topology.batches().get(0).getAssembledVersion()).isEqualTo(4); // its proximal version
    }

    @Test
    void shouldWaitForAVersionThatIsOnItsWay() {
        open(2);
        topology.pipe(version(3));
        pipeGroup("g", 0, 1);
        assertThat(topology.batches()).isEmpty();
        topology.pipe(version(4));
        assertThat(ids(topology.batches().get(0))).containsExactly("g/0", "g/1");
    }

    @Test
    void shouldNotBelieveAVersionThatWasNeverPublished() {
        open(2);
        topology.pipe(version(4));
        pipeScored(rollout("g", 0)
                .setGroupSize(3)
                .setVersionSpans(List.of(new VersionSpan(1_000_000L, 0, 3)))
                .build());
        pipeScored(rollout("g", 1).setGroupSize(3).setReward(0).build());
        pipeScored(rollout("g", 2).setGroupSize(3).build());
        pipeGroup("h", 0, 1);
        assertThat(ids(topology.batches().get(0))).containsExactly("h/0", "h/1");
        topology.idle(Duration.ofSeconds(62));
        assertThat(topology.outcomes()).singleElement().satisfies(outcome -> {
            assertThat(outcome.getReason()).isEqualTo("version-unavailable");
            assertThat(outcome.getRolloutId()).isEqualTo("g/0");
            assertThat(outcome.getDetail()).contains("version 1000000");
        });
        LearnerBatch rest = topology.batches().get(0);
        assertThat(ids(rest)).containsExactly("g/1", "g/2");
        assertThat(rest.getAssembledVersion()).isEqualTo(4);
    }

    @Test
    void shouldMaskHarmfulTokensByTheSecondMoment() {
        open(2);
        Rollout good = rollout("g", 0).setReward(1).build();
        Rollout bad = rollout("g", 1).setReward(0).build();
        // log ratios: good 0, 0, +1 (harmful: A > 0 and ratio > 1); bad +0.25 (not harmful), 0, 0
        topology.pipe(score(good, topology.pipe(good), -0.5f, -1f, -0.5f).build());
        topology.pipe(score(bad, topology.pipe(bad), -0.25f, -1f, -1.5f).build());
        LearnerBatch batch = topology.batches().get(0);
        assertThat(batch.getSecondMoment()).isCloseTo((1 + 0.0625) / 6, within(1e-9));
        StageReport m2po = stage(batch, "m2po");
        assertThat(m2po.getValues().get("candidates")).isEqualTo(1);
        // the only candidate is kept, since the rule always keeps the smallest
        assertThat(m2po.getValues().get("within_threshold")).isZero();
        assertThat(m2po.getTokensChanged()).isZero();
        // sequence weights e^1 and e^0.25
        double a = Math.exp(1);
        double b = Math.exp(0.25);
        double ess = (a + b) * (a + b) / (a * a + b * b) / 2;
        assertThat(batch.getEssRatio()).isCloseTo(ess, within(1e-6));
        assertThat(batch.getEssRatioTruncated()).isCloseTo((2 + b) * (2 + b) / (4 + b * b) / 2, within(1e-6));
        assertThat(batch.getStepScale()).isCloseTo(Math.sqrt(ess), within(1e-6));
    }

    @Test
    void shouldDivideByTheStandardDeviationWhereAsked() {
        open(
                2,
                GROUPS,
                Algorithm.defaults()
                        .with(a ->
                                a.advantage(new Grpo(true)).masks().ess(new Ess(Ess.Rule.NONE, Ess.Weights.RAW, 1))));
        pipeGroup("g", 0, 1);
        LearnerBatch batch = topology.batches().get(0);
        double std = Math.sqrt(0.5); // of 0 and 1, with n - 1
        assertThat(batch.getEntries().get(1).getAdvantage()).isCloseTo(0.5 / (std + 1e-6), within(1e-12));
        assertThat(batch.getStages())
                .extracting(StageReport::getStage)
                .containsExactly(
                        "order", "staleness", "token_tis", "grpo", "rollout_correction", "second_moment", "ess");
        assertThat(batch.getStepScale()).isEqualTo(1.0);
    }

    @Test
    void shouldTakeSequencesThatHaveNothingToTrainOnAlongWithOthers() {
        open(2);
        for (int i = 0; i < 2; i++) {
            pipeScored(rollout("empty", i)
                    .setReward(i)
                    .setMask(PackedMask.of((byte) 0, (byte) 0, (byte) 0))
                    .build());
        }
        assertThat(topology.batches()).isEmpty();
        pipeGroup("g", 0, 1);
        LearnerBatch batch = topology.batches().get(0);
        assertThat(ids(batch)).containsExactly("empty/0", "empty/1", "g/0", "g/1");
        assertThat(batch.getEntries().get(0).getMaskedBy()).isEqualTo("rollout");
        assertThat(batch.getEntries().get(0).getMask()).isNull();
    }

    @Test
    void shouldDeadLetterForeignRecordsOnItsOwnTopics() {
        open(2);
        topology.pipe(TOPICS.policyVersions(), "policy/2/1", new byte[] {7});
        topology.pipe(
                TOPICS.policyVersions(),
                "policy/2/2",
                topology.bytes(TOPICS.policyVersions(), version(1), dev.millrace.schemas.PolicyVersion.class));
        topology.pipe(TOPICS.trajectories(), "g", new byte[] {7});
        assertThat(topology.deadLetterNames()).containsExactly("unreadable ", "wrong-key key", "unreadable ");
        pipeGroup("g", 0, 1);
        assertThat(topology.batches()).hasSize(1);
    }

    @Test
    void shouldTrainOnWhatIsFreshWhateverVersionWasMadeUp() {
        open(2, GROUPS, STALE_AFTER_2);
        topology.pipe(version(4));
        topology.pipeAlone(version(1_000_000));
        pipeGroup("g", 0, 1);
        assertThat(topology.batches()).singleElement().satisfies(batch -> {
            assertThat(batch.getAssembledVersion()).isEqualTo(4);
            assertThat(batch.getExpectedVersion()).isEqualTo(4);
        });
        topology.pipe(version(5, 0));
        topology.later(Duration.ofSeconds(1));
        pipeGroup("h", 0, 1);
        assertThat(topology.batches().get(0).getAssembledVersion()).isEqualTo(5);
    }

    @Test
    void shouldBatchOnBehindASuccessorThatWasMadeUp() {
        open(2, GROUPS, STALE_AFTER_2);
        topology.pipe(version(4));
        topology.pipeAlone(version(5, 1_000));
        pipeGroup("g", 0, 1);
        assertThat(topology.batches())
                .singleElement()
                .satisfies(batch -> assertThat(batch.getAssembledVersion()).isEqualTo(5));
        topology.pipeAlone(version(5, 0)); // the learner's own
        topology.later(Duration.ofSeconds(1));
        pipeGroup("h", 0, 1);
        assertThat(topology.batches().get(0).getAssembledVersion()).isEqualTo(5);
        assertThat(topology.deadLetters()).isEmpty();
    }

    @Test
    void shouldRefuseAVersionOfAParentThatIsNotTheOneBefore() {
        open(2);
        topology.pipeAlone(
                PolicyVersion.newBuilder(version(3)).setParentVersion(1).build());
        assertThat(topology.deadLetterNames()).containsExactly("identity parent_version");
    }

    @Test
    void shouldReadOverTheTombstoneOfADeletedVersion() {
        open(2);
        topology.pipe(
                TOPICS.policyVersions(), "policy/2/1".getBytes(StandardCharsets.UTF_8), null, new RecordHeaders());
        assertThat(topology.deadLetters()).isEmpty();
    }

    @Test
    void shouldRefuseATrajectoryThatIsThereTwice() {
        open(4);
        Rollout rollout = rollout("g", 0).build();
        pipeScored(rollout);
        byte[] again = topology.bytes(
                TOPICS.trajectories(), topology.trajectories().get(0), dev.millrace.schemas.Trajectory.class);
        topology.pipe(TOPICS.trajectories(), "g", again);
        assertThat(topology.deadLetterNames()).containsExactly("siblings sample_index");
    }
}
