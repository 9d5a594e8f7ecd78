package dev.millrace.cli.run;

import dev.millrace.runtime.train.RunView;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.charset.Charset;
import java.nio.charset.StandardCharsets;
import java.time.Clock;
import java.util.Properties;
import org.jline.terminal.Terminal;
import org.jline.terminal.TerminalBuilder;

/** Terminal views: a panel redrawn in place, or single lines. */
public final class TerminalView {
    private TerminalView() {}

    /** Chooses the panel if standard output is a foreground terminal that can redraw, otherwise lines. */
    public static RunView open(boolean plain, PrintWriter out) {
        if (!plain && System.getenv("TERM") != null && !System.getenv("TERM").equals("dumb") && Foreground.isOurs()) {
            try {
                // not on standard error: redirected output must get the lines. Signals stay with the run for an orderly
                // stop. Sends no queries that the terminal would answer on standard input
                Terminal terminal = TerminalBuilder.builder()
                        .system(true)
                        .dumb(false)
                        .graphemeCluster(false)
                        .encoding(encoding(System.getProperties()))
                        .systemOutput(TerminalBuilder.SystemOutput.SysOut)
                        .nativeSignals(false)
                        .build();
                if (terminal.getSize().getColumns() > 0 && terminal.getSize().getRows() > 0) {
                    return new TerminalPanel(terminal, areColoursWanted(), Foreground::isOurs, Clock.systemUTC());
                }
                terminal.close();
            } catch (IOException | IllegalStateException notATerminal) {
                return new TerminalLines(out);
            }
        }
        return new TerminalLines(out);
    }

    /** The terminal's encoding, from the user's locale; files are always UTF-8. */
    static Charset encoding(Properties properties) {
        String name = properties.getProperty("stdout.encoding", properties.getProperty("native.encoding"));
        return Charset.isSupported(name) ? Charset.forName(name) : StandardCharsets.US_ASCII;
    }

    /** Returns whether to use colours; {@code NO_COLOR} disables them. */
    private static boolean areColoursWanted() {
        String refused = System.getenv("NO_COLOR");
        return refused == null || refused.isEmpty();
    }
}
