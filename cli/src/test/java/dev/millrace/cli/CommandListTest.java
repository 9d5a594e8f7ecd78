package dev.millrace.cli;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;
import picocli.CommandLine;

class CommandListTest {
    @Test
    void shouldEndEveryCommandsLineWithItsSentence() {
        String usage = Main.commandLine().getUsageMessage();
        String list = usage.substring(usage.indexOf("Commands:"));

        assertThat(list.split("\n  (?=[a-z])"))
                .hasSizeGreaterThan(20)
                .allSatisfy(line -> assertThat(line.split("\n\n")[0].strip())
                        .satisfiesAnyOf(
                                text -> assertThat(text).endsWith("."),
                                text -> assertThat(text).isEqualTo("Commands:")));
    }

    @Test
    void shouldNameEveryCommand() {
        CommandLine millrace = Main.commandLine();

        assertThat(millrace.getUsageMessage())
                .contains(millrace.getSubcommands().keySet());
        assertThat(millrace.getSubcommands().get("quarantine").getUsageMessage())
                .contains("  list ", "  lift ");
    }
}
