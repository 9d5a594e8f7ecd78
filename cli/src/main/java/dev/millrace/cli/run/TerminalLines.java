package dev.millrace.cli.run;

import dev.millrace.log.Alarm;
import dev.millrace.runtime.train.RunStatus;
import dev.millrace.runtime.train.RunView;
import java.io.PrintWriter;
import java.util.List;

/** Prints a line per change, at least every ten seconds. An alarm is printed once, when it begins. */
final class TerminalLines implements RunView {
    private static final double QUIET_SECONDS = 10;
    private final PrintWriter out;
    private long lastSteps = -1;
    private String lastPhase = "";
    private double lastAt = Double.NEGATIVE_INFINITY;
    private List<Alarm> lastAlarms = List.of();

    TerminalLines(PrintWriter out) {
        this.out = out;
    }

    @Override
    public long periodMs() {
        return 2000;
    }

    @Override
    public void show(RunStatus status) {
        status.troubles().alarms().stream()
                .filter(alarm -> lastAlarms.stream().noneMatch(last -> isSame(last, alarm)))
                .forEach(alarm -> out.println(StatusText.clock(status.elapsedSeconds()) + "  alarm: " + alarm.text()));
        lastAlarms = status.troubles().alarms();
        boolean news = status.learning().steps() != lastSteps || !status.phase().equals(lastPhase);
        if (news || status.elapsedSeconds() - lastAt >= QUIET_SECONDS) {
            out.println(StatusText.line(status));
            lastSteps = status.learning().steps();
            lastPhase = status.phase();
            lastAt = status.elapsedSeconds();
        }
        out.flush();
    }

    private static boolean isSame(Alarm one, Alarm other) {
        return one.name().equals(other.name())
                && one.subject().equals(other.subject())
                && one.sinceMs() == other.sinceMs();
    }

    @Override
    public void close() {
        out.flush();
    }
}
