package dev.millrace.workloads.topology;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.workloads.topology.Schedule.Arrivals;
import org.junit.jupiter.api.Test;

class ScheduleTest {
    @Test
    void shouldSpaceEvenArrivalsByTheRateWithoutDrift() {
        Schedule schedule = Schedule.of(Arrivals.EVEN, 3, 3_000_001, 1);
        assertThat(schedule.nanos(0)).isZero();
        assertThat(schedule.nanos(1)).isEqualTo(333_333_333);
        assertThat(schedule.nanos(3)).isEqualTo(1_000_000_000);
        assertThat(schedule.nanos(3_000_000)).isEqualTo(1_000_000_000_000_000L);
    }

    @Test
    void shouldLetRandomArrivalsKeepTheRateAndNeverGoBack() {
        Schedule schedule = Schedule.of(Arrivals.POISSON, 1000, 100_000, 4);
        double squares = 0;
        for (int i = 1; i < 100_000; i++) {
            long gap = schedule.nanos(i) - schedule.nanos(i - 1);
            assertThat(gap).isNotNegative();
            squares += Math.pow(gap - 1e6, 2);
        }
        assertThat(schedule.nanos(99_999) / 1e9).isCloseTo(100, within(1.0));
        // the deviation of an exponential gap is its mean
        assertThat(Math.sqrt(squares / 99_999)).isCloseTo(1e6, within(2e4));
    }

    @Test
    void shouldBeTheSameForTheSameSeed() {
        Schedule one = Schedule.of(Arrivals.POISSON, 10, 100, 4);
        Schedule same = Schedule.of(Arrivals.POISSON, 10, 100, 4);
        Schedule other = Schedule.of(Arrivals.POISSON, 10, 100, 5);
        assertThat(one.nanos(99)).isEqualTo(same.nanos(99)).isNotEqualTo(other.nanos(99));
    }

    @Test
    void shouldRefuseWhatIsNoSchedule() {
        assertThatThrownBy(() -> Schedule.of(Arrivals.EVEN, 0, 10, 1)).hasMessageContaining("0.0");
        assertThatThrownBy(() -> Schedule.of(Arrivals.EVEN, Double.NaN, 10, 1)).hasMessageContaining("NaN");
        assertThatThrownBy(() -> Schedule.of(Arrivals.EVEN, 1, 0, 1)).hasMessageContaining("at least one record: 0");
        assertThatThrownBy(() -> Schedule.of(Arrivals.EVEN, 1, 5, 1).nanos(5))
                .hasMessageContaining("record 5 of a schedule of 5");
    }
}
