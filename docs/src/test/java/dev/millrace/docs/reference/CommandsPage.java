package dev.millrace.docs.reference;

import dev.millrace.cli.Main;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import picocli.CommandLine;
import picocli.CommandLine.Model.ArgSpec;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Model.OptionSpec;
import picocli.CommandLine.Model.PositionalParamSpec;

/** Every command with its options, from picocli's model. */
final class CommandsPage {
    private static final int SHARED_BY = 3;

    private CommandsPage() {}

    static String text() {
        CommandLine millrace = Main.commandLine();
        StringBuilder page = new StringBuilder(
                "# Command line\n\nEvery command has `--help` with the full text. [Exit codes](outcomes.md#exit-codes). Every command takes "
                        + "`--plugin-path PATH`\nfor more [plug-ins](plugins.md).\n\n");
        List<CommandLine> all = new ArrayList<>();
        commands(millrace, all);
        page.append(all.stream()
                        .map(command -> command.getCommandSpec().qualifiedName())
                        .map(name -> "[" + name.substring("millrace ".length()) + "](#" + name.replace(' ', '-') + ")")
                        .collect(Collectors.joining(",\n")))
                .append('\n');
        Set<String> shared = shared(all);
        page.append("\n## Shared options\n\nOptions of ")
                .append(SHARED_BY)
                .append(" commands or more; each command names those that it has.\n\n")
                .append(Tables.head("option", "meaning"));
        shared.forEach(page::append);
        for (CommandLine command : all) {
            section(command, shared, page);
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

    /** Returns the rows of options that several commands have word for word. */
    private static Set<String> shared(List<CommandLine> all) {
        Map<String, Integer> times = new LinkedHashMap<>();
        all.forEach(command ->
                options(command.getCommandSpec()).forEach(option -> times.merge(row(option), 1, Integer::sum)));
        times.values().removeIf(count -> count < SHARED_BY);
        return times.keySet();
    }

    private static Stream<OptionSpec> options(CommandSpec spec) {
        return spec.options().stream()
                .filter(option ->
                        !option.hidden() && !option.inherited() && !option.usageHelp() && !option.versionHelp());
    }

    private static String row(OptionSpec option) {
        String label = option.paramLabel().isEmpty() || option.arity().max() == 0 ? "" : " " + option.paramLabel();
        return Tables.row(Tables.code(String.join("`, `", option.names()) + label), text(option) + byDefault(option));
    }

    private static void section(CommandLine command, Set<String> shared, StringBuilder page) {
        CommandSpec spec = command.getCommandSpec();
        page.append("\n## ")
                .append(spec.qualifiedName())
                .append("\n\n")
                .append(description(command))
                .append('\n');
        StringBuilder rows = new StringBuilder();
        for (PositionalParamSpec positional : spec.positionalParameters()) {
            rows.append(Tables.row(Tables.code(positional.paramLabel()), text(positional)));
        }
        options(spec)
                .map(CommandsPage::row)
                .filter(row -> !shared.contains(row))
                .forEach(rows::append);
        String elsewhere = options(spec)
                .filter(option -> shared.contains(row(option)))
                .map(option -> Tables.code(option.longestName()))
                .collect(Collectors.joining(", "));
        if (!elsewhere.isEmpty()) {
            page.append("\n[Shared](#shared-options): ").append(elsewhere).append(".\n");
        }
        if (!rows.isEmpty()) {
            page.append('\n').append(Tables.head("option", "meaning")).append(rows);
        }
    }

    /** Returns the default value if the description does not name it. */
    private static String byDefault(OptionSpec option) {
        String value = option.defaultValueString();
        return option.required()
                        || value == null
                        || value.equals("null")
                        || value.equals("false")
                        || value.isEmpty()
                        || value.equals("[]")
                        || value.equals("{}")
                        || text(option).contains("default")
                ? ""
                : " Default: " + Tables.code(value) + ".";
    }

    private static String description(CommandLine command) {
        return plain(String.join(" ", command.getCommandSpec().usageMessage().description()));
    }

    private static String text(ArgSpec argument) {
        return Tables.firstSentence(plain(String.join(" ", argument.description())));
    }

    private static String plain(String text) {
        return text.replaceAll("@\\|[a-z,]+ (.*?)\\|@", "$1")
                .replace("%n", " ")
                .replace("%%", "%")
                .replace("<", "&lt;");
    }
}
