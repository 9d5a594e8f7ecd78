package dev.millrace.log;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import java.time.Clock;
import java.time.Instant;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class AlarmsTest {
    private final Alarms alarms = new Alarms(Clock.fixed(Instant.ofEpochMilli(7_000), ZoneOffset.UTC));

    @Test
    void shouldKeepSinceWhenAConditionLastsAndRenewWhatItSays() {
        alarms.raise("broker-away", "kafka:9092", "away for 1 s", "");
        alarms.raise("broker-away", "kafka:9092", "away for 9 s", "start it");

        assertThat(alarms.active())
                .containsExactly(new Alarm("broker-away", "kafka:9092", "away for 9 s", "start it", 7_000));
        assertThat(alarms.raised()).isEqualTo(Map.of("broker-away", 1L));
        assertThat(alarms.active().get(0).text()).isEqualTo("away for 9 s; to end it: start it");
    }

    @Test
    void shouldCountEachTimeAConditionBegan() {
        alarms.raise("quarantine", "generator-1", "64 refused", "");
        alarms.lower("quarantine", "generator-1");
        alarms.lower("quarantine", "generator-1");
        alarms.raise("quarantine", "generator-1", "64 refused", "");
        alarms.raise("quarantine", "generator-2", "70 refused", "");

        assertThat(alarms.active("quarantine")).isEqualTo(2);
        assertThat(alarms.active("broker-away")).isZero();
        assertThat(alarms.raised()).isEqualTo(Map.of("quarantine", 3L));
    }

    @Test
    void shouldTellOfEachNameOnceAlsoToWhoComesLate() {
        List<String> early = new ArrayList<>();
        alarms.onNewName(early::add);
        alarms.raise("quarantine", "a", "", "");
        alarms.raise("quarantine", "b", "", "");
        List<String> late = new ArrayList<>();
        alarms.onNewName(late::add);

        assertThat(early).containsExactly("quarantine");
        assertThat(late).containsExactly("quarantine");
    }

    @Test
    void shouldRefuseANameThatIsNoName() {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> alarms.raise("Broker away", "", "", ""))
                .withMessageContaining("'Broker away'");
    }
}
