package dev.millrace.cli.live;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.log.evaluation.Evaluations;
import dev.millrace.runtime.live.RunStatus;
import dev.millrace.runtime.report.StepRow;
import dev.millrace.schemas.TrainingStep;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;

class StatusTextTest {
    private static final StepRow STEP = StepRow.of(step().build());

    private static final RunStatus RUNNING = new RunStatus(
            "inc-1",
            72.9,
            "",
            0.9,
            0.5,
            57,
            0,
            57,
            List.of(0.1, 0.5, 0.99),
            0.45,
            STEP,
            0,
            List.of(),
            new TreeMap<>(Map.of("generator", 12345.0, "learner", 9.0)),
            new TreeMap<>(Map.of("generator", 0.14)),
            new TreeMap<>(Map.of("learner", 1L)),
            Map.of(),
            Map.of(),
            List.of(),
            Evaluations.NONE,
            Map.of("duplicate", 8L));

    private static final Glyphs BLOCKS = Glyphs.of(StandardCharsets.UTF_8);

    @Test
    void shouldSayEverythingInOneLine() {
        assertThat(StatusText.line(RUNNING))
                .isEqualTo(
                        "00:01:12  step 57  version 57  reward 0.990 (0.450 of 0.90)  "
                                + "staleness 1.25/3  ESS 0.981 (0.990 truncated)  trained 80%  tokens/s generator 12.3k, learner 9  behind learner 1  lost duplicate 8");
    }

    @Test
    void shouldSayInOneLineWhatIsWaitedForBetweenSteps() {
        RunStatus silent = new RunStatus(
                "inc-1",
                72.9,
                "the cluster to answer",
                0.9,
                0.5,
                57,
                0,
                57,
                List.of(0.1),
                0.45,
                STEP,
                0,
                List.of(),
                Map.of(),
                Map.of(),
                Map.of(),
                Map.of(),
                Map.of(),
                List.of(),
                Evaluations.NONE,
                Map.of());
        assertThat(StatusText.line(silent)).isEqualTo("00:01:12  step 57  waiting for the cluster to answer");
    }

    @Test
    void shouldNameServersThatDoNotServeWhatIsPublished() {
        RunStatus late = new RunStatus(
                "inc-1",
                72.9,
                "",
                0.9,
                0.5,
                57,
                0,
                57,
                List.of(0.1),
                0.45,
                STEP,
                0,
                List.of(),
                Map.of(),
                Map.of(),
                Map.of(),
                Map.of(),
                Map.of("generator g2", 31.4),
                List.of(),
                Evaluations.NONE,
                Map.of());
        assertThat(StatusText.line(late)).endsWith("  unserved for generator g2 31 s");
        assertThat(StatusText.panel(late, 80, BLOCKS)).contains("unserved    generator g2 31 s");
    }

    @Test
    void shouldNeverExceedTheWidth() {
        for (int width = 1; width < 120; width++) {
            int limit = width;
            assertThat(StatusText.panel(RUNNING, width, BLOCKS))
                    .allSatisfy(line -> assertThat(line.length()).isLessThanOrEqualTo(limit));
        }
    }

    @Test
    void shouldDrawTheGoalAndTheRewards() {
        assertThat(StatusText.panel(RUNNING, 40, BLOCKS))
                .anySatisfy(line ->
                        assertThat(line).startsWith("goal").contains("█·").endsWith("0.45 of 0.90"))
                .anySatisfy(line -> assertThat(line).startsWith("reward").endsWith("▁▅█"));
    }

    @Test
    void shouldAverageWhatDoesNotFit() {
        assertThat(StatusText.spark(List.of(0.0, 0.0, 1.0, 1.0), 2, BLOCKS)).isEqualTo("▁█");
    }

    @Test
    void shouldShortenWhatANarrowScreenCannotHold() {
        assertThat(StatusText.panel(RUNNING, 39, BLOCKS))
                .contains("tokens/s  gene 12.3k lear 9", "staleness 1.250 mean, 3 max · ESS 0.981", "Ctrl-C stops")
                .anySatisfy(line -> assertThat(line).startsWith("millrace train · 00:01:12"));
        assertThat(StatusText.panel(RUNNING, 20, BLOCKS)).contains("tokens/s  gene 12.3…");
    }

    @Test
    void shouldDrawInAsciiWhereTheEncodingHasNoBlocks() {
        List<String> panel = StatusText.panel(RUNNING, 79, Glyphs.of(StandardCharsets.US_ASCII));
        assertThat(panel)
                .allSatisfy(line -> assertThat(
                                StandardCharsets.US_ASCII.newEncoder().canEncode(line))
                        .isTrue())
                .contains("reward      0.990  _+#")
                .anySatisfy(line -> assertThat(line).startsWith("goal").contains("#."));
    }

    @Test
    void shouldSayWhatALineWaitsFor() {
        RunStatus starting = new RunStatus(
                "inc-1",
                3,
                "the first step",
                0.9,
                0,
                0,
                0,
                0,
                List.of(),
                Double.NaN,
                null,
                0,
                List.of(),
                Map.of(),
                Map.of(),
                Map.of(),
                Map.of(),
                Map.of(),
                List.of("queue, partition 0: 8 of 256 sequences"),
                Evaluations.NONE,
                Map.of());
        assertThat(StatusText.line(starting))
                .isEqualTo("00:00:03  waiting for the first step" + "  alarm: queue, partition 0: 8 of 256 sequences");
        assertThat(StatusText.panel(starting, 80, BLOCKS))
                .contains("alarm       queue, partition 0: 8 of 256 sequences");
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
        assertThat(StatusText.panel(RUNNING, 100, BLOCKS))
                .contains(
                        "staleness   1.250 mean, 3 max versions · ESS 0.981 raw, 0.990 truncated",
                        "off policy  second moment 0.020 raw, 0.010 trained on · KL 0.003 · 80% of the tokens");
    }

    @Test
    void shouldSayThatBatchesAreStarved() {
        StepRow starved = StepRow.of(step().setStarved(true)
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
                0.9,
                0.5,
                57,
                0,
                57,
                List.of(0.1),
                0.45,
                starved,
                12,
                List.of("stage m2po has changed nothing in the last 50 steps"),
                Map.of(),
                Map.of(),
                Map.of(),
                Map.of(),
                Map.of(),
                List.of(),
                Evaluations.NONE,
                Map.of());
        assertThat(StatusText.line(status)).contains("  no token left in 12 batches in a row  ");
        assertThat(StatusText.panel(status, 80, BLOCKS))
                .contains(
                        "starved     no token left in 12 batches in a row",
                        "no effect   stage m2po has changed nothing in the last 50 steps");
    }
}
