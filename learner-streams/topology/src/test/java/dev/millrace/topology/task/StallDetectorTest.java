package dev.millrace.topology.task;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.tuple;

import dev.millrace.log.Alarm;
import dev.millrace.log.Alarms;
import dev.millrace.topology.task.StallAlarms.StallDetector;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.util.List;
import org.junit.jupiter.api.Test;

class StallDetectorTest {
    private final StallDetector detector = new StallDetector(30_000);

    private static Wait join(int partition, long progress) {
        return new Wait("join", partition, progress, "12 rollouts wait");
    }

    @Test
    void shouldRingForAWaitWithoutProgressAndNameStagePartitionAndTime() {
        assertThat(detector.check(List.of(join(2, 7)), 1_000).begun()).isEmpty();
        assertThat(detector.check(List.of(join(2, 7)), 30_999).begun()).isEmpty();
        assertThat(detector.check(List.of(join(2, 7)), 31_000).begun())
                .singleElement()
                .satisfies(alarm -> assertThat(alarm.sentence(32_000))
                        .isEqualTo("join, partition 2: 12 rollouts wait; no progress for 31 s"));
        assertThat(detector.check(List.of(join(2, 7)), 60_000).begun())
                .as("it rings already")
                .isEmpty();
        assertThat(detector.stalled()).hasSize(1);
    }

    @Test
    void shouldEndWithProgressOrWithTheWait() {
        detector.check(List.of(join(0, 1), join(1, 1)), 0);
        assertThat(detector.check(List.of(join(0, 1), join(1, 1)), 30_000).begun())
                .hasSize(2);
        StallDetector.Change change = detector.check(List.of(join(0, 2)), 40_000);
        assertThat(change.begun()).isEmpty();
        assertThat(change.ended()).hasSize(2);
        assertThat(detector.stalled()).isEmpty();
        assertThat(detector.check(List.of(join(0, 2)), 69_999).begun()).isEmpty();
        assertThat(detector.check(List.of(join(0, 2)), 70_000).begun())
                .as("it stands still again")
                .hasSize(1);
    }

    @Test
    void shouldNotRingAsLongAsThereIsProgress() {
        for (int second = 0; second < 300; second++) {
            assertThat(detector.check(List.of(join(0, second / 29)), second * 1000L)
                            .begun())
                    .isEmpty();
        }
    }

    @Test
    void shouldWaitThreePacesForWhatIsSlow() {
        long now = 0;
        for (int step = 0; step < 4; step++) {
            detector.check(List.of(join(0, step)), now);
            now += 50_000; // a step
        }
        detector.check(List.of(join(0, 4)), now);
        assertThat(detector.check(List.of(join(0, 4)), now + 149_999).begun()).isEmpty();
        assertThat(detector.check(List.of(join(0, 4)), now + 150_000).begun()).hasSize(1);
    }

    @Test
    void shouldNotBecomePatientByOneLongStall() {
        for (int second = 0; second < 10; second++) {
            detector.check(List.of(join(0, second)), second * 1000L);
        }
        assertThat(detector.check(List.of(join(0, 9)), 7_200_000).begun()).hasSize(1);
        detector.check(List.of(join(0, 10)), 7_201_000);
        assertThat(detector.check(List.of(join(0, 10)), 7_231_000).begun()).hasSize(1);
    }

    @Test
    void shouldShowEachAlarmAsAGauge() {
        SimpleMeterRegistry registry = new SimpleMeterRegistry();
        Alarms shown = new Alarms();
        StallAlarms alarms = new StallAlarms(1_000, shown, registry);
        alarms.check(List.of(join(3, 1)), 0);
        assertThat(registry.find("millrace.alarm").gauge()).isNull();
        alarms.check(List.of(join(3, 1)), 1_000);
        assertThat(registry.get("millrace.alarm")
                        .tags("stage", "join", "partition", "3")
                        .gauge()
                        .value())
                .isEqualTo(1);
        assertThat(shown.active())
                .extracting(Alarm::subject, Alarm::text)
                .containsExactly(tuple("join/3", "join, partition 3: 12 rollouts wait; no progress for 1 s"));
        alarms.check(List.of(), 2_000);
        assertThat(registry.get("millrace.alarm").gauge().value()).isZero();
        assertThat(shown.active()).isEmpty();
    }
}
