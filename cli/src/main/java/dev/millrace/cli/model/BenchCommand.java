package dev.millrace.cli.model;

import dev.millrace.cli.ScreenCommand;
import picocli.CommandLine;
import picocli.CommandLine.Command;

/** {@code millrace bench}: measures one part in isolation. */
@Command(
        name = "bench",
        synopsisSubcommandLabel = "COMMAND",
        description = "Measures one component on this machine.",
        subcommands = {EngineBenchCommand.class, CommandLine.HelpCommand.class},
        footer = {"", "millrace bench engine", "millrace bench engine --device cuda:0 --size 15m,110m,494m"})
public final class BenchCommand extends ScreenCommand {
    @Override
    public Integer call() {
        throw mistake("engine is missing");
    }
}
