package dev.millrace.experiments;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.experiments.Grid.RunKey;
import java.util.List;
import java.util.Set;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

class StalenessRunsTest {
    private static final int STEPS = 8;
    static final StalenessSettings TINY =
            new StalenessSettings(StalenessSettings.SMALL_MODEL, 2, 16, 4, 6e-3, 2, STEPS, 4, 8);

    private final StalenessRuns runs = new StalenessRuns(TINY);

    @Test
    void shouldSampleEveryBatchExactlySoManyVersionsBehind() {
        for (int lag : List.of(0, 1, 3)) {
            List<StepPoint> points =
                    runs.run(new RunKey(lag, Correction.NONE, 1)).points();

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
    @EnumSource(Correction.class)
    void shouldGiveTheSameBitsAtEveryRepetition(Correction correction) {
        RunKey key = new RunKey(3, correction, 2);

        GridRunResult first = runs.run(key);

        assertThat(first.refused()).isNull();
        assertThat(new StalenessRuns(TINY).run(key)).isEqualTo(first);
        assertThat(runs.run(new RunKey(3, correction, 1)).points()).isNotEqualTo(first.points());
    }

    @ParameterizedTest
    @EnumSource(Correction.class)
    void shouldSeeNoDriftOnPolicy(Correction correction) {
        assertThat(runs.run(new RunKey(0, correction, 1)).points()).allSatisfy(point -> {
            assertThat(point.essRatio()).isCloseTo(1, within(1e-4));
            assertThat(point.secondMoment()).isCloseTo(0, within(1e-6));
            assertThat(point.kl()).isCloseTo(0, within(1e-4));
            assertThat(point.maskedFraction()).isZero();
            assertThat(point.clipFraction()).isZero();
            assertThat(point.stepScale()).isCloseTo(1, within(1e-4));
        });
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
        for (Correction correction : Correction.values()) {
            List<StepPoint> points = longer.run(new RunKey(16, correction, 1)).points();
            assertThat(points.get(20).essRatio()).as(correction.title()).isLessThan(0.95);
            assertThat(points.stream().anyMatch(p -> p.maskedFraction() > 0))
                    .as(correction.title() + " masks")
                    .isEqualTo(Set.of(Correction.M2PO, Correction.M2PO_VCPO, Correction.DECOUPLED_PPO)
                            .contains(correction));
            assertThat(points.stream().anyMatch(p -> p.clipFraction() > 0))
                    .as(correction.title() + " clips")
                    .isEqualTo(correction == Correction.PPO_CLIP);
            assertThat(points.stream().anyMatch(p -> p.stepScale() < 0.95))
                    .as(correction.title() + " scales")
                    .isEqualTo(correction == Correction.VCPO || correction == Correction.M2PO_VCPO);
        }
    }
}
