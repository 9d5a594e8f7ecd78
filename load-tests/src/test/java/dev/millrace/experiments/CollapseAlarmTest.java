package dev.millrace.experiments;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.tuple;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.experiments.CollapseAlarm.Logistic;
import dev.millrace.experiments.CollapseAlarm.Rating;
import dev.millrace.experiments.CollapseAlarm.Window;
import dev.millrace.experiments.Grid.RunKey;
import dev.millrace.experiments.StepPoint.Evaluation;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class CollapseAlarmTest {
    private static final int EVERY = 50;
    private static final StalenessSettings SETTINGS =
            new StalenessSettings(StalenessSettings.SMALL_MODEL, 2, 16, 4, 6e-3, 2, 500, EVERY, 8);
    private static final String CALM = "0.5 0.6 0.7 0.8 0.8 0.8 0.8 0.8 0.8 0.8 0.8";
    private static final String FALLS = "0.5 0.6 0.7 0.8 0.8 0.7 0.5 0.5 0.5 0.5 0.5"; // at step 300: 0.5 <= 0.56

    /** The ESS ratio is low from step {@code lowFrom} on; nothing else differs. */
    private static GridRunResult run(String correction, long seed, String rewards, int lowFrom) {
        List<Evaluation> evaluations = new ArrayList<>();
        for (String reward : rewards.split(" ")) {
            evaluations.add(new Evaluation((long) EVERY * evaluations.size(), Double.parseDouble(reward), 0));
        }
        List<StepPoint> points = new ArrayList<>();
        for (int t = 0; t < EVERY * (evaluations.size() - 1); t++) {
            double ess = t < lowFrom ? 0.9 : 0.1;
            points.add(new StepPoint(
                    t,
                    0,
                    8,
                    0.5,
                    new StepPoint.Drift(ess, 0.1, 0.1, 0.1, 0.1),
                    new StepPoint.Update(0, 0, 1, 1, 1, false)));
        }
        return new GridRunResult(new RunKey(8, Correction.of(correction), seed), SETTINGS, points, evaluations, null);
    }

    private static GridRunResult run(String rewards) {
        return run("none", 1, rewards, 1000);
    }

    @Test
    void findsTheFirstLastingFall() {
        assertThat(CollapseAlarm.fall(run(FALLS))).hasValue(300);
        assertThat(CollapseAlarm.fall(run(CALM))).isEmpty();
        assertThat(CollapseAlarm.fall(run("0.5 0.8 0.5 0.5 0.6 0.8 0.8 0.8 0.8 0.8 0.8")))
                .as("back within 100 updates")
                .isEmpty();
        assertThat(CollapseAlarm.fall(run("0.5 0.8 0.8 0.8 0.8 0.8 0.8 0.8 0.8 0.5 0.5")))
                .as("not known to last")
                .isEmpty();
    }

    @Test
    void labelsTheWindowsBeforeAFallAndLeavesOutWhatIsNotKnown() {
        assertThat(CollapseAlarm.windows(run(FALLS)))
                .extracting(Window::step, Window::falls)
                .containsExactly(
                        tuple(50L, false),
                        tuple(100L, false),
                        tuple(150L, false),
                        tuple(200L, true),
                        tuple(250L, true));
        assertThat(CollapseAlarm.windows(run(CALM)))
                .extracting(Window::step)
                .containsExactly(50L, 100L, 150L, 200L, 250L, 300L, 350L, 400L);
        assertThat(CollapseAlarm.windows(run("0.5 0.8 0.8 0.8 0.8 0.8 0.8 0.8 0.8 0.5 0.5")))
                .as("the evaluation at 450 may be a fall")
                .extracting(Window::step)
                .containsExactly(50L, 100L, 150L, 200L, 250L, 300L);
    }

    @Test
    void countsPairsInOrder() { // positives 3 and 1, negatives 2 and 1: won, won, lost, tied
        assertThat(CollapseAlarm.auroc(new double[] {3, 2, 1, 1}, new int[] {0, 2}))
                .isEqualTo(2.5 / 4);
    }

    @Test
    void fitsARegressionThatIsSymmetricInItsClasses() {
        List<Window> windows = new ArrayList<>();
        for (double x : new double[] {1, 2, 3, 4}) {
            windows.add(new Window(new RunKey(8, Correction.of("none"), 1), 0, x > 2.5, new double[] {7, x}));
        }
        double[] fit = Logistic.fit(windows, 1, 2);
        assertThat(fit[0]).isPositive();
        assertThat(fit[1] + 2.5 * fit[0]).as("even odds in the middle").isCloseTo(0, within(1e-9));
        assertThat(Logistic.fit(windows, 0, 1)[0]).as("a constant says nothing").isZero();
    }

    @Test
    void ratesIndicatorsOnSeedsAndCorrectionsThatTheyWereNotFittedTo() {
        List<GridRunResult> runs = new ArrayList<>();
        for (String correction : List.of("none", "gspo", "topr")) {
            for (long seed = 1; seed <= 3; seed++) {
                runs.add(run(correction, seed, seed == 2 ? CALM : FALLS, seed == 2 ? 1000 : 150));
            }
        }
        CollapseAlarm alarm = CollapseAlarm.of(runs);

        assertThat(alarm.runs()).isEqualTo(9);
        assertThat(alarm.falls()).isEqualTo(6);
        assertThat(alarm.windows()).isEqualTo(6 * 5 + 3 * 8);
        assertThat(alarm.positives()).isEqualTo(12);
        assertThat(alarm.ratings()).hasSize(11);
        Rating ess = alarm.ratings().get(0);
        assertThat(ess.auroc().value()).isEqualTo(1);
        assertThat(ess.lead().value()).as("the window that ends at 200").isEqualTo(100);
        assertThat(ess.falseAlarms()).isZero();
        assertThat(alarm.ratings())
                .filteredOn(rating -> rating.indicator().startsWith("regression"))
                .hasSize(2)
                .allSatisfy(rating -> assertThat(rating.auroc().value()).isEqualTo(1));
        assertThat(alarm.ratings())
                .filteredOn(rating -> rating.indicator().equals("entropy"))
                .singleElement()
                .satisfies(rating -> assertThat(rating.auroc().value()).isEqualTo(0.5));
        assertThat(CollapseAlarm.of(runs.subList(0, 3)).ratings())
                .as("no other correction to fit to")
                .isEmpty();
    }
}
