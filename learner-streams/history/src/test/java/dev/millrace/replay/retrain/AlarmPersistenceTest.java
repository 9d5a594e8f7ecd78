package dev.millrace.replay.retrain;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.replay.retrain.Trial.AlarmPersistence;
import java.util.Collections;
import java.util.List;
import org.junit.jupiter.api.Test;

class AlarmPersistenceTest {
    @Test
    void shouldCountHowOftenAnAlarmWentWithoutAPatch() {
        AlarmPersistence found = AlarmPersistence.of(List.of(true, false, true, true, false, true));

        assertThat(found).isEqualTo(new AlarmPersistence(3, 2));
        assertThat(found.goesByItself()).isTrue();
        assertThat(found.isKnown()).isTrue();
    }

    @Test
    void shouldKnowNothingOfAnAlarmThatStoodForLessThanTheTreeLooksOver() {
        assertThat(AlarmPersistence.of(Collections.nCopies(8, true)))
                .isEqualTo(new AlarmPersistence(7, 0))
                .satisfies(found -> assertThat(found.isKnown()).isFalse());
        assertThat(AlarmPersistence.of(Collections.nCopies(9, true)).isKnown()).isTrue();
        assertThat(AlarmPersistence.of(List.of()).isKnown()).isFalse();
    }
}
