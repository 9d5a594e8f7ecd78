package dev.millrace.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.PrintWriter;
import java.io.StringWriter;
import org.junit.jupiter.api.Test;

class FittedWriterTest {
    private final StringWriter terminal = new StringWriter();

    private String fitted(int columns, String... lines) {
        PrintWriter out = new PrintWriter(new FittedWriter(terminal, columns), true);
        for (String line : lines) {
            out.println(line);
        }
        return terminal.toString();
    }

    @Test
    void shouldBreakBetweenWordsAndGoOnUnderTheText() {
        assertThat(fitted(40, "  staleness   2.0 versions on average, three of them in the queue"))
                .isEqualTo("""
                  staleness   2.0 versions on average,
                              three of them in the queue
                """);
    }

    @Test
    void shouldGoOnTwoColumnsFurtherWhereThereIsNoLabel() {
        assertThat(fitted(24, "  one of the sentences that are long"))
                .isEqualTo("  one of the sentences\n    that are long\n");
    }

    @Test
    void shouldLeaveWhatFitsAndWhatIsThereToBeCopied() {
        String fits = "a line of exactly twenty";
        String command = "    # or: --set algorithm.weights.kind=token --set algorithm.weights.threshold=2";
        String json = "{\"a long object\": \"of more than twenty-four columns\"}";
        String colours = "\u001b[1ma heading in bold that is long\u001b[0m";
        assertThat(fitted(24, fits, command, json, colours))
                .isEqualTo(String.join("\n", fits, command, json, colours) + "\n");
    }

    @Test
    void shouldKeepAWordWholeThatIsLongerThanTheTerminal() {
        assertThat(fitted(10, "in /a/very/long/path it is")).isEqualTo("in\n  /a/very/long/path\n  it is\n");
    }

    @Test
    void shouldPassOnALineThatIsWrittenInPieces() {
        PrintWriter out = new PrintWriter(new FittedWriter(terminal, 10));
        out.print("\rhalf of what");
        out.flush();
        assertThat(terminal).hasToString("\rhalf of what");
        out.print("\rall of what there is");
        out.println();
        out.flush();
        assertThat(terminal).hasToString("\rhalf of what\rall of what there is\n");
    }
}
