package dev.millrace.cli.run;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.log.Alarm;
import dev.millrace.log.Evaluations;
import dev.millrace.runtime.train.RunStatus;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class TerminalLinesTest {
    private final StringWriter written = new StringWriter();
    private final TerminalLines lines = new TerminalLines(new PrintWriter(written));

    private static RunStatus after(double seconds, Alarm... alarms) {
        return new RunStatus(
                "inc-1",
                seconds,
                "the first step",
                new RunStatus.Goal(0.9, 0, Double.NaN),
                new RunStatus.Learning(0, 0, 0, List.of(), null, 0, Evaluations.NONE),
                new RunStatus.Roles(Map.of(), Map.of(), Map.of(), Map.of()),
                new RunStatus.Troubles(List.of(), Map.of(), List.of(alarms), Map.of()));
    }

    private static Alarm stall(int seconds, long sinceMs) {
        return new Alarm("stall", "batches/0", "no progress for " + seconds + " s", "", sinceMs);
    }

    private List<String> alarms() {
        return written.toString()
                .lines()
                .filter(line -> line.contains("alarm: "))
                .toList();
    }

    @Test
    void shouldPrintAnAlarmWhenItBeginsAndNotWhileItsSentenceCountsOn() {
        lines.show(after(60, stall(60, 1000)));
        lines.show(after(62, stall(62, 1000)));
        lines.show(after(64, stall(64, 1000)));
        assertThat(alarms()).containsExactly("00:01:00  alarm: no progress for 60 s");
    }

    @Test
    void shouldPrintAnAlarmThatBeginsAgain() {
        lines.show(after(60, stall(60, 1000)));
        lines.show(after(62));
        lines.show(after(130, stall(60, 70_000)));
        assertThat(alarms()).hasSize(2);
    }

    @Test
    void shouldPrintALineWhereNothingIsNewAfterTenSecondsOnly() {
        lines.show(after(1));
        lines.show(after(3));
        lines.show(after(10.9));
        assertThat(written.toString().lines()).hasSize(1);
        lines.show(after(11));
        assertThat(written.toString().lines()).hasSize(2);
    }
}
