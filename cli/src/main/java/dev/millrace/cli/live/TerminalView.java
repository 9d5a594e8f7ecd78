package dev.millrace.cli.live;

import dev.millrace.runtime.live.RunStatus;
import dev.millrace.runtime.live.RunView;
import java.io.IOException;
import java.io.PrintWriter;
import java.time.Clock;
import java.util.List;
import org.jline.terminal.Terminal;
import org.jline.terminal.TerminalBuilder;

/** The views of a terminal: a panel in place where the cursor can be moved, a line now and then elsewhere. */
public final class TerminalView {
    private TerminalView() {}

    /**
     * The view that fits: the panel if standard output is a terminal that can redraw and is ours, lines otherwise.
     *
     * @param plain lines in any case
     * @param out where lines go
     */
    public static RunView open(boolean plain, PrintWriter out) {
        if (!plain && System.getenv("TERM") != null && !System.getenv("TERM").equals("dumb") && Foreground.isOurs()) {
            try {
                // standard error is no substitute: who sends standard output to a file wants the lines there; the
                // signals are the run's, which ends in order on Ctrl-C, where the terminal would end the process; and
                // nothing is asked of the terminal that it would answer on standard input
                Terminal terminal = TerminalBuilder.builder()
                        .system(true)
                        .dumb(false)
                        .graphemeCluster(false)
                        .systemOutput(TerminalBuilder.SystemOutput.SysOut)
                        .nativeSignals(false)
                        .build();
                if (terminal.getSize().getColumns() > 0 && terminal.getSize().getRows() > 0) {
                    return new TerminalPanel(terminal, areColoursWanted(), Foreground::isOurs, Clock.systemUTC());
                }
                terminal.close();
            } catch (IOException | IllegalStateException notATerminal) {
                return new Lines(out);
            }
        }
        return new Lines(out);
    }

    /** Whether colours are wanted: who sets {@code NO_COLOR} wants none. */
    private static boolean areColoursWanted() {
        String refused = System.getenv("NO_COLOR");
        return refused == null || refused.isEmpty();
    }

    /** Prints one line when something changed, and at least every ten seconds; an alarm when it begins. */
    private static final class Lines implements RunView {
        private static final double QUIET_SECONDS = 10;
        private final PrintWriter out;
        private long lastSteps = -1;
        private String lastPhase = "";
        private double lastAt = Double.NEGATIVE_INFINITY;
        private List<String> lastAlarms = List.of();

        Lines(PrintWriter out) {
            this.out = out;
        }

        @Override
        public long periodMs() {
            return 2000;
        }

        @Override
        public void show(RunStatus status) {
            status.alarms().stream()
                    .filter(alarm -> !lastAlarms.contains(alarm))
                    .forEach(alarm -> out.println(StatusText.clock(status.elapsedSeconds()) + "  alarm: " + alarm));
            lastAlarms = status.alarms();
            boolean news = status.steps() != lastSteps || !status.phase().equals(lastPhase);
            if (news || status.elapsedSeconds() - lastAt >= QUIET_SECONDS) {
                out.println(StatusText.line(status));
                lastSteps = status.steps();
                lastPhase = status.phase();
                lastAt = status.elapsedSeconds();
            }
            out.flush();
        }

        @Override
        public void close() {
            out.flush();
        }
    }
}
