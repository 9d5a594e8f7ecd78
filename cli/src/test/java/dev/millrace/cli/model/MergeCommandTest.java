package dev.millrace.cli.model;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.cli.Main;
import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.decoder.LoraShape;
import dev.millrace.policy.huggingface.AdapterExport;
import dev.millrace.policy.huggingface.CheckpointDirectory;
import dev.millrace.policy.weights.Dtype;
import dev.millrace.policy.weights.FrozenWeights;
import dev.millrace.policy.weights.LoraAdapter;
import dev.millrace.policy.weights.Weights;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import picocli.CommandLine;

class MergeCommandTest {
    private static final DecoderShape SHAPE = new DecoderShape(6, 4, 1, 2, 2, 2, 3, 8, 10_000, 1e-5, true, false);
    private static final String WEIGHT = "model.layers.0.self_attn.q_proj.weight";

    @TempDir
    Path directory;

    private Path base;
    private Path adapter;

    @BeforeEach
    void write() throws IOException {
        base = directory.resolve("base");
        adapter = directory.resolve("adapter");
        new CheckpointDirectory(base).save(Weights.random(SHAPE, 1));
        Files.writeString(base.resolve("tokenizer.json"), "the base's");
        Files.writeString(base.resolve("LICENSE"), "the base's");
        LoraAdapter made = LoraAdapter.zeros(
                new LoraShape(1, 2, List.of("q_proj")),
                new FrozenWeights(Weights.random(SHAPE, 1).as(Dtype.F32), "hash"));
        made.parameters().tensor(LoraShape.a(WEIGHT)).put(0, 0.5f);
        made.parameters().tensor(LoraShape.b(WEIGHT)).put(0, 0.25f);
        new AdapterExport(made, base.toString()).to(adapter, "card");
        Files.writeString(adapter.resolve("tokenizer.json"), "the adapter's");
    }

    private String run(int status, String... arguments) {
        StringWriter said = new StringWriter();
        CommandLine command = Main.commandLine().setOut(new PrintWriter(said)).setErr(new PrintWriter(said));
        assertThat(command.execute(arguments)).as(said.toString()).isEqualTo(status);
        return said.toString().replaceAll("\\s+", " ");
    }

    @Test
    void shouldWriteAModelThatARunCanBeginWith() throws IOException {
        Path to = directory.resolve("to");
        assertThat(run(0, "model", "merge", adapter.toString(), "--to", to.toString()))
                .contains("merged into 1 layers of " + base, "F32");

        Weights merged = new CheckpointDirectory(to).load();
        Weights before = Weights.random(SHAPE, 1);
        assertThat(merged.tensor(WEIGHT).get(0)).isEqualTo(before.tensor(WEIGHT).get(0) + 2 * 0.5f * 0.25f);
        assertThat(merged.tensor(WEIGHT).get(1)).isEqualTo(before.tensor(WEIGHT).get(1));
        assertThat(to.resolve("tokenizer.json")).hasContent("the adapter's");
        assertThat(to.resolve("LICENSE")).hasContent("the base's");
        assertThat(run(1, "model", "merge", adapter.toString(), "--to", to.toString()))
                .contains(to + " exists and is not overwritten");
    }

    @Test
    void shouldSayWhatIsMissing() throws IOException {
        String to = directory.resolve("to").toString();
        assertThat(run(2, "model", "merge", base.toString(), "--to", to))
                .contains(base + " holds no adapter_config.json");
        Path config = adapter.resolve("adapter_config.json");
        Files.writeString(config, Files.readString(config).replace(base.toString(), "org/name"));
        assertThat(run(2, "model", "merge", adapter.toString(), "--to", to))
                .contains("base_model_name_or_path is 'org/name', which is not a directory here; give the base"
                        + " model's: --base DIR");
        assertThat(run(2, "model", "merge", adapter.toString(), "--base", adapter.toString(), "--to", to))
                .contains("holds an adapter (adapter_config.json) and no model; merge it into its base model");
        assertThat(Path.of(to)).doesNotExist();
    }

    @Test
    void shouldRefuseAPortOfThePageBeforeAnythingStarts() {
        Path folder = directory.resolve("run");
        assertThat(run(2, "train", "--plain", "--view=99999", "--run-dir", folder.toString()))
                .contains("--view must be from 0 to 65535: 99999");
        assertThat(folder).doesNotExist();
    }
}
