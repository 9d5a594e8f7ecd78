package dev.millrace.cli.measure;

import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Spec;

/** {@code millrace experiment}: the command that holds the experiments. */
@Command(
        name = "experiment",
        synopsisSubcommandLabel = "EXPERIMENT",
        description = "Controlled experiments: in one process, without Kafka, the same bits at every repetition.",
        subcommands = {StalenessCommand.class, LagLawCommand.class, LengthsCommand.class, MethodsCommand.class})
public final class ExperimentCommand implements Runnable {
    @Spec
    private CommandSpec spec;

    @Override
    public void run() {
        throw new CommandLine.ParameterException(spec.commandLine(), "an experiment is missing");
    }
}
