package dev.millrace.cli.replay;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

class ProgressLineTest {
    @Test
    void shouldSayHowLongTheRestTakesAtThePaceSoFar() {
        assertThat(ProgressLine.text("replaying", 250_000, 1_000_000, 30))
                .isEqualTo("replaying   25 %  250,000 of 1,000,000 records, 1:30 left");
        assertThat(ProgressLine.text("replaying", 100, 1_000_000, 1))
                .isEqualTo("replaying    0 %  100 of 1,000,000 records, 2:46:39 left");
    }

    @Test
    void shouldPromiseNothingBeforeAnythingIsDone() {
        assertThat(ProgressLine.text("exporting", 0, 10, 5)).isEqualTo("exporting    0 %  0 of 10 records");
    }
}
