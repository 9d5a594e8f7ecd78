package dev.millrace.docs.reference;

import dev.millrace.cli.Main;
import dev.millrace.cli.audit.RunOptions;
import dev.millrace.cli.config.ConfigOptions;
import dev.millrace.cli.replay.StepRangeOptions;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
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

    /** Options that commands have together, said once. */
    private record OptionSet(String title, List<String> rows) {
        static OptionSet of(String title, Object options) {
            return new OptionSet(title, CommandsPage.rows(CommandSpec.forAnnotatedObject(options)));
        }
    }

    private static final List<OptionSet> SETS = List.of(
            OptionSet.of("Run", new RunOptions()),
            OptionSet.of("Role", new ConfigOptions()),
            OptionSet.of("Range", new StepRangeOptions()));

    private CommandsPage() {}

    static String text() {
        CommandLine millrace = Main.commandLine();
        StringBuilder page = new StringBuilder(
                "# Command line\n\nEvery command has `--help` with the full text, and `--plugin-path PATH` for more [plug-ins](plugins.md). "
                        + "[Exit codes](outcomes.md#exit-codes).\n\n");
        List<CommandLine> all = new ArrayList<>();
        commands(millrace, all);
        page.append(all.stream()
                        .map(command -> command.getCommandSpec().qualifiedName())
                        .filter(name -> name.split(" ").length == 2) // the commands of a group follow it
                        .map(name -> "[" + name.substring("millrace ".length()) + "](#" + name.replace(' ', '-') + ")")
                        .collect(Collectors.joining(",\n")))
                .append('\n');
        for (OptionSet set : SETS) {
            page.append("\n## ").append(set.title()).append(" options\n\n");
            set.rows().forEach(page::append);
        }
        Set<String> shared = shared(all);
        page.append("\n## Shared options\n\nOther options of ")
                .append(SHARED_BY)
                .append(" commands or more.\n\n");
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

    /** Returns the rows of options that several commands have word for word, without those of the sets. */
    private static Set<String> shared(List<CommandLine> all) {
        Map<String, Integer> times = new LinkedHashMap<>();
        all.forEach(command -> {
            List<String> rows = rows(command.getCommandSpec());
            SETS.stream().filter(set -> rows.containsAll(set.rows())).forEach(set -> rows.removeAll(set.rows()));
            rows.forEach(row -> times.merge(row, 1, Integer::sum));
        });
        times.values().removeIf(count -> count < SHARED_BY);
        return times.keySet();
    }

    private static List<String> rows(CommandSpec spec) {
        return options(spec).map(CommandsPage::row).collect(Collectors.toCollection(ArrayList::new));
    }

    private static Stream<OptionSpec> options(CommandSpec spec) {
        return spec.options().stream()
                .filter(option ->
                        !option.hidden() && !option.inherited() && !option.usageHelp() && !option.versionHelp());
    }

    private static String row(OptionSpec option) {
        String label = option.paramLabel().isEmpty() || option.arity().max() == 0 ? "" : " " + option.paramLabel();
        return item(String.join("`, `", option.names()) + label, text(option) + byDefault(option));
    }

    private static String item(String name, String meaning) {
        return "- `" + name + "`: " + meaning + "\n";
    }

    private static void section(CommandLine command, Set<String> shared, StringBuilder page) {
        CommandSpec spec = command.getCommandSpec();
        page.append("\n## ")
                .append(spec.qualifiedName())
                .append("\n\n")
                .append(description(command))
                .append('\n');
        List<String> rows = rows(spec);
        List<String> elsewhere = new ArrayList<>();
        SETS.stream().filter(set -> rows.containsAll(set.rows())).forEach(set -> {
            rows.removeAll(set.rows());
            elsewhere.add("[" + set.title() + " options](#" + set.title().toLowerCase(Locale.ROOT) + "-options)");
        });
        options(spec)
                .filter(option -> rows.contains(row(option)) && shared.contains(row(option)))
                .map(option -> Tables.code(option.longestName()))
                .forEach(elsewhere::add);
        rows.removeAll(shared);
        if (!elsewhere.isEmpty()) {
            page.append('\n').append(String.join(", ", elsewhere)).append(".\n");
        }
        if (!rows.isEmpty() || !spec.positionalParameters().isEmpty()) {
            page.append('\n');
        }
        for (PositionalParamSpec positional : spec.positionalParameters()) {
            page.append(item(positional.paramLabel(), text(positional)));
        }
        rows.forEach(page::append);
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
