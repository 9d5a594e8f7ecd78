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
import dev.millrace.cli.config.PluginPath;
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
import dev.millrace.runtime.RefusedRequestException;
import java.io.PrintWriter;
import java.lang.reflect.Member;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import picocli.AutoComplete.GenerateCompletion;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Help;
import picocli.CommandLine.HelpCommand;
import picocli.CommandLine.IHelpSectionRenderer;
import picocli.CommandLine.Model.OptionSpec;
import picocli.CommandLine.Model.UsageMessageSpec;

/**
 * The command {@code millrace}. To add a command, list its class under {@code subcommands} and its name in {@link
 * CommandList}.
 */
@Command(
        name = "millrace",
        versionProvider = Versions.class,
        description = "Streams off-policy rollouts of a language model through Kafka into a learner, exactly once.",
        synopsisSubcommandLabel = "COMMAND",
        subcommands = {
            TrainCommand.class,
            ViewCommand.class,
            RoleCommands.Admit.class,
            RoleCommands.Generate.class,
            RoleCommands.Gateway.class,
            RoleCommands.Score.class,
            RoleCommands.Stream.class,
            RoleCommands.Learn.class,
            BrokerCommand.class,
            RegistryCommand.class,
            AclsCommand.class,
            EvaluateCommand.class,
            RunsCommand.class,
            StopCommand.class,
            TopicsCommand.class,
            LedgerCommand.class,
            TraceCommand.class,
            LapCommand.class,
            DeadLettersCommand.class,
            QuarantineCommand.class,
            DoctorCommand.class,
            RollbackCommand.class,
            RepairCommand.class,
            DeleteCommand.class,
            ModelCommand.class,
            ExportCommand.class,
            ImportCommand.class,
            ReplayCommand.class,
            LoadTestCommand.class,
            PlanCommand.class,
            BenchCommand.class,
            ConfigCommand.class,
            PluginsCommand.class,
            GenerateCompletion.class,
            CorrectCommand.class,
            ConformanceCommand.class,
            ExperimentCommand.class,
            HelpCommand.class
        },
        footer = {"", "Start with: millrace train"})
public final class Main implements Callable<Integer> {
    @CommandLine.Mixin
    private PluginPath plugins;

    @CommandLine.Spec
    private CommandLine.Model.CommandSpec spec;

    /** A command line that reports user errors as a sentence and other failures with their cause. */
    public static CommandLine commandLine() {
        Main millrace = new Main();
        return OptionList.in(CommandList.in(HelpText.in(new CommandLine(millrace))))
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
        int status = fitted(commandLine()).execute(arguments);
        System.out.flush();
        System.err.flush();
        System.exit(status);
    }

    /** Rewrites hints as typed, and wraps lines to the terminal; other output is unchanged. */
    private static CommandLine fitted(CommandLine command) {
        String typed = System.getProperty("millrace.command", HintWriter.COMMAND);
        command.setOut(new HintWriter(command.getOut(), command, typed));
        command.setErr(new HintWriter(command.getErr(), command, typed));
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
        spec.commandLine().usage(spec.commandLine().getErr());
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
