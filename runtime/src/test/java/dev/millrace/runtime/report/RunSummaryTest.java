package dev.millrace.runtime.report;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import com.fasterxml.jackson.databind.JsonNode;
import dev.millrace.audit.ledger.Balance;
import dev.millrace.audit.ledger.RolloutOrigin;
import dev.millrace.audit.ledger.Tally;
import dev.millrace.log.Alarm;
import dev.millrace.log.Evaluations;
import dev.millrace.report.CsvFile;
import dev.millrace.runtime.evaluation.EvaluationRecords;
import dev.millrace.schemas.EvaluatedPrompt;
import dev.millrace.schemas.SamplingParameters;
import dev.millrace.schemas.TrainingStep;
import dev.millrace.schemas.VersionEvaluation;
import dev.millrace.stages.IdleStages;
import java.awt.image.BufferedImage;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import javax.imageio.ImageIO;
import org.apache.avro.Schema;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class RunSummaryTest {
    /** Fields of a record that are not a figure, or have a column with another name: batch 0 is step 1. */
    private static final Set<String> NOT_A_FIGURE =
            Set.of("run_id", "epoch", "policy_id", "batch_id", "reward_mean", "metrics", "entries");

    private static StepRow row(int step, double reward, double staleness, long stalenessMax, double ess, long tokens) {
        return new StepRow(step(step, reward, tokens)
                .setStalenessMean(staleness)
                .setStalenessMax(stalenessMax)
                .setStalenessInFlightMean(staleness / 4)
                .setStalenessInQueueMean(3 * staleness / 4)
                .setEssRatio(ess)
                .setEssRatioTruncated((1 + ess) / 2)
                .setSecondMoment(0.2)
                .setSecondMomentTrained(0.1)
                .setMetrics(Map.of("loss", 0.5, "grad_norm", 1.0, "stage.m2po.tokens_changed", 3.0 * step))
                .build());
    }

    private static StepRow starved(int step) {
        return new StepRow(step(step, 0.5, 0)
                .setStarved(true)
                .setStalenessMean(null)
                .setStalenessMax(null)
                .setEssRatio(1.0)
                .setEssRatioTruncated(1.0)
                .setMetrics(Map.of("loss", 0.0))
                .build());
    }

    private static TrainingStep.Builder step(int step, double reward, long tokens) {
        return TrainingStep.newBuilder()
                .setRunId("r")
                .setEpoch(0)
                .setPolicyId("policy")
                .setBatchId(step - 1)
                .setVersion(step)
                .setWeightsSha256("ab")
                .setRolloutsTrained(250)
                .setRolloutsMasked(6)
                .setTokensTrainable(400)
                .setTokensTrained(tokens)
                .setRewardMean(reward)
                .setLearningRate(1e-3)
                .setStartedAtMs(0)
                .setFinishedAtMs(1);
    }

    private static RunSummary summary(List<StepRow> steps) {
        Balance balance = new Balance(
                new TreeMap<>(Map.of(
                        new RolloutOrigin(0, 3),
                        new Tally(
                                10,
                                5,
                                Map.of("m2po", 1L),
                                Map.of("duplicate", 2L),
                                Map.of("reward", 1L),
                                new Tally.Unfinished(0, 1, 0, 0, 0)))),
                0,
                new Balance.Unmatched(Map.of(), Map.of(), Map.of()),
                List.of(),
                List.of(),
                0,
                List.of());
        return new RunSummary(
                "r",
                steps,
                List.of(new IdleStages.Idle("m2po", 50, 1000)),
                new RunSummary.Tokens(3, 2, 1),
                balance,
                new Evaluations(List.of(evaluation(2, 1, null), evaluation(0, 3, -1.25), evaluation(4, 3, null))),
                new RunSummary.Invocation(
                        steps.size(),
                        Double.NaN,
                        12.5,
                        Map.of("generator", 0.25, "learner", 0.5),
                        List.of(new Alarm("broker-away", "kafka:9092", "away for 9 s", "start it", 7)),
                        true,
                        "the goal was reached"));
    }

    /** Of two prompts with four responses each; the second one's are all correct. */
    private static VersionEvaluation evaluation(long version, int correct, Double startLogProb) {
        return EvaluationRecords.recomputed(VersionEvaluation.newBuilder()
                .setRunId("r")
                .setEpoch(0)
                .setPolicyId("policy")
                .setVersion(version)
                .setWeightsSha256("of-" + version)
                .setDataSha256("data")
                .setSamplesPerPrompt(4)
                .setSampling(new SamplingParameters(1.0, 0, 1.0, 8, 1L, false, 0, 0.0, false))
                .setCorrectAbove(0.5)
                .setPrompts(List.of(
                        new EvaluatedPrompt(4, correct, (double) correct, 20L, 0),
                        new EvaluatedPrompt(4, 4, 4.0, 20L, 0)))
                .setRewardMean(0)
                .setPassAtK(List.of())
                .setDifficulties(List.of())
                .setTruncatedShare(0)
                .setStartLogProb(startLogProb)
                .setFailed(0)
                .setStartedAtMs(version)
                .setFinishedAtMs(version + 1)
                .build());
    }

    @Test
    void shouldTellOfHeldOutPromptsByVersion() {
        RunSummary summary = summary(List.of(row(1, 0.25, 1.0, 2, 0.5, 100)));
        JsonNode rows = summary.json().path("evaluations");

        assertThat(rows).extracting(row -> row.path("version").asInt()).containsExactly(0, 2, 4);
        assertThat(rows.at("/0/reward").asDouble()).isEqualTo(0.875); // (3/4 + 1) / 2
        assertThat(rows.at("/0/pass_at_1").asDouble()).isEqualTo(0.875);
        assertThat(rows.at("/0/start_log_prob").asDouble()).isEqualTo(-1.25);
        assertThat(rows.at("/1/start_log_prob").isNull()).isTrue();
        assertThat(rows.at("/1/responses").asInt()).isEqualTo(8);
        assertThat(rows.at("/1/reward_high").asDouble()).isGreaterThan(0.875);
        assertThat(summary.bestVersion())
                .as("of two that are alike the earlier one")
                .isZero();
    }

    @Test
    void shouldAverageRewardsOverTenSteps() {
        List<StepRow> steps = new ArrayList<>();
        for (int i = 1; i <= 20; i++) {
            steps.add(row(i, i <= 10 ? 0.1 : i <= 15 ? 1.0 : 0.5, 1, 1, 1, 1));
        }
        Rewards rewards = Rewards.over(steps);
        assertThat(rewards.first()).isCloseTo(0.1, within(1e-12));
        assertThat(rewards.last()).isCloseTo(0.75, within(1e-12)); // five of 1.0 and five of 0.5
        assertThat(rewards.best()).isCloseTo(0.75, within(1e-12));
    }

    @Test
    void shouldCarryEveryNameThatIsReliedUpon() {
        JsonNode json = summary(List.of(row(1, 0.25, 1.0, 2, 0.5, 100), row(2, 0.75, 2.0, 4, 0.75, 300)))
                .json();
        assertThat(json.path("run_id").asText()).isEqualTo("r");
        assertThat(json.path("steps").asInt()).isEqualTo(2);
        assertThat(json.path("policy_version").asInt()).isEqualTo(2);
        assertThat(json.at("/seconds/to_first_step").isNull()).isTrue();
        assertThat(json.at("/seconds/total").asDouble()).isEqualTo(12.5);
        assertThat(json.at("/reward/last").asDouble()).isEqualTo(0.5);
        assertThat(json.at("/tokens/scored").asInt()).isEqualTo(2);
        assertThat(json.at("/rollouts/generated").asInt()).isEqualTo(10);
        assertThat(json.at("/rollouts/dropped/duplicate").asInt()).isEqualTo(2);
        assertThat(json.at("/rollouts/in_flight").asInt()).isEqualTo(1);
        assertThat(json.at("/rollouts/adds_up").asBoolean()).isTrue();
        assertThat(json.at("/staleness/mean").asDouble()).isEqualTo(1.75); // (1*100 + 2*300) / 400
        assertThat(json.at("/staleness/max").asInt()).isEqualTo(4);
        assertThat(json.at("/staleness/in_flight").asDouble()).isEqualTo(1.75 / 4);
        assertThat(json.at("/staleness/in_queue").asDouble()).isEqualTo(3 * 1.75 / 4);
        assertThat(json.at("/ess/truncated_min").asDouble()).isEqualTo(0.75);
        assertThat(json.at("/ess/truncated_median").asDouble()).isEqualTo(0.8125);
        assertThat(json.at("/second_moment/median").asDouble()).isEqualTo(0.2);
        assertThat(json.at("/second_moment/trained_median").asDouble()).isEqualTo(0.1);
        assertThat(json.at("/kl_median").isNull()).as("no step reported one").isTrue();
        assertThat(json.at("/trained_share").asDouble()).isEqualTo(0.5); // 400 of 800
        assertThat(json.path("starved_steps").asInt()).isZero();
        assertThat(json.at("/idle_stages/m2po").asInt()).isEqualTo(50);
        assertThat(json.at("/ess/min").asDouble()).isEqualTo(0.5);
        assertThat(json.at("/ess/median").asDouble()).isEqualTo(0.625);
        assertThat(json.at("/idle/generator").asDouble()).isEqualTo(0.25);
    }

    @Test
    void shouldSummariseARunWithoutSteps() {
        JsonNode json = summary(List.of()).json();
        assertThat(json.path("steps").asInt()).isZero();
        assertThat(json.at("/ess/median").isNull()).isTrue();
        assertThat(json.at("/staleness/mean").isNull()).isTrue();
    }

    @Test
    void shouldLeaveStarvedStepsOutOfWhatTheyDoNotHave() {
        JsonNode json =
                summary(List.of(row(1, 0.5, 1.0, 2, 0.5, 100), starved(2))).json();

        assertThat(json.at("/staleness/mean").asDouble()).isEqualTo(1);
        assertThat(json.at("/ess/median").asDouble()).isEqualTo(0.5);
        assertThat(json.at("/trained_share").asDouble()).isEqualTo(0.125); // 100 of 800
        assertThat(json.path("starved_steps").asInt()).isEqualTo(1);
    }

    @Test
    void shouldTellWhetherColumnsCoverNewRows() {
        StepRow row = row(1, 0.5, 1.0, 2, 0.5, 100);

        assertThat(StepColumns.cover(StepColumns.of(List.of(row)), List.of(row)))
                .isTrue();
        assertThat(StepColumns.cover(StepColumns.of(List.of(starved(1))), List.of(row)))
                .as("it has metrics of stages")
                .isFalse();
    }

    @Test
    void shouldHaveAColumnForEverythingThatTheTrainingLogHas(@TempDir Path folder) throws Exception {
        List<StepRow> steps = List.of(row(1, 0.5, 1.0, 2, 0.5, 100), starved(2));
        Path file = folder.resolve("steps.csv");
        CsvFile.write(file, StepColumns.of(steps), steps);

        List<String> lines = Files.readAllLines(file);
        List<String> head = List.of(lines.get(0).split(",", -1));
        assertThat(head)
                .doesNotHaveDuplicates()
                .contains("loss", "stage.m2po.tokens_changed")
                .containsAll(TrainingStep.getClassSchema().getFields().stream()
                        .map(Schema.Field::name)
                        .filter(name -> !NOT_A_FIGURE.contains(name))
                        .toList());
        assertThat(cell(lines, 1, "stage.m2po.tokens_changed")).isEqualTo("3.0");
        assertThat(cell(lines, 1, "staleness_max")).isEqualTo("2");
        for (String absent : List.of("stage.m2po.tokens_changed", "staleness_mean", "staleness_max", "ess_ratio")) {
            assertThat(cell(lines, 2, absent)).as(absent).isEmpty();
        }
        assertThat(cell(lines, 2, "starved")).isEqualTo("true");
    }

    private static String cell(List<String> lines, int row, String column) {
        return lines.get(row)
                .split(",", -1)[List.of(lines.get(0).split(",", -1)).indexOf(column)];
    }

    @Test
    void shouldDrawAPicture(@TempDir Path folder) throws Exception {
        List<StepRow> steps = new ArrayList<>();
        for (int i = 1; i <= 50; i++) {
            steps.add(row(i, i / 50.0, 1, 2, 0.9, 1));
        }
        Path file = folder.resolve("run.png");
        RunPicture.write(steps, "a run", file);
        BufferedImage image = ImageIO.read(file.toFile());
        assertThat(image.getWidth()).isEqualTo(900);
        assertThat(image.getHeight()).as("three panels and the names below").isBetween(1040, 1100);
        // the reward line rises: its colour is low at the left and high at the right
        assertThat(rowOf(image, 150)).isGreaterThan(rowOf(image, 800));
    }

    /** Of the line about a column: between the dots of a smooth line few are of its full colour. */
    private static int rowOf(BufferedImage image, int about) {
        for (int x = about - 10; x <= about + 10; x++) {
            for (int y = 0; y < 340; y++) {
                if ((image.getRGB(x, y) & 0xffffff) == 0x0072b2) {
                    return y;
                }
            }
        }
        throw new AssertionError("no reward line about column " + about);
    }
}
