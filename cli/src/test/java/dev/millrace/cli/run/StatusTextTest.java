package dev.millrace.cli.run;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.log.Alarm;
import dev.millrace.log.Evaluations;
import dev.millrace.runtime.report.StepRow;
import dev.millrace.runtime.train.RunStatus;
import dev.millrace.schemas.TrainingStep;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

class StatusTextTest {
    private static final StepRow STEP = new StepRow(step().build());

    private static Alarm alarm(String sentence) {
        return new Alarm("stall", "queue/0", sentence, "", 0);
    }

    private static final RunStatus RUNNING = new RunStatus(
            "inc-1",
            72.9,
            "",
            new RunStatus.Goal(0.9, 0.5, 0.45),
            new RunStatus.Learning(57, 0, 57, List.of(0.1, 0.5, 0.99), STEP, 0, Evaluations.NONE),
            new RunStatus.Roles(
                    new TreeMap<>(Map.of("generator", 12345.0, "learner", 9.0)),
                    new TreeMap<>(Map.of("generator", 0.14)),
                    new TreeMap<>(Map.of("learner", 1L)),
                    Map.of()),
            new RunStatus.Troubles(List.of(), Map.of(), List.of(), Map.of("duplicate", 8L)));

    private static final Glyphs BLOCKS = Glyphs.of(StandardCharsets.UTF_8);

    /** The words of the panel, 2 s after the newest step. */
    private static List<String> panel(RunStatus status, int width, Glyphs glyphs) {
        return StatusText.panel(status, width, glyphs, 2001).stream()
                .map(TonedLine::text)
                .toList();
    }

    private static TonedLine title(RunStatus status, long nowMs) {
        return StatusText.panel(status, 100, BLOCKS, nowMs).get(0);
    }

    private static RunStatus with(
            StepRow newest, String phase, long starved, List<Double> rewards, List<Alarm> alarms) {
        return with(newest, phase, starved, Double.NaN, rewards, alarms);
    }

    private static RunStatus with(StepRow newest, double goal, List<Double> rewards) {
        return with(newest, "", 0, goal, rewards, List.of());
    }

    private static RunStatus with(
            StepRow newest, String phase, long starved, double goal, List<Double> rewards, List<Alarm> alarms) {
        return new RunStatus(
                "inc-1",
                500,
                phase,
                new RunStatus.Goal(goal, 0.5, 0.45),
                new RunStatus.Learning(rewards.size(), 0, rewards.size(), rewards, newest, starved, Evaluations.NONE),
                new RunStatus.Roles(Map.of(), Map.of(), Map.of(), Map.of()),
                new RunStatus.Troubles(List.of(), Map.of(), alarms, Map.of()));
    }

    @Test
    void shouldSayEverythingInOneLine() {
        assertThat(StatusText.line(RUNNING))
                .isEqualTo(
                        "00:01:12  step 57  reward 0.990 (0.450 of 0.90)  staleness 1.25, max 3  ESS 0.981  trained 80%"
                                + "  9 tokens/s  left out 8")
                .hasSizeLessThanOrEqualTo(120);
    }

    @Test
    void shouldSayInOneLineWhatIsWaitedForBetweenSteps() {
        RunStatus silent = new RunStatus(
                "inc-1",
                72.9,
                "the cluster to answer",
                new RunStatus.Goal(0.9, 0.5, 0.45),
                new RunStatus.Learning(57, 0, 57, List.of(0.1), STEP, 0, Evaluations.NONE),
                new RunStatus.Roles(Map.of(), Map.of(), Map.of(), Map.of()),
                new RunStatus.Troubles(List.of(), Map.of(), List.of(), Map.of()));
        assertThat(StatusText.line(silent)).isEqualTo("00:01:12  step 57  waiting for the cluster to answer");
    }

    @Test
    void shouldNameServersThatDoNotServeWhatIsPublished() {
        RunStatus late = new RunStatus(
                "inc-1",
                72.9,
                "",
                new RunStatus.Goal(0.9, 0.5, 0.45),
                new RunStatus.Learning(57, 0, 57, List.of(0.1), STEP, 0, Evaluations.NONE),
                new RunStatus.Roles(Map.of(), Map.of(), Map.of(), Map.of()),
                new RunStatus.Troubles(List.of(), Map.of("generator g2", 31.4), List.of(), Map.of()));
        assertThat(StatusText.line(late)).endsWith("  unserved for generator g2 31 s");
        assertThat(panel(late, 80, BLOCKS)).contains("unserved  generator g2 31 s");
    }

    @Test
    void shouldNeverExceedTheWidth() {
        for (int width = 1; width <= 200; width++) {
            int limit = width;
            assertThat(panel(RUNNING, width, BLOCKS))
                    .allSatisfy(line -> assertThat(line.length()).isLessThanOrEqualTo(limit));
        }
    }

    @Test
    void shouldDrawTheGoalAndTheRewards() {
        assertThat(panel(RUNNING, 60, BLOCKS))
                .anySatisfy(line ->
                        assertThat(line).startsWith("goal").contains("█·").endsWith("0.45 of 0.90"))
                .anySatisfy(line -> assertThat(line).startsWith("reward").endsWith("▁▅█"));
    }

    @Test
    void shouldAverageWhatDoesNotFit() {
        assertThat(StatusText.spark(List.of(0.0, 0.0, 1.0, 1.0), 2, BLOCKS)).isEqualTo("▁█");
    }

    @Test
    void shouldShowWhatMattersOnANarrowScreen() {
        assertThat(panel(RUNNING, 39, BLOCKS))
                .containsExactly(
                        "TRAINING OK  00:01:12  step 57",
                        "reward    0.990  ▁▅█",
                        "stale     mean 1.250, max 3",
                        "ESS       0.981",
                        "left out  duplicate 8 records",
                        "newest    step 57, 2 s ago",
                        "Ctrl-C stops");
    }

    @Test
    void shouldHaveARowForEachRole() {
        assertThat(panel(RUNNING, 80, BLOCKS))
                .containsSequence(
                        "            tokens/s      idle    behind   version",
                        "generator      12.3k       14%         -         -",
                        "learner            9         -         1         -");
    }

    @Test
    void shouldBreakAnAlarmBetweenWords() {
        RunStatus ringing = with(
                STEP, "", 0, List.of(0.1), List.of(alarm("queue, partition 0: 8 of 256 sequences wait for nobody")));
        assertThat(panel(ringing, 39, BLOCKS))
                .containsSequence("alarm     queue, partition 0: 8 of 256", "          sequences wait for nobody");
    }

    @Test
    void shouldSayInTwoWordsWhatToThinkOfTheRun() {
        assertThat(title(RUNNING, 2001).text()).isEqualTo("inc-1  TRAINING OK  00:01:12  step 57  version 57");
        assertThat(title(with(STEP, "", 0, List.of(0.1), List.of(alarm("x"))), 2001)
                        .text())
                .contains("  ALARM  ");
        assertThat(title(with(STEP, "the cluster to answer", 0, List.of(0.1), List.of()), 2001)
                        .text())
                .contains("  WAITING  ");
        assertThat(title(with(STEP, "", 2, List.of(0.1), List.of()), 2001).text())
                .contains("  STARVED  ");
        assertThat(title(with(STEP, "", 0, List.of(0.1), List.of()), 200_000).text())
                .contains("  NO STEP  ");
        assertThat(title(with(new StepRow(step().setEssRatio(0.1).build()), "", 0, List.of(0.1), List.of()), 2001)
                        .text())
                .contains("  LOW ESS  ");
        List<Double> fallen = new ArrayList<>(Collections.nCopies(10, 0.9));
        fallen.addAll(Collections.nCopies(10, 0.2));
        assertThat(title(with(STEP, "", 0, fallen, List.of()), 2001).text()).contains("  REWARD FALLS  ");
    }

    @Test
    void shouldNotCallARunWellWhoseRewardStandsStillBelowItsGoal() {
        List<Double> flat = Collections.nCopies(60, 0.12);
        assertThat(title(with(STEP, 0.9, flat), 2001).text()).contains("  REWARD FLAT  ");
        assertThat(title(with(STEP, Double.NaN, flat), 2001).text()).contains("  TRAINING OK  ");
        assertThat(title(with(STEP, 0.9, flat.subList(0, 59)), 2001).text())
                .as("it may be too early to say")
                .contains("  TRAINING OK  ");
        List<Double> slow = IntStream.range(0, 60).mapToObj(i -> i / 1000.0).toList();
        assertThat(title(with(STEP, 0.9, slow), 2001).text()).contains("  TRAINING OK  ");
    }

    @Test
    void shouldSayWhereTheRewardGoes() {
        List<Double> rising = IntStream.range(0, 20).mapToObj(i -> i / 100.0).toList();
        assertThat(panel(with(STEP, "", 0, rising, List.of()), 80, BLOCKS))
                .anySatisfy(line -> assertThat(line).startsWith("reward").endsWith("+0.010 a step"));
        assertThat(panel(RUNNING, 80, BLOCKS))
                .as("three steps say nothing")
                .noneSatisfy(line -> assertThat(line).contains("a step"));
    }

    @Test
    void shouldDrawInAsciiWhereTheEncodingHasNoBlocks() {
        List<String> panel = panel(RUNNING, 79, Glyphs.of(StandardCharsets.US_ASCII));
        assertThat(panel)
                .allSatisfy(line -> assertThat(
                                StandardCharsets.US_ASCII.newEncoder().canEncode(line))
                        .isTrue())
                .contains("reward    0.990  _+#")
                .anySatisfy(line -> assertThat(line).startsWith("goal").contains("#."));
    }

    @Test
    void shouldSayWhatALineWaitsFor() {
        RunStatus starting = new RunStatus(
                "inc-1",
                3,
                "the first step",
                new RunStatus.Goal(0.9, 0, Double.NaN),
                new RunStatus.Learning(0, 0, 0, List.of(), null, 0, Evaluations.NONE),
                new RunStatus.Roles(Map.of(), Map.of(), Map.of(), Map.of()),
                new RunStatus.Troubles(
                        List.of(), Map.of(), List.of(alarm("queue, partition 0: 8 of 256 sequences")), Map.of()));
        assertThat(StatusText.line(starting)).isEqualTo("00:00:03  waiting for the first step (log there)");
        assertThat(panel(starting, 80, BLOCKS))
                .contains(
                        "inc-1  ALARM  00:00:03",
                        "alarm     queue, partition 0: 8 of 256 sequences",
                        "starting  log ✓  weights ...",
                        "waiting   for the first step");
    }

    private static TrainingStep.Builder step() {
        return TrainingStep.newBuilder()
                .setRunId("inc-1")
                .setEpoch(0)
                .setPolicyId("policy")
                .setBatchId(56)
                .setVersion(57)
                .setWeightsSha256("ab")
                .setRolloutsTrained(8)
                .setRolloutsMasked(0)
                .setTokensTrainable(50)
                .setTokensTrained(40)
                .setRewardMean(0.99)
                .setStalenessMean(1.25)
                .setStalenessMax(3L)
                .setEssRatio(0.981)
                .setEssRatioTruncated(0.99)
                .setSecondMoment(0.02)
                .setSecondMomentTrained(0.01)
                .setLearningRate(1e-3)
                .setMetrics(Map.of("approx_kl_behavior", 0.003))
                .setStartedAtMs(0)
                .setFinishedAtMs(1);
    }

    @Test
    void shouldShowRawFiguresBesideThoseOfWhatWasTrainedOn() {
        assertThat(panel(RUNNING, 100, BLOCKS))
                .contains(
                        "stale     mean 1.250, max 3 versions · ESS 0.981, truncated 0.990",
                        "batch     8 rollouts trained on, 0 masked · 80% of the tokens",
                        "moment    0.020 raw, 0.010 trained on · KL 0.003");
    }

    @Test
    void shouldSayThatBatchesAreStarved() {
        StepRow starved = new StepRow(step().setStarved(true)
                .setTokensTrained(0)
                .setStalenessMean(null)
                .setStalenessMax(null)
                .setEssRatio(null)
                .setEssRatioTruncated(null)
                .build());
        RunStatus status = new RunStatus(
                "inc-1",
                72.9,
                "",
                new RunStatus.Goal(0.9, 0.5, 0.45),
                new RunStatus.Learning(57, 0, 57, List.of(0.1), starved, 12, Evaluations.NONE),
                new RunStatus.Roles(Map.of(), Map.of(), Map.of(), Map.of()),
                new RunStatus.Troubles(
                        List.of("stage m2po has changed nothing in the last 50 steps"), Map.of(), List.of(), Map.of()));
        assertThat(StatusText.line(status)).contains("  no token left in 12 batches in a row  ");
        assertThat(panel(status, 80, BLOCKS))
                .contains(
                        "starved   no token left in 12 batches in a row",
                        "no effect stage m2po has changed nothing in the last 50 steps");
    }
}
