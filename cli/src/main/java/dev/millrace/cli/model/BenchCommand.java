package dev.millrace.cli.model;

import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Spec;

/** {@code millrace bench}: measures one part in isolation. */
@Command(
        name = "bench",
        synopsisSubcommandLabel = "COMMAND",
        description = "Measures one component on this machine.",
        subcommands = {EngineBenchCommand.class, CommandLine.HelpCommand.class},
        footer = {"", "millrace bench engine", "millrace bench engine --device cuda:0 --size 15m,110m,494m"})
public final class BenchCommand implements Runnable {
    @Spec
    private CommandSpec spec;

    @Override
    public void run() {
        throw new CommandLine.ParameterException(spec.commandLine(), "engine is missing");
    }
}
