package dev.millrace.cli;

import dev.millrace.cli.config.PluginPath;
import dev.millrace.runtime.RefusedRequestException;
import java.io.PrintWriter;
import java.lang.reflect.Member;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Help;
import picocli.CommandLine.IHelpSectionRenderer;
import picocli.CommandLine.Model.OptionSpec;
import picocli.CommandLine.Model.UsageMessageSpec;

/** The command {@code millrace}. To add a command, list it in {@link CommandList}. */
@Command(
        name = "millrace",
        versionProvider = Versions.class,
        description = "Streams off-policy rollouts of a language model through Kafka into a learner, exactly once.",
        synopsisSubcommandLabel = "COMMAND",
        footer = {"", "Start with: millrace train"})
public final class Main extends ScreenCommand {
    @CommandLine.Mixin
    private PluginPath plugins;

    /** A command line that reports user errors as a sentence and other failures with their cause. */
    public static CommandLine commandLine() {
        return commandLine(CommandList.names());
    }

    /** @param names of its commands */
    private static CommandLine commandLine(Collection<String> names) {
        Main millrace = new Main();
        CommandLine command = new CommandLine(millrace);
        names.forEach(name -> command.addSubcommand(name, CommandList.named(name)));
        return OptionList.in(CommandList.in(HelpText.in(command)))
                .setExecutionStrategy(parsed -> {
                    Logs.ofCommand(
                            parsed.commandSpec().commandLine(),
                            parsed.originalArgs().contains("--verbose"),
                            System.getenv());
                    millrace.plugins.load(parsed.commandSpec().commandLine());
                    try {
                        return new CommandLine.RunLast().execute(parsed);
                    } catch (OutOfMemoryError e) {
                        throw new RefusedRequestException(
                                "the Java heap of " + Runtime.getRuntime().maxMemory() / 1_000_000
                                        + " MB is too small (" + e.getMessage()
                                        + "); raise it (MILLRACE_OPTS=-Xmx4g), or read less",
                                e);
                    }
                })
                .setCaseInsensitiveEnumValuesAllowed(true)
                .setUsageHelpAutoWidth(true)
                .setParameterExceptionHandler(new Failures())
                .setExecutionExceptionHandler(new Failures());
    }

    public static void main(String[] arguments) {
        int status = fitted(commandLine(needed(arguments))).execute(arguments);
        System.out.flush();
        System.err.flush();
        System.exit(status);
    }

    /** To read the annotations of all commands takes half a second, so the typed one is alone where it needs no other. */
    static Collection<String> needed(String... arguments) {
        boolean isAlone = arguments.length > 0
                && CommandList.names().contains(arguments[0])
                && !CommandList.OF_ALL.contains(arguments[0]);
        return isAlone ? List.of(arguments[0]) : CommandList.names();
    }

    /** Rewrites hints as typed, and wraps lines to the terminal; other output is unchanged. */
    private static CommandLine fitted(CommandLine command) {
        String typed = System.getProperty("millrace.command", HintWriter.COMMAND);
        command.setOut(new HintWriter(command.getOut(), typed));
        command.setErr(new HintWriter(command.getErr(), typed));
        Integer out = Integer.getInteger("millrace.columns.out");
        Integer err = Integer.getInteger("millrace.columns.err");
        if (out != null && out > 0) {
            command.setOut(new PrintWriter(new FittedWriter(command.getOut(), out), true));
        }
        if (err != null && err > 0) {
            command.setErr(new PrintWriter(new FittedWriter(command.getErr(), err), true));
        }
        return command;
    }

    /** Without a command: prints the command list as an error. */
    @Override
    public Integer call() {
        spec.commandLine().usage(err());
        return Failures.MISTAKEN;
    }

    /** Options of a usage message: the command's own, then shared ones by {@link HelpHeading}. */
    static final class OptionList implements IHelpSectionRenderer {
        private OptionList() {}

        /** Installs the option list in a command and its subcommands. */
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
}
