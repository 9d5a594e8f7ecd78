package dev.millrace.topology;

import static dev.millrace.topology.Samples.TOPICS;
import static dev.millrace.topology.Samples.rollout;
import static dev.millrace.topology.Samples.score;
import static dev.millrace.topology.TopologyHarness.header;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.tuple;

import dev.millrace.log.deadletter.RedriveMark;
import dev.millrace.schemas.Credit;
import dev.millrace.schemas.FinishReason;
import dev.millrace.schemas.KeptSupport;
import dev.millrace.schemas.LogProbDistribution;
import dev.millrace.schemas.LogProbVector;
import dev.millrace.schemas.Outcome;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.SamplingParameters;
import dev.millrace.schemas.SamplingTrace;
import dev.millrace.schemas.Score;
import dev.millrace.schemas.TaskReference;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.VersionSpan;
import dev.millrace.schemas.packed.PackedFloats;
import dev.millrace.schemas.packed.PackedInts;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.streams.test.TestRecord;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class JoinRulesTest {
    /** Longer than any deadline. */
    private static final Duration LONG = Duration.ofMinutes(11);

    @TempDir
    Path directory;

    private TopologyHarness topology;

    @BeforeEach
    void open() {
        topology = new TopologyHarness(TopologyConfig.defaults(), directory, 100_000);
    }

    @AfterEach
    void close() {
        topology.close();
    }

    private void later(Duration duration) {
        // ten seconds at a time, each with a record of another group: longer gaps do not count in full
        for (long s = 0; s < duration.toSeconds(); s += 10) {
            topology.later(Duration.ofSeconds(10));
            topology.pipe(TOPICS.rollouts(), "x", new byte[] {1});
            topology.pipe(rollout("other-" + System.identityHashCode(duration) + "-" + s, 0)
                    .build());
        }
        topology.deadLetters();
    }

    @Test
    void shouldJoinInEitherOrder() {
        Rollout rollout = rollout("g", 0).build();
        topology.pipe(score(rollout, 0).build());
        assertThat(topology.trajectories()).isEmpty();
        topology.pipe(rollout);
        assertThat(topology.trajectories()).extracting(Trajectory::getRolloutId).containsExactly("g/0");
        assertThat(topology.outcomes()).isEmpty();
    }

    @Test
    void shouldCompareLogProbsBeforeTruncation() {
        Rollout rollout = rollout("g", 0)
                .setLogProbDistribution(LogProbDistribution.TRUNCATED)
                .setBehaviorLogProbs(PackedFloats.of(-0.1f, -0.1f, -0.1f))
                .setTemperedLogProbs(PackedFloats.of(-0.5f, -0.5f, -0.5f))
                .build();
        topology.pipe(
                score(rollout, topology.pipe(rollout), -0.5f, -0.5f, -0.5f).build());
        Trajectory trajectory = topology.trajectories().get(0);
        assertThat(PackedFloats.toArray(trajectory.getBehaviorLogProbs())).containsExactly(-0.5f, -0.5f, -0.5f);
    }

    @Test
    void shouldCompareOverTheKeptTokensWhereTheSamplingMaskIsKept() {
        KeptSupport kept = new KeptSupport(PackedInts.of(1, 2, 2), PackedInts.of(3, 5, 4, 6, 5));
        Rollout plain = rollout("g", 0).build();
        Rollout rollout = Rollout.newBuilder(plain)
                .setLogProbDistribution(LogProbDistribution.TRUNCATED)
                .setBehaviorLogProbs(PackedFloats.of(-0.1f, -0.1f, -0.1f))
                .setTemperedLogProbs(PackedFloats.of(-0.5f, -0.5f, -0.5f))
                .setSampling(new SamplingParameters(1.0, 2, 1.0, 8, 42L, true, 0, 0.0, false))
                .setSamplingTrace(new SamplingTrace(null, kept, null, null))
                .build();
        topology.pipe(
                score(rollout, topology.pipe(rollout), -0.1f, -0.1f, -0.1f).build());
        Trajectory trajectory = topology.trajectories().get(0);
        assertThat(PackedFloats.toArray(trajectory.getBehaviorLogProbs())).containsExactly(-0.1f, -0.1f, -0.1f);
        assertThat(trajectory.getKeptTokens()).isEqualTo(kept);
    }

    @Test
    void shouldDeadLetterARolloutThatKeepsItsSamplingMaskAndDidNotRecordIt() {
        topology.pipe(rollout("g", 0)
                .setLogProbDistribution(LogProbDistribution.TRUNCATED)
                .setSampling(new SamplingParameters(1.0, 2, 1.0, 8, 42L, true, 0, 0.0, false))
                .build());
        assertThat(topology.deadLetters())
                .singleElement()
                .satisfies(dead ->
                        assertThat(header(dead, "message")).contains("keep_sampling_mask needs the kept tokens"));
    }

    @Test
    void shouldTellOfARolloutThatWasBrokenOffRatherThanTrainOnItsReward() {
        Rollout failed = rollout("g", 0)
                .setFinishReason(FinishReason.FAILED)
                .setError("the tool server is gone")
                .build();
        Rollout aborted = rollout("g", 1).setFinishReason(FinishReason.ABORTED).build();
        topology.pipe(score(failed, topology.pipe(failed)).build());
        topology.pipe(score(aborted, topology.pipe(aborted)).build());
        assertThat(topology.trajectories()).isEmpty();
        assertThat(topology.outcomes())
                .extracting(Outcome::getReason, Outcome::getDetail)
                .containsExactly(
                        tuple("unfinished", "it ended by FAILED after 3 tokens: the tool server is gone"),
                        tuple("unfinished", "it ended by ABORTED after 3 tokens"));
    }

    @Test
    void shouldTrainOnARolloutWhoseTimeWasUpAsOnOneThatWasTooLong() {
        Rollout rollout = rollout("g", 0).setFinishReason(FinishReason.TIMEOUT).build();
        topology.pipe(score(rollout, topology.pipe(rollout)).build());
        assertThat(topology.trajectories())
                .singleElement()
                .satisfies(made -> assertThat(made.getFinishReason()).isEqualTo("TIMEOUT"));
    }

    @Test
    void shouldCarryCreditWithTheTurnsThatItIsFor() {
        Credit credit = Credit.newBuilder()
                .setTurnLevelRewards(PackedFloats.of(0.5f))
                .setTokenLevelRewards(PackedFloats.of(0f, 0.25f, 0.25f))
                .setTokenLevelValues(PackedFloats.of(0.5f, 0.5f, 0.75f))
                .setGreedyReward(0.25)
                .build();
        Rollout rollout = rollout("g", 0)
                .setCredit(credit)
                .setTask(new TaskReference("t-1", Map.of()))
                .build();
        topology.pipe(score(rollout, topology.pipe(rollout)).build());
        assertThat(topology.trajectories()).singleElement().satisfies(made -> {
            assertThat(made.getCredit()).isEqualTo(credit);
            assertThat(made.getTurns()).isEqualTo(rollout.getTurns());
            assertThat(made.getTaskKey()).isEqualTo("t-1");
        });
    }

    @Test
    void shouldCarryTheValuesOfThePolicysOwnCritic() {
        Rollout rollout = rollout("g", 0).build();
        topology.pipe(valued(rollout, topology.pipe(rollout), 0.5f, 0.25f, -1f));
        assertThat(topology.trajectories())
                .singleElement()
                .satisfies(made -> assertThat(made.getProximalValues()).isEqualTo(PackedFloats.of(0.5f, 0.25f, -1f)));
    }

    @Test
    void shouldRefuseTheValuesOfTwoCritics() {
        Rollout rollout = rollout("g", 0)
                .setCredit(Credit.newBuilder()
                        .setTokenLevelValues(PackedFloats.of(0.5f, 0.5f, 0.75f))
                        .build())
                .build();
        topology.pipe(valued(rollout, topology.pipe(rollout), 0.5f, 0.25f, -1f));
        assertThat(topology.trajectories()).isEmpty();
        assertThat(topology.deadLetterNames()).containsExactly("vectors credit.token_level_values");
    }

    private static Score valued(Rollout rollout, long offset, float... values) {
        Score score = score(rollout, offset).build();
        LogProbVector proximal = LogProbVector.newBuilder(score.getVectors().get(1))
                .setValues(PackedFloats.of(values))
                .build();
        return Score.newBuilder(score)
                .setVectors(List.of(score.getVectors().get(0), proximal))
                .build();
    }

    @Test
    void shouldCallARepetitionADuplicateWhileTheFirstWaits() {
        Rollout rollout = rollout("g", 0).build();
        topology.pipe(rollout);
        topology.pipe(rollout);
        assertThat(topology.outcomeNames()).containsExactly("duplicate g/0 rollouts@1");
    }

    @Test
    void shouldCallARepetitionADuplicateLongAfterTheFirstHasGone() {
        Rollout rollout = rollout("g", 0).build();
        topology.pipe(score(rollout, topology.pipe(rollout)).build());
        later(Duration.ofMinutes(30));
        topology.outcomes();
        topology.pipe(rollout);
        assertThat(topology.outcomeNames()).singleElement().asString().startsWith("duplicate g/0 rollouts@");
        assertThat(topology.trajectories()).hasSize(1);
    }

    @Test
    void shouldCallASecondScoreADuplicate() {
        Rollout rollout = rollout("g", 0).build();
        Score score = score(rollout, topology.pipe(rollout)).build();
        topology.pipe(score);
        topology.pipe(score);
        assertThat(topology.outcomeNames()).containsExactly("duplicate g/0 scores@1");
        assertThat(topology.trajectories()).hasSize(1);
    }

    @Test
    void shouldNeverPairARolloutWithTheScoreOfItsRepetition() {
        Rollout first = rollout("g", 0).build();
        Rollout again =
                rollout("g", 0).setResponseTokens(PackedInts.of(6, 7, 8)).build();
        long offset = topology.pipe(first);
        long repetition = topology.pipe(again);
        topology.pipe(score(again, repetition).build());
        assertThat(topology.trajectories()).isEmpty();
        topology.pipe(score(first, offset).build());
        assertThat(topology.trajectories())
                .singleElement()
                .satisfies(t ->
                        assertThat(PackedInts.toArray(t.getResponseTokens())).containsExactly(3, 4, 5));
        assertThat(topology.outcomeNames()).containsExactly("duplicate g/0 rollouts@1", "duplicate g/0 scores@0");
    }

    @Test
    void shouldDropAWaitingScoreOfAnotherRecordAndWaitForTheRightOne() {
        Rollout rollout = rollout("g", 0).build();
        topology.pipe(score(rollout, 7).build());
        long offset = topology.pipe(rollout);
        assertThat(topology.outcomeNames()).containsExactly("orphan-score g/0 scores@0");
        topology.pipe(score(rollout, offset).build());
        assertThat(topology.trajectories()).hasSize(1);
    }

    @Test
    void shouldLetARolloutLeaveUnscoredAfterItsDeadline() {
        topology.pipe(rollout("g", 0).build());
        later(Duration.ofMinutes(9));
        assertThat(topology.outcomes()).isEmpty();
        later(Duration.ofMinutes(1));
        Outcome outcome = topology.outcomes().get(0);
        assertThat(outcome.getReason()).isEqualTo("unscored");
        assertThat(outcome.getRolloutId()).isEqualTo("g/0");
        assertThat(outcome.getStage()).isEqualTo("join");
        assertThat(outcome.getNewestVersion()).isEqualTo(3);
        assertThat(outcome.getDetail()).contains("600000 ms");
        assertThat(topology.count("millrace.topology.outcomes", "unscored")).isPositive();
    }

    @Test
    void shouldLetARolloutLeaveUnscoredThoughNothingElseArrives() {
        topology.pipe(rollout("g", 0).build());
        topology.idle(Duration.ofMinutes(9));
        assertThat(topology.outcomes()).isEmpty();
        topology.idle(Duration.ofMinutes(2));
        assertThat(topology.outcomeNames()).containsExactly("unscored g/0 rollouts@0");
    }

    @Test
    void shouldNotLetANightWithoutRecordsExpireWhatWaits() {
        Rollout rollout = rollout("g", 0).build();
        long offset = topology.pipe(rollout);
        topology.later(Duration.ofHours(9));
        topology.pipe(rollout("h", 0).build());
        topology.pipe(score(rollout, offset).build());
        assertThat(topology.trajectories()).hasSize(1);
        assertThat(topology.outcomes()).isEmpty();
    }

    @Test
    void shouldCallAScoreThatComesAfterTheDeadlineAnOrphan() {
        Rollout rollout = rollout("g", 0).build();
        long offset = topology.pipe(rollout);
        topology.idle(LONG);
        topology.outcomes();
        topology.pipe(score(rollout, offset).build());
        assertThat(topology.outcomeNames()).containsExactly("orphan-score g/0 scores@0");
        assertThat(topology.trajectories()).isEmpty();
    }

    @Test
    void shouldLetAScoreWithoutARolloutLeave() {
        topology.pipe(score(rollout("g", 0).build(), 3).build());
        topology.idle(Duration.ofSeconds(61));
        assertThat(topology.outcomeNames()).containsExactly("orphan-score g/0 scores@0");
    }

    @Test
    void shouldLetARolloutLeaveUnscoredWhoseScoreHasLeft() {
        Rollout rollout = rollout("g", 0).build();
        topology.pipe(score(rollout, 0).build());
        topology.idle(Duration.ofSeconds(61));
        topology.outcomes();
        topology.pipe(rollout);
        assertThat(topology.outcomeNames()).containsExactly("unscored g/0 rollouts@0");
    }

    @Test
    void shouldLetARolloutLeaveWhoseVersionTheScorerCouldNotHave() {
        Rollout rollout = rollout("g", 0).build();
        topology.pipe(score(rollout, topology.pipe(rollout))
                .setVectors(List.of())
                .setUnavailable("version 3 is no longer kept")
                .build());
        Outcome outcome = topology.outcomes().get(0);
        assertThat(outcome.getReason()).isEqualTo("version-unavailable");
        assertThat(outcome.getDetail()).isEqualTo("version 3 is no longer kept");
        assertThat(outcome.getSource().getTopic()).isEqualTo(TOPICS.rollouts());
    }

    @Test
    void shouldRefuseAScoreThatDoesNotFitAndGoOnWaiting() {
        Rollout rollout = rollout("g", 0).build();
        long offset = topology.pipe(rollout);
        topology.pipe(score(rollout("g", 0, 2, 4, -1f, 3).build(), offset).build());
        assertThat(topology.deadLetterNames()).containsExactly("misfit vectors.OLD");
        topology.pipe(score(rollout, offset).build());
        assertThat(topology.trajectories()).hasSize(1);
    }

    @Test
    void shouldRefuseAWaitingScoreThatDoesNotFitAsItCame() {
        Rollout rollout = rollout("g", 0).build();
        byte[] misfit = topology.bytes(
                TOPICS.scores(), score(rollout("g", 0, 2, 4, -1f, 3).build(), 0).build(), Score.class);
        RecordHeaders headers = new RecordHeaders();
        headers.add("trace", new byte[] {42});
        topology.pipe(TOPICS.scores(), "g".getBytes(StandardCharsets.UTF_8), misfit, headers);
        topology.pipe(rollout);
        assertThat(topology.deadLetters()).singleElement().satisfies(dead -> {
            assertThat(dead.value()).isEqualTo(misfit);
            assertThat(dead.headers().lastHeader("trace").value()).containsExactly(42);
            assertThat(header(dead, "source.topic")).isEqualTo(TOPICS.scores());
        });
        topology.pipe(score(rollout, 0).build());
        assertThat(topology.trajectories()).hasSize(1);
    }

    @Test
    void shouldRefuseAScoreUnderOtherVersionsThanThoseThatSampled() {
        Rollout rollout = rollout("g", 0)
                .setVersionSpans(List.of(new VersionSpan(3L, 0, 1), new VersionSpan(4L, 1, 3)))
                .build();
        long offset = topology.pipe(rollout);
        topology.pipe(score(rollout("g", 0).build(), offset).build());
        assertThat(topology.deadLetterNames()).containsExactly("misfit vectors.OLD.version_spans");
    }

    @Test
    void shouldTakeSpansThatSayTheSameInOtherPieces() {
        Rollout rollout = rollout("g", 0)
                .setVersionSpans(List.of(new VersionSpan(3L, 0, 1), new VersionSpan(3L, 1, 3)))
                .build();
        long offset = topology.pipe(rollout);
        topology.pipe(score(rollout("g", 0).build(), offset).build());
        assertThat(topology.trajectories()).hasSize(1);
    }

    @Test
    void shouldRefuseASiblingThatContradictsTheGroup() {
        topology.pipe(rollout("g", 0).build());
        topology.pipe(rollout("g", 1).setGroupSize(3).build());
        topology.pipe(rollout("g", 1).setOrdinal(8).build());
        topology.pipe(rollout("g", 1).setPromptTokens(PackedInts.of(1, 3)).build());
        assertThat(topology.deadLetterNames())
                .containsExactly("siblings group_id", "siblings group_id", "siblings group_id");
        Rollout right = rollout("g", 1).build();
        topology.pipe(score(right, topology.pipe(right)).build());
        assertThat(topology.trajectories()).hasSize(1);
    }

    @Test
    void shouldRefuseARolloutWhoseTrajectoryTheLogWouldNotTake() {
        Rollout rollout = rollout("g", 0, 2, 10_000, -1f, 3).build();
        topology.pipe(score(rollout, topology.pipe(rollout)).build());
        assertThat(topology.deadLetterNames()).containsExactly("too-large response_tokens");
        assertThat(topology.trajectories()).isEmpty();
    }

    @Test
    void shouldDeadLetterWhateverCannotBeReadExactlyAsItCame() {
        RecordHeaders headers = new RecordHeaders();
        headers.add("trace", new byte[] {1});
        headers.add("millrace.error.reason", "of an earlier refusal".getBytes(StandardCharsets.UTF_8));
        topology.pipe(TOPICS.rollouts(), new byte[] {9}, new byte[] {0, 0, 0, 0, 99, 1}, headers);
        topology.pipe(TOPICS.rollouts(), null, null, new RecordHeaders());
        topology.pipe(TOPICS.scores(), new byte[] {8}, new byte[0], new RecordHeaders());

        List<TestRecord<byte[], byte[]>> dead = topology.deadLetters();
        assertThat(dead).hasSize(3);
        assertThat(dead.get(0).key()).containsExactly(9);
        assertThat(dead.get(0).value()).containsExactly(0, 0, 0, 0, 99, 1);
        assertThat(dead.get(0).headers().lastHeader("trace").value()).containsExactly(1);
        assertThat(dead.get(0).headers().headers("millrace.error.reason")).hasSize(1);
        assertThat(header(dead.get(0), "reason")).isEqualTo("unreadable");
        assertThat(header(dead.get(0), "source.topic")).isEqualTo(TOPICS.rollouts());
        assertThat(header(dead.get(0), "source.partition")).isEqualTo("0");
        assertThat(header(dead.get(0), "source.offset")).isEqualTo("0");
        assertThat(dead.get(1).value()).isNull();
        assertThat(header(dead.get(2), "source.topic")).isEqualTo(TOPICS.scores());
        assertThat(topology.count("millrace.topology.dead.letters", "unreadable"))
                .isEqualTo(3);
    }

    @Test
    void shouldSayOfHowManyRecordsOfItsGeneratorARefusedOneIsOne() {
        for (int sample = 0; sample < 3; sample++) {
            topology.pipe(rollout("g" + sample, 0).build());
        }
        topology.pipe(rollout("h", 0).setGeneratorId("another").build());
        for (int sample = 0; sample < 2; sample++) {
            topology.pipe(rollout("i", sample).setReward(Double.NaN).build());
        }
        topology.pipe(rollout("i", 0).setEpoch(7).setReward(Double.NaN).build());
        topology.pipe(TOPICS.rollouts(), "x", new byte[] {1});
        List<TestRecord<byte[], byte[]>> dead = topology.deadLetters();
        assertThat(dead).hasSize(4);
        assertThat(header(dead.get(0), "sender.records")).isEqualTo("4");
        assertThat(header(dead.get(1), "sender.records")).isEqualTo("1");
        assertThat(dead.get(2).headers().lastHeader("millrace.error.sender.records"))
                .as("of another epoch")
                .isNull();
        assertThat(dead.get(3).headers().lastHeader("millrace.error.sender.records"))
                .as("nobody's")
                .isNull();
    }

    @Test
    void shouldDateWhatItWritesByTheWallClockSoThatTheLogKeepsIt() {
        topology.later(Duration.ofDays(-400));
        Rollout rollout = rollout("g", 0).build();
        topology.pipe(score(rollout, topology.pipe(rollout)).build());
        topology.pipe(rollout);
        topology.pipe(TOPICS.rollouts(), "g", new byte[] {1});
        TestRecord<byte[], byte[]> dead = topology.deadLetters().get(0);
        assertThat(dead.timestamp()).isEqualTo(topology.wallClockMs());
        assertThat(Long.parseLong(header(dead, "source.timestamp")))
                .isEqualTo(topology.wallClockMs() - Duration.ofDays(400).toMillis());
        for (String topic : List.of(TOPICS.trajectories(), TOPICS.outcomes())) {
            assertThat(topology.records(topic))
                    .singleElement()
                    .satisfies(record -> assertThat(record.timestamp()).isEqualTo(topology.wallClockMs()));
        }
    }

    @Test
    void shouldSayWhoseTheRefusedRecordIs() {
        topology.pipe(rollout("g", 0).setRunId("another-run").build());
        topology.pipe(rollout("g", 0).setReward(Double.NaN).build());
        List<TestRecord<byte[], byte[]>> dead = topology.deadLetters();
        assertThat(header(dead.get(0), "run-id")).isEqualTo("another-run");
        assertThat(header(dead.get(0), "rollout-id")).isEqualTo("g/0");
        assertThat(header(dead.get(1), "field")).isEqualTo("reward");
        assertThat(header(dead.get(1), "message"))
                .isEqualTo("a reward must be finite and at most 1000000.0 in magnitude: NaN");
    }

    @Test
    void shouldTakeACorrectedRolloutAfterARefusedOne() {
        topology.pipe(rollout("g", 0).setReward(Double.NaN).build());
        Rollout corrected = rollout("g", 0).build();
        topology.pipe(score(corrected, topology.pipe(corrected)).build());
        assertThat(topology.trajectories()).hasSize(1);
        assertThat(topology.outcomes()).isEmpty();
    }

    @Test
    void shouldCutLongHeadersSoThatTheDeadLetterFits() {
        topology.pipe(
                TOPICS.rollouts(),
                "g",
                topology.bytes(
                        TOPICS.rollouts(),
                        rollout("g", 0).setRolloutId("x".repeat(50_000)).build(),
                        Rollout.class));
        assertThat(header(topology.deadLetters().get(0), "rollout-id")).hasSize(1024);
    }

    @Test
    void shouldCountWhatIsPending() {
        topology.pipe(rollout("g", 0).build());
        Rollout second = rollout("g", 1).build();
        long offset = topology.pipe(second);
        assertThat(topology.meters.get("millrace.pending.rollouts").gauge().value())
                .isEqualTo(2);
        topology.pipe(score(second, offset).build());
        assertThat(topology.meters.get("millrace.pending.rollouts").gauge().value())
                .isEqualTo(1);
        assertThat(topology.meters.get("millrace.topology.joined").counter().count())
                .isEqualTo(1);
    }

    @Test
    void shouldJoinARolloutThatWasRedrivenWithItsNewScoreThoughTheFirstOneHasGone() {
        Rollout refused = rollout("g", 0).setReward(1e300).build();
        long first = topology.pipe(refused);
        topology.pipe(score(refused, first).build());
        topology.idle(LONG);
        assertThat(topology.outcomeNames()).containsExactly("orphan-score g/0 scores@0");
        Rollout mended = rollout("g", 0).build();
        long again = topology.pipe(
                TOPICS.rollouts(),
                mended.getGroupId().getBytes(StandardCharsets.UTF_8),
                topology.bytes(TOPICS.rollouts(), mended, Rollout.class),
                RedriveMark.headers(new RecordHeaders(), 0, 0));
        topology.pipe(score(mended, again).build());
        assertThat(topology.trajectories())
                .extracting(t -> t.getRolloutSource().getOffset())
                .containsExactly(again);
    }
}
