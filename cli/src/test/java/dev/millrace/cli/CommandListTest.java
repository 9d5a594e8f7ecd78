package dev.millrace.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.PrintWriter;
import java.io.StringWriter;
import java.util.Arrays;
import org.junit.jupiter.api.Test;
import picocli.CommandLine;

class CommandListTest {
    private static String said(int status, String... arguments) {
        StringWriter err = new StringWriter();
        assertThat(Main.commandLine().setErr(new PrintWriter(err)).execute(arguments))
                .isEqualTo(status);
        return err.toString();
    }

    @Test
    void shouldEndEveryCommandsLineWithItsSentence() {
        String usage = Main.commandLine().getUsageMessage();
        String list = usage.substring(usage.indexOf(CommandList.headings().get(0)));

        assertThat(list.substring(0, list.indexOf("Start with:")).split("\n(?=  [a-z]|\n)"))
                .filteredOn(line -> line.startsWith("  "))
                .hasSizeGreaterThan(20)
                .allSatisfy(line -> assertThat(line.strip()).endsWith("."));
    }

    @Test
    void shouldNameEveryCommandUnderWhatItIsFor() {
        CommandLine millrace = Main.commandLine();

        assertThat(millrace.getUsageMessage())
                .contains(millrace.getSubcommands().keySet())
                .contains(CommandList.headings());
        assertThat(millrace.getSubcommands().get("quarantine").getUsageMessage())
                .contains("Commands:", "  list ", "  lift ");
    }

    @Test
    void shouldCallEveryCommandAsItsAnnotationDoes() {
        assertThat(CommandList.names())
                .allSatisfy(name -> assertThat(CommandList.named(name)
                                .getAnnotation(CommandLine.Command.class)
                                .name())
                        .isEqualTo(name));
    }

    @Test
    void shouldReadTheTypedCommandAloneUnlessItNeedsTheOthers() {
        assertThat(Main.needed("train", "help")).containsExactly("train");
        for (String[] arguments :
                new String[][] {{}, {"help", "train"}, {"generate-completion"}, {"trian"}, {"--help"}}) {
            assertThat(Main.needed(arguments)).containsExactlyElementsOf(CommandList.names());
        }
    }

    @Test
    void shouldFitANarrowTerminal() {
        CommandLine millrace = Main.commandLine().setUsageHelpAutoWidth(false).setUsageHelpWidth(55);
        assertThat(Arrays.stream(millrace.getUsageMessage().split("\n")))
                .allSatisfy(line -> assertThat(line.length()).isLessThanOrEqualTo(55));
    }

    @Test
    void shouldNameTheCommandThatAMistypedOneIsNearestTo() {
        assertThat(said(2, "trian")).contains("there is no command trian").contains("Did you mean: millrace train?");
        assertThat(said(2, "dead-letter", "list")).contains("Did you mean: millrace dead-letters?");
        assertThat(said(2, "quarantine", "lisst")).contains("Did you mean: millrace quarantine list?");
        assertThat(said(2, "xyzzyplugh")).contains("See: millrace --help").doesNotContain("Did you mean");
        assertThat(said(2, "train", "--run-dri", "x")).contains("--run-dir");
    }

    @Test
    void shouldShowWhatThereIsWhereNothingWasAsked() {
        assertThat(said(2))
                .contains("Start with: millrace train")
                .contains("ledger")
                .doesNotContain("missing");
    }
}
