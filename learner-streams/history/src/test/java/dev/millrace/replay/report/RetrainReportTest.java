package dev.millrace.replay.report;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.replay.retrain.RetrainedStep;
import dev.millrace.replay.retrain.VariantStep;
import dev.millrace.replay.retrain.VersionInterval;
import dev.millrace.report.Column.Heading;
import dev.millrace.report.Report;
import dev.millrace.report.ReportText;
import dev.millrace.report.Table;
import java.util.List;
import java.util.Optional;
import java.util.OptionalDouble;
import org.junit.jupiter.api.Test;

class RetrainReportTest {
    private static final VersionInterval RANGE = new VersionInterval(10, 12);

    /** Two steps on two rollouts each, and five tries of two variants. */
    private static RetrainRecord record(boolean isAsRecorded, int sameRollouts, double... rewardsOfTheFirst) {
        RetrainRecord record = new RetrainRecord(List.of("recorded", "other"));
        for (int i = 1; i <= 2; i++) {
            VariantStep step = new VariantStep(
                    isAsRecorded,
                    "hash",
                    new VariantStep.Update(1, 2, 0.1, 0.5, 0, 0.01, 4),
                    0.5,
                    sameRollouts,
                    new VariantStep.Estimates(0, 0, 0),
                    0);
            record.step(new RetrainedStep(10 + i, i, 0.5, 1, 2, List.of(Optional.of(step), Optional.of(step))));
        }
        for (int i = 0; i < rewardsOfTheFirst.length; i++) {
            record.evaluated(10 + i, List.of(OptionalDouble.of(rewardsOfTheFirst[i]), OptionalDouble.of(0.75)));
        }
        return record;
    }

    private static String text(RetrainSeeds found) {
        return String.join(" ", ReportText.lines(RetrainReport.of(found, RANGE, 1.5)))
                .replaceAll("\\s+", " ");
    }

    @Test
    void shouldSayWhetherTheRolloutsAreTheRecordedOnes() {
        RetrainRecord same = record(true, 2, 0.5);
        assertThat(RetrainReport.proof(new RetrainSeeds(List.of(same), false), RANGE))
                .isEqualTo("as recorded: the run's own settings reproduce the weights of all 2 versions bit for bit");
        assertThat(RetrainReport.proof(new RetrainSeeds(List.of(same), true), RANGE))
                .isEqualTo("as recorded: the run's own settings sample its"
                        + " rollouts again, all 4 of them token for token, and reproduce the weights of all"
                        + " 2 versions bit for bit");
        assertThat(RetrainReport.proof(new RetrainSeeds(List.of(same), false), new VersionInterval(10, 11)))
                .isEqualTo("as recorded: the run's own settings reproduce the weights of version 11 bit for bit");
        assertThat(RetrainReport.proof(new RetrainSeeds(List.of(record(false, 1, 0.5)), true), RANGE))
                .startsWith("not as recorded: the run's own settings sample 2 of its 4 rollouts again token for token,"
                        + " and the weights diverge from the recorded ones at version 11. Without --live");
    }

    @Test
    void shouldCountTheSeedsWithWhichACourseCollapsed() {
        RetrainRecord fell = record(true, 2, 0.8, 0.2, 0.1, 0.2, 0.3);
        RetrainRecord held = record(false, 0, 0.8, 0.7, 0.6, 0.5, 0.6);
        RetrainRecord ended = record(false, 0, 0.4);
        ended.ended(0, 11, "the loss is NaN");
        assertThat(text(new RetrainSeeds(List.of(fell, held, ended), true)))
                .contains(
                        "2 variants, 3 seeds in 1.5 s",
                        "live: each retraining samples new rollouts",
                        "recorded: collapsed with 1 of 3 seeds; reward at the end 0.20 (from 11 on), 0.60, - (ended at version 11: the loss is NaN)",
                        "other: collapsed with none of 3 seeds; reward at the end 0.75, 0.75, 0.75",
                        "other ended 0.35 above recorded, by the mean of the last 4 evaluations, 3 seeds");
        assertThat(text(new RetrainSeeds(List.of(fell), false)))
                .doesNotContain("live", "seeds")
                .contains(
                        "recorded: collapsed: from version 11 on its reward stays below half of its best",
                        "other: did not collapse");
    }

    @Test
    void shouldSayOverHowManyEvaluationsOfAShortCourseItsEndIsAMean() {
        assertThat(text(new RetrainSeeds(List.of(record(true, 2, 0.3, 0.5)), false)))
                .contains(
                        "other ended 0.35 above recorded, by the mean of the last 2 evaluations, that of the start among them, 1 seed");
    }

    @Test
    void shouldMeanOverTheSeedsThatHaveAValue() {
        RetrainSeeds found = new RetrainSeeds(List.of(record(true, 2, 0.8, 0.2), record(true, 2, 0.6)), true);
        assertThat(found.evaluatedAt()).containsExactly(10, 11);
        assertThat(found.rewards(0)).containsExactly(0.7, 0.2);
        assertThat(found.curve(1, step -> step.update().gradNorm())).containsExactly(2, 2);
    }

    @Test
    void shouldSayThatACourseEndedFarBelowTheRecordedOne() {
        RetrainRecord flat = new RetrainRecord(List.of("recorded", "other", "near"));
        for (int i = 0; i < 4; i++) {
            flat.evaluated(10 + i, List.of(OptionalDouble.of(0.9), OptionalDouble.of(0.11), OptionalDouble.of(0.86)));
        }

        assertThat(RetrainReport.fate(new RetrainSeeds(List.of(flat), false), 1))
                .isEqualTo("did not collapse, but ended 0.79 below recorded");
        assertThat(RetrainReport.fate(new RetrainSeeds(List.of(flat), false), 2))
                .isEqualTo("did not collapse");
    }

    @Test
    void shouldNameACourseThatFroze() {
        RetrainRecord still = frozen(11);
        RetrainRecord moving = frozen(10);

        assertThat(RetrainReport.fate(new RetrainSeeds(List.of(still), false), 1))
                .isEqualTo(
                        "froze: from version 11 on no token was left to train on, and its weights stayed as they were;"
                                + " ended 0.40 below recorded");
        assertThat(RetrainReport.fate(new RetrainSeeds(List.of(still, moving), false), 1))
                .endsWith("seeds; reward at the end 0.10, 0.10; froze with 1 of 2");
        assertThat(RetrainReport.fate(new RetrainSeeds(List.of(moving), false), 1))
                .isEqualTo("did not collapse, but ended 0.40 below recorded");
    }

    @Test
    void shouldCountStarvedStepsAndLeaveThemOutOfTheMeanEss() {
        Report report = RetrainReport.of(new RetrainSeeds(List.of(frozen(11)), false), new VersionInterval(10, 21), 1);

        Table table = report.sections().get(0).tables().get(0);
        assertThat(table.columns().stream().map(Heading::name)).contains("starved", "mean ESS");
        List<List<String>> shown = table.rows().stream()
                .map(row -> row.stream().map(String::valueOf).toList())
                .toList();
        assertThat(shown.get(0)).contains("0.5").endsWith("0");
        assertThat(shown.get(1)).as("the one step that trained").contains("1.0").endsWith("10");
    }

    /** The other variant trains at the first step and on nothing afterwards. */
    private static RetrainRecord frozen(int steps) {
        RetrainRecord record = new RetrainRecord(List.of("recorded", "other"));
        for (int i = 0; i < steps; i++) {
            VariantStep moves = new VariantStep(
                    true,
                    "hash " + i,
                    new VariantStep.Update(1, 2, 0.1, 0.5, 0, 0.01, 4),
                    0.5,
                    2,
                    new VariantStep.Estimates(0, 0, 0),
                    0);
            VariantStep stays = new VariantStep(
                    false,
                    "hash",
                    new VariantStep.Update(0, 0, Double.NaN, 1, 0, 0, i == 0 ? 4 : 0),
                    0.5,
                    2,
                    new VariantStep.Estimates(0, 0, 0),
                    0);
            record.step(new RetrainedStep(10 + i, i, 0.5, 1, 2, List.of(Optional.of(moves), Optional.of(stays))));
        }
        record.evaluated(20, List.of(OptionalDouble.of(0.5), OptionalDouble.of(0.1)));
        return record;
    }
}
