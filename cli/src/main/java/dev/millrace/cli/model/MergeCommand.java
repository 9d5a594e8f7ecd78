package dev.millrace.cli.model;

import dev.millrace.cli.ScreenCommand;
import dev.millrace.policy.huggingface.AdapterDirectory;
import dev.millrace.policy.huggingface.CheckpointDirectory;
import dev.millrace.policy.huggingface.CheckpointException;
import dev.millrace.policy.huggingface.CheckpointExport;
import dev.millrace.policy.weights.Weights;
import dev.millrace.runtime.config.ConfigException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Locale;
import java.util.TreeSet;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/**
 * {@code millrace model merge}: merges a LoRA adapter into its base, as a model directory that a run can begin with.
 */
@Command(
        name = "merge",
        description = "Merges a LoRA adapter in PEFT's layout into its base model and writes the result as a new model "
                + "directory. Tokenizer and chat template are the adapter's where it has them, else the base's.",
        footer = {
            "",
            "millrace model merge my-adapter --base models/Qwen2.5-0.5B --to my-model",
            "millrace train --model my-model --data prompts.jsonl --reward numeric",
            "",
            "Exit codes: 0 it is written; 1 a failure; 2 a mistake in the command line, or an adapter"
                    + " that cannot be",
            "merged."
        })
public final class MergeCommand extends ScreenCommand {
    @Parameters(
            paramLabel = "ADAPTER",
            description = "Directory with adapter_config.json and adapter_model.safetensors.")
    private Path adapter;

    @Option(
            names = "--base",
            paramLabel = "DIR",
            description = "Directory of the base model; default: the adapter's base_model_name_or_path.")
    private Path base;

    @Option(names = "--to", paramLabel = "DIR", required = true, description = "New directory; nothing is overwritten.")
    private Path to;

    @Option(
            names = "--dtype",
            paramLabel = "TYPE",
            description = "float32 (not rounded), bfloat16 or float16; default: the base's.")
    private ExportModelCommand.Type type;

    @Override
    public Integer call() throws IOException {
        ExportModelCommand.requireNew(to);
        try {
            AdapterDirectory read = new AdapterDirectory(adapter);
            CheckpointDirectory model = new CheckpointDirectory(base == null ? named(read.base()) : base);
            Weights weights = model.load();
            int layers = read.mergeInto(weights);
            CheckpointExport export = CheckpointExport.like(model, weights).withCompanions(adapter);
            if (type != null) {
                export = export.as(type.name);
            }
            export.to(
                    to,
                    String.format(
                            Locale.ROOT,
                            "# %s%n%nThe LoRA adapter `%s`, merged into `%s` by Millrace.%n",
                            to.getFileName(),
                            adapter.toAbsolutePath().normalize().getFileName(),
                            model.path().toAbsolutePath().normalize().getFileName()));
            out().printf(
                            Locale.ROOT,
                            "%s, merged into %d layers of %s, is in %s: %,d bytes, %s%n",
                            adapter,
                            layers,
                            model.path(),
                            to,
                            export.bytes(),
                            String.join(", ", new TreeSet<>(export.types())));
            return 0;
        } catch (CheckpointException e) {
            throw new ConfigException(String.valueOf(e.getMessage()), e);
        }
    }

    private static Path named(String name) {
        if (name.isEmpty() || !Files.isDirectory(Path.of(name))) {
            throw new ConfigException("the adapter's base_model_name_or_path is '" + name
                    + "', which is not a directory here; give the base model's: --base DIR");
        }
        return Path.of(name);
    }
}
