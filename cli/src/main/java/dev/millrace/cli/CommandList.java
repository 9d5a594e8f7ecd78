package dev.millrace.cli;

import java.util.Map;
import picocli.CommandLine;
import picocli.CommandLine.Help;
import picocli.CommandLine.Help.Column;
import picocli.CommandLine.Help.Column.Overflow;
import picocli.CommandLine.Help.TextTable;
import picocli.CommandLine.IHelpSectionRenderer;
import picocli.CommandLine.Model.UsageMessageSpec;

/** The list of commands under a usage message: the first sentence of each one's description, to its end. */
final class CommandList implements IHelpSectionRenderer {
    private static final int INDENT = 2;
    private static final int GAP = 2;

    /** Has a command, and all below it, list their commands so. */
    static CommandLine in(CommandLine command) {
        command.getHelpSectionMap().put(UsageMessageSpec.SECTION_KEY_COMMAND_LIST, new CommandList());
        command.getSubcommands().values().forEach(CommandList::in);
        return command;
    }

    @Override
    public String render(Help help) {
        Map<String, Help> commands = help.subcommands();
        if (commands.isEmpty()) {
            return "";
        }
        int widest = commands.keySet().stream().mapToInt(String::length).max().orElseThrow();
        int left = INDENT + widest + GAP;
        int width = help.commandSpec().usageMessage().width();
        TextTable table = TextTable.forColumns(
                help.colorScheme(),
                new Column(left, INDENT, Overflow.SPAN),
                new Column(width - left, 0, Overflow.WRAP));
        commands.forEach((name, command) -> table.addRowValues(
                help.colorScheme().commandText(name),
                help.colorScheme().text(firstSentence(command.commandSpec().usageMessage()))));
        return table.toString();
    }

    private static String firstSentence(UsageMessageSpec usage) {
        String text = String.join(" ", usage.description()).replace("%n", " ");
        int end = text.indexOf(". ");
        return end < 0 ? text : text.substring(0, end + 1);
    }
}
