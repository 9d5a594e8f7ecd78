package dev.millrace.cli.audit;

import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Spec;

/** {@code millrace quarantine}: the generators whose records a run refuses, and letting them back in. */
@Command(
        name = "quarantine",
        mixinStandardHelpOptions = true,
        synopsisSubcommandLabel = "COMMAND",
        description = "Lists and lifts quarantines of generators.",
        subcommands = {ListQuarantines.class, LiftQuarantine.class, CommandLine.HelpCommand.class},
        footer = {
            "",
            "millrace quarantine list --run-dir runs/<run id>",
            "millrace quarantine lift generator-3 --run-dir runs/<run id>"
        })
public final class QuarantineCommand implements Runnable {
    @Spec
    private CommandSpec spec;

    @Override
    public void run() {
        throw new CommandLine.ParameterException(spec.commandLine(), "list or lift is missing");
    }
}
