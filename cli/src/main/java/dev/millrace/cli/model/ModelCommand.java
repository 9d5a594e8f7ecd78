package dev.millrace.cli.model;

import dev.millrace.cli.ScreenCommand;
import picocli.CommandLine;
import picocli.CommandLine.Command;

/** {@code millrace model}: inspects, exports, merges and publishes models. */
@Command(
        name = "model",
        synopsisSubcommandLabel = "COMMAND",
        description = "Inspects model directories, exports or publishes versions, and merges adapters.",
        subcommands = {
            InspectCommand.class,
            ExportModelCommand.class,
            PublishModelCommand.class,
            MergeCommand.class,
            CommandLine.HelpCommand.class
        },
        footer = {
            "",
            "millrace model inspect models/Qwen2.5-0.5B",
            "millrace model export --run-dir runs/<run id> --version 40 --to my-model",
            "millrace model publish --bootstrap-servers kafka:9092 --run my-run --to /shared/versions --follow",
            "millrace model merge my-adapter --base models/Qwen2.5-0.5B --to my-model"
        })
public final class ModelCommand extends ScreenCommand {
    @Override
    public Integer call() {
        throw mistake("inspect, export, publish or merge is missing");
    }
}
