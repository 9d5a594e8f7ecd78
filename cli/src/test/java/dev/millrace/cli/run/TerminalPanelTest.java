package dev.millrace.cli.run;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.log.Alarm;
import dev.millrace.log.Evaluations;
import dev.millrace.runtime.train.RunStatus;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.time.Clock;
import java.time.Instant;
import java.time.ZoneOffset;
import java.util.List;
import java.util.Map;
import org.jline.terminal.Size;
import org.jline.terminal.Terminal;
import org.jline.terminal.impl.ExternalTerminal;
import org.junit.jupiter.api.Test;

/** What is written to a terminal of some width, byte by byte. */
class TerminalPanelTest {
    private static final Alarm GONE = new Alarm("topic-gone", "rollouts", "a topic is gone", "", 0);
    private static final Clock CLOCK = Clock.fixed(Instant.ofEpochMilli(1000), ZoneOffset.UTC);
    private static final String COLOUR = "\\u001b\\[[0-9;]*3[0-7](;[0-9]+)*m";

    private final ByteArrayOutputStream written = new ByteArrayOutputStream();

    private static RunStatus status(double reward, List<Alarm> alarms) {
        return new RunStatus(
                "inc-1",
                3,
                "the first step",
                new RunStatus.Goal(0.9, 0, reward),
                new RunStatus.Learning(0, 0, 0, List.of(reward), null, 0, Evaluations.NONE),
                new RunStatus.Roles(Map.of(), Map.of(), Map.of(), Map.of()),
                new RunStatus.Troubles(List.of(), Map.of(), alarms, Map.of()));
    }

    private TerminalPanel panel(int columns, boolean colours) throws Exception {
        Terminal terminal = new ExternalTerminal(
                "test", "xterm-256color", new ByteArrayInputStream(new byte[0]), written, StandardCharsets.UTF_8);
        terminal.setSize(Size.of(columns, 30));
        return new TerminalPanel(terminal, colours, () -> true, CLOCK);
    }

    private String shown(int columns, boolean colours, RunStatus status) throws Exception {
        try (TerminalPanel panel = panel(columns, colours)) {
            panel.show(status);
        }
        return written.toString(StandardCharsets.UTF_8);
    }

    @Test
    void shouldColourWhatIsWrongAndSayItInWords() throws Exception {
        assertThat(shown(80, true, status(0.5, List.of(GONE))))
                .containsPattern(COLOUR)
                .contains("ALARM")
                .contains("a topic is gone");
    }

    @Test
    void shouldUseNoColourWhereNoneIsWanted() throws Exception {
        assertThat(shown(80, false, status(0.5, List.of(GONE))))
                .doesNotContainPattern(COLOUR)
                .contains("ALARM");
    }

    @Test
    void shouldWriteNothingWhereNothingHasChanged() throws Exception {
        try (TerminalPanel panel = panel(80, true)) {
            panel.show(status(0.5, List.of()));
            int before = written.size();
            panel.show(status(0.5, List.of()));
            assertThat(written.size() - before).as("bytes for the same panel").isLessThan(20);
            panel.show(status(0.6, List.of()));
            assertThat(written.size() - before)
                    .as("bytes for a changed number, of a panel of %d", before)
                    .isBetween(1, before / 2);
        }
    }
}
