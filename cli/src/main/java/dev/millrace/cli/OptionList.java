package dev.millrace.cli;

import java.lang.reflect.Member;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import picocli.CommandLine;
import picocli.CommandLine.Help;
import picocli.CommandLine.IHelpSectionRenderer;
import picocli.CommandLine.Model.OptionSpec;
import picocli.CommandLine.Model.UsageMessageSpec;

/** The options under a usage message: the command's own, then those that it shares with others, by {@link HelpHeading}. */
final class OptionList implements IHelpSectionRenderer {
    private OptionList() {}

    /** Has a command, and all below it, list their options so. */
    static CommandLine in(CommandLine command) {
        command.getHelpSectionMap().put(UsageMessageSpec.SECTION_KEY_OPTION_LIST, new OptionList());
        command.getSubcommands().values().forEach(OptionList::in);
        return command;
    }

    @Override
    public String render(Help help) {
        Map<String, List<OptionSpec>> groups = new LinkedHashMap<>();
        groups.put("", new ArrayList<>());
        for (OptionSpec option : help.commandSpec().options()) {
            if (!option.hidden()) {
                groups.computeIfAbsent(heading(option), unseen -> new ArrayList<>())
                        .add(option);
            }
        }
        StringBuilder text = new StringBuilder();
        groups.forEach((heading, options) -> {
            if (!heading.isEmpty()) {
                text.append(String.format("%n%s%n", help.colorScheme().text("@|bold " + heading + "|@")));
            }
            Help.Layout layout = new Help.Layout(
                    help.colorScheme(),
                    help.createDefaultLayout(options, List.of(), help.colorScheme())
                            .textTable(),
                    HelpText.inOnePiece(help.createDefaultOptionRenderer()),
                    help.createDefaultParameterRenderer());
            layout.addOptions(options, help.parameterLabelRenderer());
            text.append(layout);
        });
        return text.toString();
    }

    private static String heading(OptionSpec option) {
        HelpHeading heading = option.userObject() instanceof Member member
                ? member.getDeclaringClass().getAnnotation(HelpHeading.class)
                : null;
        return heading == null ? "" : heading.value();
    }
}
