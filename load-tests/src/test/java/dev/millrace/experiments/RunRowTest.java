package dev.millrace.experiments;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.experiments.Grid.RunKey;
import dev.millrace.experiments.RunRow.Outcome;
import dev.millrace.experiments.StepPoint.Evaluation;
import dev.millrace.report.ReportText;
import dev.millrace.report.Table;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class RunRowTest {
    private static final StalenessSettings SETTINGS =
            new StalenessSettings(StalenessSettings.SMALL_MODEL, 2, 16, 4, 6e-3, 2, 140, 20, 8);
    private static final GridRunResult ON_POLICY = run(0, null, 0.4, 0.6, 0.8, 0.9, 0.9, 0.9, 0.9, 1.0);

    private static final GridRunResult BETTER = run(0, null, 0.4, 0.6, 0.8, 1, 1, 1, 1, 1);

    /** Evaluated every 20 steps; ESS ratio and second moment of step t are t/1000 and t/100. */
    private static GridRunResult run(int lag, String refused, double... rewards) {
        List<Evaluation> evaluations = new ArrayList<>();
        List<StepPoint> points = new ArrayList<>();
        for (int i = 0; i < rewards.length; i++) {
            evaluations.add(new Evaluation(i * 20L, rewards[i], rewards[i] / 2));
        }
        for (int t = 0; t < 20 * (rewards.length - 1); t++) {
            points.add(new StepPoint(
                    t,
                    Math.max(0, t - lag),
                    Math.min(t, lag),
                    0.5,
                    new StepPoint.Drift(t / 1000.0, t / 100.0, 0, t / 2000.0, t / 200.0),
                    new StepPoint.Update(0.25, 0, 1, 2, 1, t < 3)));
        }
        return new GridRunResult(new RunKey(lag, Correction.of("none"), 1), SETTINGS, points, evaluations, refused);
    }

    private static RunRow row(double... rewards) {
        return RunRow.of(run(64, null, rewards), List.of(BETTER, ON_POLICY));
    }

    @Test
    void shouldCallARunCollapsedThatFallsBelowHalfOfItsBestAndStays() {
        RunRow row = row(0.4, 0.6, 0.8, 0.7, 0.39, 0.3, 0.1, 0.2);

        assertThat(row.outcome()).isEqualTo(Outcome.COLLAPSED);
        assertThat(row.learning().collapsedAt()).isEqualTo(80);
        assertThat(row.learning().bestReward()).isEqualTo(0.8);
        assertThat(row.learning().lastReward()).isCloseTo((0.39 + 0.3 + 0.1 + 0.2) / 4, within(1e-12));
        assertThat(row.drift().essRatio()).as("median of steps 48 to 79").isCloseTo(0.0635, within(1e-12));
        assertThat(row.drift().secondMoment()).isCloseTo(0.635, within(1e-12));
    }

    @Test
    void shouldCountStarvedStepsWhereTheyAreKnown() {
        GridRunResult run = run(64, null, 0.4, 0.4);
        assertThat(RunRow.of(run, List.of(ON_POLICY)).treatment().starved()).isEqualTo(3);

        List<StepPoint> points = new ArrayList<>(run.points());
        points.set(
                7,
                new StepPoint(
                        7,
                        0,
                        7,
                        0.5,
                        new StepPoint.Drift(0, 0, 0, 0, 0),
                        new StepPoint.Update(0.25, 0, 1, 2, 1, null))); // read from a file of an earlier form
        GridRunResult unknown = new GridRunResult(run.key(), run.settings(), points, run.evaluations(), run.refused());
        assertThat(RunRow.of(unknown, List.of(ON_POLICY)).treatment().starved()).isNull();
    }

    @Test
    void shouldNotCallARunCollapsedThatComesBackOrHasOnlyJustFallen() {
        assertThat(row(0.4, 0.8, 0.3, 0.3, 0.3, 0.3, 0.3, 0.5).outcome()).isEqualTo(Outcome.BEHIND);
        assertThat(row(0.4, 0.8, 0.8, 0.8, 0.8, 0.3, 0.3, 0.3).outcome()).isEqualTo(Outcome.BEHIND);
    }

    @Test
    void shouldHoldTheLastRewardsAgainstTheOnPolicyRuns() {
        RunRow keepsUp = row(0.4, 0.4, 0.4, 0.9, 0.88, 0.88, 0.88, 0.88);

        assertThat(keepsUp.outcome()).as("0.88 against 0.925 - 0.05").isEqualTo(Outcome.KEEPS_UP);
        assertThat(keepsUp.learning().reached()).isEqualTo(60);
        assertThat(keepsUp.drift().essRatio())
                .as("learnt before the lag was whole: median of steps 0 to 139")
                .isCloseTo(0.0695, within(1e-12));
        assertThat(row(0.4, 0.4, 0.4, 0.9, 0.87, 0.87, 0.87, 0.87).outcome()).isEqualTo(Outcome.BEHIND);
        assertThat(row(0.4, 0.4, 0.4, 0.4, 0.4, 0.9, 0.9, 0.9).drift().essRatio())
                .as("median of steps 64 to 99")
                .isCloseTo(0.0815, within(1e-12));
        assertThat(row(0.4, 0.4, 0.4, 0.4, 0.4, 0.8, 0.8, 0.8).drift().essRatio())
                .as("median of steps 64 to 139")
                .isCloseTo(0.1015, within(1e-12));
    }

    @Test
    void shouldCallARunCollapsedWhoseNumbersAreNotFinite() {
        RunRow row = RunRow.of(run(64, "the loss is NaN", 0.4, 0.6), List.of(BETTER, ON_POLICY));

        assertThat(row.outcome()).isEqualTo(Outcome.COLLAPSED);
        assertThat(row.learning().collapsedAt()).isEqualTo(20);
        assertThat(Table.of("", RunRow.COLUMNS, List.of(row)).rows().get(0))
                .startsWith(64L, "none", 1L, "collapsed", 0.4, 0.6, 0.5)
                .endsWith("the loss is NaN");
    }

    @Test
    void shouldWriteARowPerCorrectionAndAColumnPerLag() {
        Grid grid = new Grid(List.of(0, 64), List.of(Correction.of("none")), List.of(1L, 2L), SETTINGS);
        List<RunRow> rows = List.of(
                RunRow.of(ON_POLICY, List.of(ON_POLICY)),
                RunRow.of(ON_POLICY, List.of(ON_POLICY)),
                row(0.4, 0.6, 0.8, 0.7, 0.3, 0.3, 0.3, 0.3),
                row(0.4, 0.4, 0.4, 0.9, 0.5, 0.5, 0.5, 0.5));

        assertThat(ReportText.markdown(
                        new StalenessReport(grid, List.of(), rows, CollapseAlarm.of(List.of())).report()))
                .contains("""
            | correction    | lag 0   | lag 64  |
            | ------------- | ------- | ------- |
            | no correction | 0.93 KK | 0.40 CB |
            """, """
            | correction    | lag 0        | lag 64       |
            | ------------- | ------------ | ------------ |
            | no correction | 0.03 / 0.295 | 0.07 / 0.665 |
            """)
                .as("TV 0.03, ESS 0.07: one run behind, one collapsed")
                .containsPattern("\\| low, high +\\| +0 +\\| +1 +\\| +1 +\\|")
                .containsPattern("\\| high, high +\\| +0 +\\| +0 +\\| +0 +\\|")
                .contains("0 of 0 stale runs fall");
    }
}
