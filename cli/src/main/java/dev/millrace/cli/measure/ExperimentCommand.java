package dev.millrace.cli.measure;

import dev.millrace.cli.ScreenCommand;
import picocli.CommandLine.Command;

/** {@code millrace experiment}: the command that holds the experiments. */
@Command(
        name = "experiment",
        synopsisSubcommandLabel = "EXPERIMENT",
        description = "Controlled experiments: in one process, without Kafka, the same bits at every repetition.",
        subcommands = {StalenessCommand.class, LagLawCommand.class, LengthsCommand.class, MethodsCommand.class})
public final class ExperimentCommand extends ScreenCommand {
    @Override
    public Integer call() {
        throw mistake("an experiment is missing");
    }
}
