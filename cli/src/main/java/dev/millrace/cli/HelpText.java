package dev.millrace.cli;

import java.util.ArrayList;
import java.util.List;
import picocli.CommandLine;
import picocli.CommandLine.Help.Ansi.Text;
import picocli.CommandLine.Help.IOptionRenderer;
import picocli.CommandLine.Model.UsageMessageSpec;

/**
 * Joins the sentences of usage messages into paragraphs, so that they fill any terminal; source lines break
 * elsewhere.
 */
final class HelpText {
    /** A source line that ends a sentence before this column ends a paragraph. */
    private static final int FULL_LINE = 100;

    private static final int DESCRIPTION = 4;

    private HelpText() {}

    /** Joins the descriptions of a command and its subcommands into paragraphs, and adds the help options. */
    static CommandLine in(CommandLine command) {
        if (!command.getCommandSpec().optionsMap().containsKey("--help")) {
            command.getCommandSpec().mixinStandardHelpOptions(true);
        }
        UsageMessageSpec usage = command.getCommandSpec().usageMessage();
        usage.description(paragraphs(usage.description()).toArray(String[]::new));
        command.getSubcommands().values().forEach(HelpText::in);
        return command;
    }

    static List<String> paragraphs(String[] lines) {
        List<String> paragraphs = new ArrayList<>();
        boolean goesOn = false;
        for (String line : lines) {
            if (goesOn && !line.isBlank()) {
                paragraphs.set(paragraphs.size() - 1, paragraphs.get(paragraphs.size() - 1) + " " + line);
            } else {
                paragraphs.add(line);
            }
            goesOn = !line.isBlank() && !(line.endsWith(".") && line.length() < FULL_LINE);
        }
        return paragraphs;
    }

    /** Joins an option's description. */
    static IOptionRenderer inOnePiece(IOptionRenderer renderer) {
        return (option, label, scheme) -> {
            Text[][] rows = renderer.render(option, label, scheme);
            List<Text[]> joined = new ArrayList<>();
            for (Text[] row : rows) {
                boolean goesOn = !joined.isEmpty();
                for (int column = 0; column < DESCRIPTION; column++) {
                    goesOn &= row[column].plainString().isEmpty();
                }
                Text[] last = goesOn ? joined.get(joined.size() - 1) : row;
                if (goesOn && !last[DESCRIPTION].plainString().isEmpty()) {
                    last[DESCRIPTION] = last[DESCRIPTION].concat(" ").concat(row[DESCRIPTION]);
                } else {
                    joined.add(row);
                }
            }
            return joined.toArray(Text[][]::new);
        };
    }
}
