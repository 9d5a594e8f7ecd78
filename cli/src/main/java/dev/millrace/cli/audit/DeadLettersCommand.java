package dev.millrace.cli.audit;

import dev.millrace.cli.ScreenCommand;
import picocli.CommandLine;
import picocli.CommandLine.Command;

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
public final class DeadLettersCommand extends ScreenCommand {
    @Override
    public Integer call() {
        throw mistake("list, show or redrive is missing");
    }
}
