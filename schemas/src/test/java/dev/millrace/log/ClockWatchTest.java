package dev.millrace.log;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneId;
import java.time.ZoneOffset;
import org.junit.jupiter.api.Test;

class ClockWatchTest {
    private Instant now = Instant.parse("2026-11-23T03:00:00.4Z");

    private final Clock clock = new Clock() {
        @Override
        public ZoneId getZone() {
            return ZoneOffset.UTC;
        }

        @Override
        public Clock withZone(ZoneId zone) {
            return this;
        }

        @Override
        public Instant instant() {
            return now;
        }
    };
    private final Alarms alarms = new Alarms(clock);
    private final ClockWatch watch = new ClockWatch("scorer", alarms, clock);

    private void lookAfter(Duration passed) {
        now = now.plus(passed);
        watch.look();
    }

    @Test
    void shouldRaiseAnAlarmUntilTheClockIsWhereItHasBeen() {
        lookAfter(Duration.ZERO);
        lookAfter(Duration.ofHours(19));
        assertThat(alarms.active()).isEmpty();

        lookAfter(Duration.ofHours(-19));
        assertThat(alarms.active())
                .singleElement()
                .satisfies(alarm -> assertThat(alarm.text())
                        .isEqualTo("the clock of this machine has been at 2026-11-23T22:00:00Z and was set back by"
                                + " 1140 min; until it reaches that time again, this process's Kafka"
                                + " clients may not connect;"
                                + " to end it: restart this process"));

        lookAfter(Duration.ofHours(18));
        assertThat(alarms.active("clock-set-back")).isEqualTo(1);
        lookAfter(Duration.ofHours(1));
        assertThat(alarms.active()).isEmpty();
    }

    @Test
    void shouldNotMindAClockThatIsKeptRight() {
        lookAfter(Duration.ZERO);
        lookAfter(Duration.ofSeconds(-9));
        assertThat(alarms.active()).isEmpty();
    }
}
