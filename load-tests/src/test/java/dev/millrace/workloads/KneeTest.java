package dev.millrace.workloads;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.workloads.Knee.KneeSearch;
import dev.millrace.workloads.Knee.Point;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;

class KneeTest {
    @Test
    void shouldFindTheCornerOfAnIdealCurve() {
        List<Point> curve = List.of(new Point(100, 100), new Point(200, 200), new Point(400, 300), new Point(800, 300));
        assertThat(Knee.of(curve).rate()).isCloseTo(300, within(1e-9));
        assertThat(Knee.of(curve).reached()).isTrue();
    }

    @Test
    void shouldSayThatItWasNotReachedWhereEveryLoadWasFollowed() {
        assertThat(Knee.of(List.of(new Point(100, 100), new Point(200, 195)))).isEqualTo(new Knee(200, false));
    }

    @Test
    void shouldNotLetAnOverloadDecide() {
        assertThat(Knee.of(List.of(new Point(200, 200), new Point(300, 290), new Point(800, 120)))
                        .rate())
                .isEqualTo(290);
    }

    @Test
    void shouldNotCountWhatHadWaitedBefore() {
        assertThat(Knee.of(List.of(new Point(200, 230), new Point(400, 190)))).isEqualTo(new Knee(200, true));
    }

    @Test
    void shouldTakeAPlateauThatBeginsWithTheFirstPoint() {
        assertThat(Knee.of(List.of(new Point(100, 40), new Point(200, 40))).rate())
                .isCloseTo(40, within(1e-9));
    }

    /** Twelve percent of noise on every point moves the knee by less than fifteen, for any order of the points. */
    @Test
    void shouldWithstandNoise() {
        Random random = new Random(2);
        for (int trial = 0; trial < 200; trial++) {
            double knee = 50 * Math.pow(2, 4 * random.nextDouble());
            List<Point> curve = new ArrayList<>();
            for (double rate = 25; rate <= 3200; rate *= 2) {
                curve.add(new Point(
                        rate, Math.min(rate, knee) * (rate < knee ? 1 : 1 + 0.12 * (2 * random.nextDouble() - 1))));
            }
            Collections.shuffle(curve, random);
            Knee found = Knee.of(curve);
            assertThat(found.reached()).isTrue();
            assertThat(found.rate()).isCloseTo(knee, within(0.15 * knee));
        }
    }

    @Test
    void shouldRefuseRatesThatAreNone() {
        assertThatThrownBy(() -> new Point(100, 0)).hasMessageContaining("achieved=0.0");
        assertThatThrownBy(() -> new Point(Double.NaN, 1)).hasMessageContaining("offered=NaN");
    }

    @Test
    void shouldSearchWithFewMeasurements() throws InterruptedException {
        for (double knee : new double[] {70, 333, 1900}) {
            List<Point> measured = KneeSearch.run(50, 8, rate -> Math.min(rate, knee));
            assertThat(measured).hasSizeLessThanOrEqualTo(8);
            assertThat(Knee.of(measured).rate()).isCloseTo(knee, within(0.02 * knee));
        }
    }

    @Test
    void shouldEndTheSearchWhereNothingHoldsTheSystemBack() throws InterruptedException {
        List<Point> measured = KneeSearch.run(50, 5, rate -> rate);
        assertThat(measured).extracting(Point::offered).containsExactly(50.0, 100.0, 200.0, 400.0, 800.0);
        assertThat(Knee.of(measured).reached()).isFalse();
    }

    /** A rate that was not followed only because something else ran is measured again. */
    @Test
    void shouldTakeBackAPointThatWasDisturbed() throws InterruptedException {
        List<Double> asked = new ArrayList<>();
        List<Point> measured = KneeSearch.run(100, 9, rate -> {
            asked.add(rate);
            return asked.size() == 3 ? 0.5 * rate : Math.min(rate, 430);
        });
        assertThat(asked)
                .startsWith(100.0, 200.0, 400.0)
                .filteredOn(rate -> rate == 400)
                .hasSize(2);
        assertThat(Knee.of(measured).rate()).isCloseTo(430, within(0.05 * 430));
    }

    @Test
    void shouldAskAgainForTheFirstRateBeforeItGoesBelow() throws InterruptedException {
        List<Double> asked = new ArrayList<>();
        KneeSearch.run(800, 4, rate -> {
            asked.add(rate);
            return asked.size() == 1 ? 0.5 * rate : Math.min(rate, 2000);
        });

        assertThat(asked).containsExactly(800.0, 800.0, 1600.0, 3200.0);
    }

    @Test
    void shouldGoDownWhereTheFirstRateIsNotFollowed() throws InterruptedException {
        List<Point> measured = KneeSearch.run(800, 8, rate -> Math.min(rate, 150));
        assertThat(Knee.of(measured).rate()).isCloseTo(150, within(1e-9));
        assertThat(measured).anyMatch(Point::followed);
    }
}
