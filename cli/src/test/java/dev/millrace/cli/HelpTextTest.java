package dev.millrace.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.PrintWriter;
import java.io.StringWriter;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import picocli.CommandLine;

class HelpTextTest {
    private static String help(CommandLine command, int width) {
        StringWriter out = new StringWriter();
        command.setUsageHelpAutoWidth(false).setUsageHelpWidth(width);
        command.usage(new PrintWriter(out));
        return out.toString();
    }

    @Test
    void shouldJoinTheLinesOfASentenceAndKeepParagraphs() {
        String full = "x".repeat(110);
        assertThat(HelpText.paragraphs(new String[] {full, "ends here.", "A second one.", "", "Last"}))
                .isEqualTo(List.of(full + " ends here.", "A second one.", "", "Last"));
    }

    /** No word of a description stands alone on its line where the next one would have fitted. */
    @ParameterizedTest
    @ValueSource(ints = {60, 80})
    void shouldFillTheTerminalWithEveryCommandsDescription(int width) {
        for (CommandLine command : Main.commandLine().getSubcommands().values()) {
            String[] paragraphs = command.getCommandSpec().usageMessage().description();
            String help = help(command, width);
            assertThat(help.lines().filter(line -> line.length() > width))
                    .as(command.getCommandName())
                    .allMatch(line -> line.strip().indexOf(' ') < 0 || line.startsWith("millrace"));
            for (String paragraph : paragraphs) {
                List<String> words =
                        List.of(paragraph.replace("%n", " ").strip().split("\\s+"));
                if (words.size() > 1) {
                    assertThat(help.replaceAll("\\s+", " ")).contains(String.join(" ", words));
                }
            }
        }
    }

    @Test
    void shouldWriteWhatAShellCompletesCommandsAndOptionsBy() {
        StringWriter out = new StringWriter();
        assertThat(Main.commandLine().setOut(new PrintWriter(out)).execute("generate-completion"))
                .isZero();
        assertThat(out.toString())
                .contains("complete -F _complete_millrace", "dead-letters", "'--run-dir'")
                .doesNotContain("./millrace");
    }

    @Test
    void shouldSayAnOptionInOnePiece() {
        String help = help(Main.commandLine().getSubcommands().get("evaluate"), 80);

        assertThat(help)
                .contains("Version to evaluate: a number, last, or best by\n")
                .doesNotContain("held-out reward\n                           (default");
    }
}
