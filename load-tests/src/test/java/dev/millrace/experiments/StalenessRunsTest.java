package dev.millrace.experiments;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.experiments.Grid.RunKey;
import dev.millrace.experiments.StepPoint.Drift;
import dev.millrace.replay.ScoredRollouts;
import java.util.List;
import java.util.Set;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

class StalenessRunsTest {
    private static final int STEPS = 8;
    static final StalenessSettings TINY =
            new StalenessSettings(StalenessSettings.SMALL_MODEL, 2, 16, 4, 6e-3, 2, STEPS, 4, 8);

    private final StalenessRuns runs = new StalenessRuns(TINY);

    @Test
    void shouldSampleEveryBatchExactlySoManyVersionsBehind() {
        for (int lag : List.of(0, 1, 3)) {
            List<StepPoint> points =
                    runs.run(new RunKey(lag, Correction.of("none"), 1)).points();

            assertThat(points)
                    .extracting(StepPoint::behaviorVersion)
                    .containsExactlyElementsOf(LongStream.range(0, STEPS)
                            .map(t -> Math.max(0, t - lag))
                            .boxed()
                            .toList());
            assertThat(points)
                    .extracting(StepPoint::staleness)
                    .containsExactlyElementsOf(LongStream.range(0, STEPS)
                            .mapToObj(t -> (double) Math.min(t, lag))
                            .toList());
        }
    }

    @ParameterizedTest
    @MethodSource("dev.millrace.experiments.Correction#all")
    void shouldGiveTheSameBitsAtEveryRepetition(Correction correction) {
        RunKey key = new RunKey(3, correction, 2);

        GridRunResult first = runs.run(key);

        assertThat(first.refused()).isNull();
        assertThat(new StalenessRuns(TINY).run(key)).isEqualTo(first);
        assertThat(runs.run(new RunKey(3, correction, 1)).points()).isNotEqualTo(first.points());
    }

    @ParameterizedTest
    @MethodSource("dev.millrace.experiments.Correction#all")
    void shouldSeeNoDriftOnPolicy(Correction correction) {
        assertThat(runs.run(new RunKey(0, correction, 1)).points()).allSatisfy(point -> {
            assertThat(point.drift().essRatio()).isCloseTo(1, within(1e-4));
            assertThat(point.drift().secondMoment()).isCloseTo(0, within(1e-6));
            assertThat(point.drift().kl()).isCloseTo(0, within(1e-4));
            assertThat(point.drift().tv()).isCloseTo(0, within(1e-4));
            assertThat(point.drift().chiSquare()).isCloseTo(0, within(1e-4));
            assertThat(point.update().maskedFraction()).isZero();
            assertThat(point.update().clipFraction()).isZero();
            assertThat(point.update().stepScale()).isCloseTo(1, within(1e-4));
        });
    }

    @Test
    void shouldMeasureTheDriftOfEveryToken() { // ratios 2 and 1/2 in one sequence, 1 in the other
        float two = (float) Math.log(2);
        Drift drift = Drift.of(new ScoredRollouts(
                List.of(),
                new TokenBatch(new int[] {0, 2, 3}, new byte[] {1, 1, 1}),
                new float[] {-2, -2, -2},
                new float[] {two - 2, -two - 2, -2}));

        assertThat(drift.essRatio()).isCloseTo(1, within(1e-6));
        assertThat(drift.secondMoment()).isCloseTo(2 * two * two / 3, within(1e-6));
        assertThat(drift.kl()).isCloseTo(0, within(1e-6));
        assertThat(drift.tv()).isCloseTo((1 + 0.5) / 2 / 3, within(1e-6));
        assertThat(drift.chiSquare()).isCloseTo((4 + 0.25 + 1) / 3 - 1, within(1e-6));
    }

    @Test
    void shouldRefuseABatchThatIsNoWholeNumberOfGroups() {
        assertThatThrownBy(() -> new StalenessSettings(StalenessSettings.SMALL_MODEL, 2, 6, 4, 6e-3, 2, STEPS, 4, 8))
                .hasMessage("batch-sequences must be a multiple of group-size, which must be at least 2: 6 and 4");
    }

    @Test
    void shouldLetEachCorrectionActOnceTheBatchIsOld() {
        StalenessRuns longer =
                new StalenessRuns(new StalenessSettings(StalenessSettings.SMALL_MODEL, 2, 16, 4, 2e-2, 2, 24, 24, 8));
        for (Correction correction : Correction.all()) {
            List<StepPoint> points = longer.run(new RunKey(16, correction, 1)).points();
            assertThat(points.get(20).drift().essRatio()).as(correction.title()).isLessThan(0.95);
            assertThat(points.stream().anyMatch(p -> p.update().maskedFraction() > 0))
                    .as(correction.title() + " masks")
                    .isEqualTo(Set.of("m2po", "m2po_vcpo", "decoupled_ppo", "geo_rs", "trm", "dis")
                            .contains(correction.key()));
            assertThat(points.stream().anyMatch(p -> p.update().clipFraction() > 0))
                    .as(correction.title() + " clips")
                    .isEqualTo(Set.of("ppo_clip", "gspo", "cispo").contains(correction.key()));
            assertThat(points.stream().anyMatch(p -> p.update().stepScale() < 0.95))
                    .as(correction.title() + " scales")
                    .isEqualTo(Set.of("vcpo", "m2po_vcpo").contains(correction.key()));
        }
    }
}
