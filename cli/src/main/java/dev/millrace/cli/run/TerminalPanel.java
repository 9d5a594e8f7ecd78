package dev.millrace.cli.run;

import dev.millrace.cli.run.TonedLine.Tone;
import dev.millrace.runtime.train.RunStatus;
import dev.millrace.runtime.train.RunView;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.time.Clock;
import java.util.List;
import java.util.function.BooleanSupplier;
import org.jline.terminal.Size;
import org.jline.terminal.Terminal;
import org.jline.utils.AttributedString;
import org.jline.utils.AttributedStringBuilder;
import org.jline.utils.AttributedStyle;
import org.jline.utils.Display;

/** Redraws a panel in place; skips unchanged panels. */
final class TerminalPanel implements RunView {
    private final Terminal terminal;
    private final Display display;
    private final Glyphs glyphs;
    private final boolean colours;
    private final BooleanSupplier isOurs;
    private final Clock clock;
    private boolean isLeft;

    /**
     * @param terminal closed with it
     * @param colours whether to use colours
     * @param isOurs whether this process may draw now
     */
    TerminalPanel(Terminal terminal, boolean colours, BooleanSupplier isOurs, Clock clock) {
        this.terminal = terminal;
        this.glyphs = Glyphs.of(terminal.outputEncoding());
        this.display = new Display(terminal, false);
        this.colours = colours;
        this.isOurs = isOurs;
        this.clock = clock;
    }

    @Override
    public long periodMs() {
        return 250;
    }

    @Override
    public void show(RunStatus status) {
        if (!isOurs.getAsBoolean()) {
            return; // sent to the background meanwhile
        }
        int width = Math.max(20, terminal.getSize().getColumns());
        int height = Math.max(2, terminal.getSize().getRows());
        Size size = Size.of(width, height);
        display.resize(size);
        List<TonedLine> lines = StatusText.panel(status, width - 1, glyphs, clock.millis());
        // on a low screen keep the top lines
        List<AttributedString> shown = lines.subList(0, Math.min(lines.size(), height - 1)).stream()
                .map(this::styled)
                .toList();
        // leaves the cursor at the end, for ^C and later lines
        display.update(
                shown,
                size.cursorPos(shown.size() - 1, shown.get(shown.size() - 1).columnLength()));
        terminal.flush();
    }

    private AttributedString styled(TonedLine line) {
        AttributedStringBuilder text = new AttributedStringBuilder();
        line.pieces().forEach(piece -> text.styled(style(piece.tone()), piece.text()));
        return text.toAttributedString();
    }

    private AttributedStyle style(Tone tone) {
        AttributedStyle plain = AttributedStyle.DEFAULT;
        return switch (tone) {
            case PLAIN -> plain;
            case STRONG -> plain.bold();
            case FAINT -> colours ? plain.faint() : plain;
            case GOOD -> colours ? plain.bold().foreground(AttributedStyle.GREEN) : plain.bold();
            case LOOK -> colours ? plain.bold().foreground(AttributedStyle.YELLOW) : plain.bold();
            case BAD -> colours ? plain.bold().foreground(AttributedStyle.RED) : plain.bold();
        };
    }

    @Override
    public void leave() {
        if (isLeft || !isOurs.getAsBoolean()) {
            return; // restoring it would stop a background process, and nothing was changed
        }
        isLeft = true;
        terminal.writer().println();
        terminal.flush();
        try {
            terminal.close();
        } catch (IOException e) {
            throw new UncheckedIOException("the terminal could not be restored", e);
        }
    }

    @Override
    public void close() {
        leave();
    }
}
