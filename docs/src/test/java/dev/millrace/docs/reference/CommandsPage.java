package dev.millrace.docs.reference;

import dev.millrace.cli.Main;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import picocli.CommandLine;
import picocli.CommandLine.Model.ArgSpec;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Model.OptionSpec;
import picocli.CommandLine.Model.PositionalParamSpec;

/** Every command with its options, from picocli's model. */
final class CommandsPage {
    private CommandsPage() {}

    static String text() {
        CommandLine millrace = Main.commandLine();
        StringBuilder page = new StringBuilder(
                        "# Command line\n\nEvery command answers to `--help` with this and more. Exit codes are in "
                                + "[Outcomes, dead letters, exit codes](outcomes.md#exit-codes). Every command\ntakes "
                                + "`--plugin-path PATH`, more [plug-ins](plugins.md) than those of the installation.\n\n")
                .append(Tables.head("command", "what it does"));
        List<CommandLine> all = new ArrayList<>();
        commands(millrace, all);
        for (CommandLine command : all) {
            String name = command.getCommandSpec().qualifiedName();
            page.append(Tables.row("[`" + name + "`](#" + name.replace(' ', '-') + ")", description(command)));
        }
        for (CommandLine command : all) {
            section(command, page);
        }
        return page.toString();
    }

    private static void commands(CommandLine parent, List<CommandLine> all) {
        for (Map.Entry<String, CommandLine> each : parent.getSubcommands().entrySet()) {
            CommandSpec spec = each.getValue().getCommandSpec();
            if (each.getKey().equals(spec.name())
                    && !spec.usageMessage().hidden()
                    && !spec.name().equals("help")) {
                all.add(each.getValue());
                commands(each.getValue(), all);
            }
        }
    }

    private static void section(CommandLine command, StringBuilder page) {
        CommandSpec spec = command.getCommandSpec();
        page.append("\n## ")
                .append(spec.qualifiedName())
                .append("\n\n")
                .append(description(command))
                .append('\n');
        StringBuilder rows = new StringBuilder();
        for (PositionalParamSpec positional : spec.positionalParameters()) {
            rows.append(Tables.row(Tables.code(positional.paramLabel()), "", text(positional)));
        }
        for (OptionSpec option : spec.options()) {
            if (!option.hidden() && !option.inherited() && !option.usageHelp() && !option.versionHelp()) {
                String label =
                        option.paramLabel().isEmpty() || option.arity().max() == 0 ? "" : " " + option.paramLabel();
                rows.append(Tables.row(
                        Tables.code(String.join("`, `", option.names()) + label), byDefault(option), text(option)));
            }
        }
        if (!rows.isEmpty()) {
            page.append('\n')
                    .append(Tables.head("option", "default", "meaning"))
                    .append(rows);
        }
    }

    private static String byDefault(OptionSpec option) {
        String value = option.defaultValueString();
        return value == null || value.equals("null") || value.equals("false") || value.isEmpty() || value.equals("[]")
                ? ""
                : Tables.code(value);
    }

    private static String description(CommandLine command) {
        return plain(String.join(" ", command.getCommandSpec().usageMessage().description()));
    }

    private static String text(ArgSpec argument) {
        return plain(String.join(" ", argument.description()));
    }

    private static String plain(String text) {
        return text.replaceAll("@\\|[a-z,]+ (.*?)\\|@", "$1")
                .replace("%n", " ")
                .replace("%%", "%")
                .replace("<", "&lt;");
    }
}
