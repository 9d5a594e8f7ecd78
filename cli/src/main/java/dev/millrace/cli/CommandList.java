package dev.millrace.cli;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import picocli.CommandLine;
import picocli.CommandLine.Help;
import picocli.CommandLine.Help.Column;
import picocli.CommandLine.Help.Column.Overflow;
import picocli.CommandLine.Help.TextTable;
import picocli.CommandLine.IHelpSectionRenderer;
import picocli.CommandLine.Model.UsageMessageSpec;

/** Command list of a usage message, grouped by purpose, with the first sentence of each description. */
final class CommandList implements IHelpSectionRenderer {
    private static final Map<String, List<String>> GROUPS = new LinkedHashMap<>();

    static {
        GROUPS.put("Train and inspect", List.of("train", "stop", "view", "evaluate"));
        GROUPS.put("Inspect a run", List.of("runs", "ledger", "trace", "lap", "doctor"));
        GROUPS.put("Replay a run", List.of("replay", "correct"));
        GROUPS.put("Repair a run", List.of("rollback", "repair", "dead-letters", "quarantine", "delete"));
        GROUPS.put("Models and archives", List.of("model", "export", "import"));
        GROUPS.put(
                "One role per process",
                List.of(
                        "admit",
                        "generate",
                        "gateway",
                        "score",
                        "stream",
                        "learn",
                        "registry",
                        "broker",
                        "acls",
                        "topics"));
        GROUPS.put("Measure and verify", List.of("load-test", "plan", "bench", "experiment", "conformance"));
        GROUPS.put("Millrace itself", List.of("config", "plugins", "generate-completion", "help"));
    }

    private static final int INDENT = 2;
    private static final int GAP = 2;

    private final boolean grouped;

    private CommandList(boolean grouped) {
        this.grouped = grouped;
    }

    /** Installs the command list in a command and its subcommands. */
    static CommandLine in(CommandLine command) {
        return in(command, true);
    }

    private static CommandLine in(CommandLine command, boolean grouped) {
        command.getHelpSectionMap().put(UsageMessageSpec.SECTION_KEY_COMMAND_LIST, new CommandList(grouped));
        if (grouped) {
            command.getHelpSectionMap().put(UsageMessageSpec.SECTION_KEY_COMMAND_LIST_HEADING, help -> "");
        }
        command.getSubcommands().values().forEach(below -> in(below, false));
        return command;
    }

    @Override
    public String render(Help help) {
        Map<String, Help> commands = new LinkedHashMap<>(help.subcommands());
        if (commands.isEmpty()) {
            return "";
        }
        int widest = commands.keySet().stream().mapToInt(String::length).max().orElseThrow();
        int left = INDENT + widest + GAP;
        if (!grouped) {
            return table(help, left, commands);
        }
        StringBuilder text = new StringBuilder();
        GROUPS.forEach((heading, names) -> {
            Map<String, Help> members = new LinkedHashMap<>();
            names.stream().filter(commands::containsKey).forEach(name -> members.put(name, commands.remove(name)));
            text.append(group(help, left, heading, members));
        });
        return text.append(commands.isEmpty() ? "" : group(help, left, "Others", commands))
                .toString();
    }

    private static String group(Help help, int left, String heading, Map<String, Help> commands) {
        return String.format("%n%s%n", help.colorScheme().text("@|bold " + heading + "|@"))
                + table(help, left, commands);
    }

    private static String table(Help help, int left, Map<String, Help> commands) {
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

    /** Headings of groups, for a test that every command has one. */
    static List<String> headings() {
        return new ArrayList<>(GROUPS.keySet());
    }
}
