package dev.millrace.cli;

import dev.millrace.cli.audit.DeadLettersCommand;
import dev.millrace.cli.audit.DeleteCommand;
import dev.millrace.cli.audit.DoctorCommand;
import dev.millrace.cli.audit.LapCommand;
import dev.millrace.cli.audit.LedgerCommand;
import dev.millrace.cli.audit.QuarantineCommand;
import dev.millrace.cli.audit.RepairCommand;
import dev.millrace.cli.audit.RollbackCommand;
import dev.millrace.cli.audit.RunsCommand;
import dev.millrace.cli.audit.StopCommand;
import dev.millrace.cli.audit.TopicsCommand;
import dev.millrace.cli.audit.TraceCommand;
import dev.millrace.cli.config.ConfigCommand;
import dev.millrace.cli.config.PluginsCommand;
import dev.millrace.cli.correct.CorrectCommand;
import dev.millrace.cli.measure.ConformanceCommand;
import dev.millrace.cli.measure.ExperimentCommand;
import dev.millrace.cli.measure.LoadTestCommand;
import dev.millrace.cli.measure.PlanCommand;
import dev.millrace.cli.model.BenchCommand;
import dev.millrace.cli.model.ModelCommand;
import dev.millrace.cli.replay.ExportCommand;
import dev.millrace.cli.replay.ImportCommand;
import dev.millrace.cli.replay.ReplayCommand;
import dev.millrace.cli.run.AclsCommand;
import dev.millrace.cli.run.BrokerCommand;
import dev.millrace.cli.run.EvaluateCommand;
import dev.millrace.cli.run.RegistryCommand;
import dev.millrace.cli.run.RoleCommands;
import dev.millrace.cli.run.TrainCommand;
import dev.millrace.cli.run.ViewCommand;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import picocli.AutoComplete.GenerateCompletion;
import picocli.CommandLine;
import picocli.CommandLine.Help;
import picocli.CommandLine.Help.Column;
import picocli.CommandLine.Help.Column.Overflow;
import picocli.CommandLine.Help.TextTable;
import picocli.CommandLine.HelpCommand;
import picocli.CommandLine.IHelpSectionRenderer;
import picocli.CommandLine.Model.UsageMessageSpec;

/** Command list of a usage message, grouped by purpose, with the first sentence of each description. */
final class CommandList implements IHelpSectionRenderer {
    /** Classes by the names in their annotations, which are read for the typed command only. */
    private static final Map<String, Map<String, Class<?>>> GROUPS = new LinkedHashMap<>();

    static {
        group(
                "Train and inspect",
                Map.entry("train", TrainCommand.class),
                Map.entry("stop", StopCommand.class),
                Map.entry("view", ViewCommand.class),
                Map.entry("evaluate", EvaluateCommand.class));
        group(
                "Inspect a run",
                Map.entry("runs", RunsCommand.class),
                Map.entry("ledger", LedgerCommand.class),
                Map.entry("trace", TraceCommand.class),
                Map.entry("lap", LapCommand.class),
                Map.entry("doctor", DoctorCommand.class));
        group("Replay a run", Map.entry("replay", ReplayCommand.class), Map.entry("correct", CorrectCommand.class));
        group(
                "Repair a run",
                Map.entry("rollback", RollbackCommand.class),
                Map.entry("repair", RepairCommand.class),
                Map.entry("dead-letters", DeadLettersCommand.class),
                Map.entry("quarantine", QuarantineCommand.class),
                Map.entry("delete", DeleteCommand.class));
        group(
                "Models and archives",
                Map.entry("model", ModelCommand.class),
                Map.entry("export", ExportCommand.class),
                Map.entry("import", ImportCommand.class));
        group(
                "One role per process",
                Map.entry("admit", RoleCommands.Admit.class),
                Map.entry("generate", RoleCommands.Generate.class),
                Map.entry("gateway", RoleCommands.Gateway.class),
                Map.entry("score", RoleCommands.Score.class),
                Map.entry("stream", RoleCommands.Stream.class),
                Map.entry("learn", RoleCommands.Learn.class),
                Map.entry("registry", RegistryCommand.class),
                Map.entry("broker", BrokerCommand.class),
                Map.entry("acls", AclsCommand.class),
                Map.entry("topics", TopicsCommand.class));
        group(
                "Measure and verify",
                Map.entry("load-test", LoadTestCommand.class),
                Map.entry("plan", PlanCommand.class),
                Map.entry("bench", BenchCommand.class),
                Map.entry("experiment", ExperimentCommand.class),
                Map.entry("conformance", ConformanceCommand.class));
        group(
                "Millrace itself",
                Map.entry("config", ConfigCommand.class),
                Map.entry("plugins", PluginsCommand.class),
                Map.entry("generate-completion", GenerateCompletion.class),
                Map.entry("help", HelpCommand.class));
    }

    /** Commands that need all the others. */
    static final Set<String> OF_ALL = Set.of("generate-completion", "help");

    @SafeVarargs
    private static void group(String heading, Map.Entry<String, Class<?>>... commands) {
        Map<String, Class<?>> group = new LinkedHashMap<>();
        for (Map.Entry<String, Class<?>> command : commands) {
            group.put(command.getKey(), command.getValue());
        }
        GROUPS.put(heading, group);
    }

    static List<String> names() {
        return GROUPS.values().stream()
                .flatMap(group -> group.keySet().stream())
                .toList();
    }

    /** The class of a command among {@link #names}. */
    static Class<?> named(String name) {
        return GROUPS.values().stream()
                .map(group -> group.get(name))
                .filter(Objects::nonNull)
                .findFirst()
                .orElseThrow();
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
        Map<String, Help> commands = help.subcommands();
        if (commands.isEmpty()) {
            return "";
        }
        int widest = commands.keySet().stream().mapToInt(String::length).max().orElseThrow();
        int left = INDENT + widest + GAP;
        if (!grouped) {
            return table(help, left, commands);
        }
        StringBuilder text = new StringBuilder();
        GROUPS.forEach((heading, group) -> {
            Map<String, Help> members = new LinkedHashMap<>();
            group.keySet().forEach(name -> members.put(name, commands.get(name)));
            text.append(group(help, left, heading, members));
        });
        return text.toString();
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
