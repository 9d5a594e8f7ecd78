package dev.millrace.topology.task;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.topology.task.TaskSupplier.IdleTime;
import org.junit.jupiter.api.Test;

class IdleTimeTest {
    private static final long DAY = 86_400_000;

    @Test
    void shouldCountTheTimeBetweenLooksWhileNothingArrives() {
        IdleTime idle = new IdleTime(1000, 100);
        assertThat(idle.elapse(700)).isEqualTo(600);
        assertThat(idle.elapse(1_300)).isEqualTo(600);
    }

    @Test
    void shouldCountNothingOfASecondInWhichSomethingArrived() {
        IdleTime idle = new IdleTime(10_000, 0);
        idle.arrived();
        assertThat(idle.elapse(1_000)).isEqualTo(IdleTime.BUSY);
        assertThat(idle.elapse(2_000)).isEqualTo(1000);
    }

    @Test
    void shouldNotCountTheNightThatTheMachineSlept() {
        assertThat(new IdleTime(1000, 0).elapse(DAY)).isEqualTo(1000);
    }

    @Test
    void shouldCountNothingWhenTheClockIsPutBack() {
        assertThat(new IdleTime(1000, 5_000).elapse(4_000)).isZero();
    }
}
