package dev.millrace.generator.staleness;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.millrace.generator.staleness.GeneratorWatch.RefusedRecords;
import org.junit.jupiter.api.Test;

class RefusedRecordsTest {
    private final RefusedRecords records = new RefusedRecords(QuarantineConfig.defaults());

    private void refuse(int times, int of) {
        for (int i = 0; i < times; i++) {
            records.refused(of);
        }
    }

    @Test
    void shouldBeTooMuchAtTheSixtyFourthWithoutANewVersion() {
        refuse(63, 10);
        assertThat(records.isTooMuch()).isFalse();
        refuse(1, 10);
        assertThat(records.isTooMuch()).isTrue();
        assertThat(records.sentence())
                .isEqualTo("26 of its last 256 records were refused, 64 since the newest version");
    }

    @Test
    void shouldForgetWithEveryVersionWhatIsLessThanHalf() {
        for (int version = 0; version < 100; version++) {
            refuse(63, 3);
            assertThat(records.isTooMuch()).isFalse();
            records.progress();
        }
    }

    @Test
    void shouldBeTooMuchAtTheHalfOfTheLastWhateverVersionsAppear() {
        refuse(1, 10_000); // a long time in which one was refused
        for (int i = 0; i < 126; i++) { // of the last 2 * 126 records 126, and that one
            records.progress();
            records.refused(2);
            assertThat(records.isTooMuch()).as("%s more", i + 1).isFalse();
        }
        records.refused(2); // 254 records and the one before: 128 of the last 256
        records.progress();
        assertThat(records.isTooMuch()).isTrue();
    }

    @Test
    void shouldBeTooMuchAtSixtyFourWhereAllThatEverCameWasRefused() {
        for (int i = 0; i < 63; i++) {
            records.refused(1);
            records.progress();
        }
        assertThat(records.isTooMuch()).isFalse();
        records.refused(1);
        records.progress();
        assertThat(records.isTooMuch()).isTrue();
    }

    @Test
    void shouldNeverBeTooMuchWhereNobodyIsToBeInQuarantine() {
        RefusedRecords counted = new RefusedRecords(new QuarantineConfig(0, 256, 0.5, 0.3, 4096));
        for (int i = 0; i < 1000; i++) {
            counted.refused(1);
        }
        assertThat(counted.isTooMuch()).isFalse();
    }

    @Test
    void shouldRefuseBoundsThatCannotBe() {
        assertThatThrownBy(() -> new QuarantineConfig(-1, 256, 0.5, 0.3, 4096))
                .hasMessage("refused_records must be at least 0, where 0 disables quarantine: -1");
        assertThatThrownBy(() -> new QuarantineConfig(64, 0, 0.5, 0.3, 4096))
                .hasMessageContaining("window_records must be 1 to");
        assertThatThrownBy(() -> new QuarantineConfig(64, 256, Double.NaN, 0.3, 4096))
                .hasMessageContaining("refused_share must be above 0 and at most 1: NaN");
    }
}
