package dev.millrace.cli.live;

import dev.millrace.runtime.live.RunStatus;
import dev.millrace.runtime.live.RunView;
import java.io.IOException;
import java.io.PrintWriter;
import java.util.List;
import org.jline.terminal.Size;
import org.jline.terminal.Terminal;
import org.jline.terminal.TerminalBuilder;
import org.jline.utils.AttributedString;
import org.jline.utils.AttributedStringBuilder;
import org.jline.utils.AttributedStyle;
import org.jline.utils.Display;

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
                    return new Panel(terminal);
                }
                terminal.close();
            } catch (IOException | IllegalStateException notATerminal) {
                return new Lines(out);
            }
        }
        return new Lines(out);
    }

    /** Redraws in place. */
    private static final class Panel implements RunView {
        private final Terminal terminal;
        private final Display display;
        private final Glyphs glyphs;

        Panel(Terminal terminal) {
            this.terminal = terminal;
            this.glyphs = Glyphs.of(terminal.outputEncoding());
            this.display = new Display(terminal, false);
        }

        @Override
        public long periodMs() {
            return 250;
        }

        @Override
        public void show(RunStatus status) {
            if (!Foreground.isOurs()) {
                return; // sent to the background meanwhile
            }
            int width = Math.max(20, terminal.getSize().getColumns());
            int height = Math.max(2, terminal.getSize().getRows());
            Size size = Size.of(width, height);
            display.resize(size);
            List<String> lines = StatusText.panel(status, width - 1, glyphs);
            // on a screen with few rows the top lines say most
            List<AttributedString> shown = lines.subList(0, Math.min(lines.size(), height - 1)).stream()
                    .map(Panel::styled)
                    .toList();
            // the cursor waits at the end, where the ^C of an interrupt and whatever comes after the panel belong
            display.update(
                    shown,
                    size.cursorPos(shown.size() - 1, shown.get(shown.size() - 1).columnLength()));
            terminal.flush();
        }

        private static AttributedString styled(String line) {
            return line.startsWith("millrace")
                    ? new AttributedStringBuilder()
                            .styled(AttributedStyle.BOLD, line)
                            .toAttributedString()
                    : new AttributedString(line);
        }

        @Override
        public void close() {
            if (!Foreground.isOurs()) {
                return; // giving it back would stop the process, and nothing was taken that it needs
            }
            terminal.writer().println();
            terminal.flush();
            try {
                terminal.close();
            } catch (IOException e) {
                throw new java.io.UncheckedIOException("the terminal could not be given back", e);
            }
        }
    }

    /** Prints one line when something changed, and at least every ten seconds. */
    private static final class Lines implements RunView {
        private static final double QUIET_SECONDS = 10;
        private final PrintWriter out;
        private long lastSteps = -1;
        private String lastPhase = "";
        private double lastAt = Double.NEGATIVE_INFINITY;

        Lines(PrintWriter out) {
            this.out = out;
        }

        @Override
        public long periodMs() {
            return 2000;
        }

        @Override
        public void show(RunStatus status) {
            boolean news = status.steps() != lastSteps || !status.phase().equals(lastPhase);
            if (news || status.elapsedSeconds() - lastAt >= QUIET_SECONDS) {
                out.println(StatusText.line(status));
                out.flush();
                lastSteps = status.steps();
                lastPhase = status.phase();
                lastAt = status.elapsedSeconds();
            }
        }

        @Override
        public void close() {
            out.flush();
        }
    }
}
