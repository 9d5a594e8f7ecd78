package dev.millrace.cli.audit;

import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Spec;

/** {@code millrace dead-letters}: lists refused records with reasons, and redrives them. */
@Command(
        name = "dead-letters",
        synopsisSubcommandLabel = "COMMAND",
        description = "Lists, shows and redrives the records that a run refused.",
        subcommands = {ListCommand.class, ShowCommand.class, RedriveCommand.class, CommandLine.HelpCommand.class},
        footer = {
            "",
            "millrace dead-letters list --run-dir runs/<run id>",
            "millrace dead-letters show 17 --run-dir runs/<run id>",
            "millrace dead-letters redrive --reason reward --dry-run --run-dir runs/<run id>"
        })
public final class DeadLettersCommand implements Runnable {
    @Spec
    private CommandSpec spec;

    @Override
    public void run() {
        throw new CommandLine.ParameterException(spec.commandLine(), "list, show or replay is missing");
    }
}
