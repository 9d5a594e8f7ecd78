package dev.millrace.cli.config;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.generator.environment.Symbols;
import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.decoder.DecoderTraits;
import dev.millrace.policy.decoder.RopeScaling;
import dev.millrace.policy.huggingface.CheckpointDirectory;
import dev.millrace.policy.weights.Weights;
import dev.millrace.runtime.config.CheckpointModel;
import dev.millrace.runtime.config.ConfigBinder;
import dev.millrace.runtime.config.ConfigException;
import dev.millrace.runtime.config.ConfigTree;
import dev.millrace.runtime.config.MillraceConfig;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import picocli.CommandLine;

class CheckpointModelTest {
    private static final DecoderShape SHAPE = new DecoderShape(16, 32, 3, 2, 1, 16, 48, 128, 500.0, 1e-5, true, true);

    @TempDir
    private Path directory;

    @Test
    void shouldTakeShapeAndWeightsFromTheDirectory() throws IOException {
        Weights weights = save(SHAPE);

        MillraceConfig config = resolve("--set", "model.checkpoint=" + directory, "--set", "model.layers=3");

        assertThat(config.model().shape(16)).isEqualTo(SHAPE);
        assertThat(config.model().checkpoint()).isEqualTo(directory.toString());
        assertThat(new CheckpointModel(config.model()).weights().bytes("model.embed_tokens.weight"))
                .isEqualTo(weights.bytes("model.embed_tokens.weight"));
        ObjectNode begun = ConfigBinder.unbind(config);
        Files.delete(directory.resolve("config.json"));
        assertThat(resolve(begun).model())
                .as("a resumed run does not need the directory")
                .isEqualTo(config.model());
    }

    @Test
    void shouldTakeWhatBelongsToAFamilyFromTheDirectory() throws IOException {
        DecoderTraits traits =
                new DecoderTraits(new RopeScaling.Yarn(4, 32, 32, 1, 1.2, true), false, false, true, 24, 1);
        DecoderShape shape = new DecoderShape(16, 32, 3, 2, 1, 16, 48, 128, 500.0, 1e-5, true, false).with(traits);
        save(shape);

        assertThat(resolve("--set", "model.checkpoint=" + directory).model().shape(16))
                .isEqualTo(shape);
        assertThat(resolve("--set", "model.checkpoint=" + directory, "--set", "model.traits.sliding_window=24")
                        .model()
                        .shape(16))
                .isEqualTo(shape);
        assertThatThrownBy(() -> resolve(
                        "--set", "model.checkpoint=" + directory, "--set", "model.traits.rope_scaling.factor=8"))
                .isInstanceOf(ConfigException.class)
                .hasMessage("model.traits.rope_scaling.factor is 8 and the checkpoint " + directory
                        + " has 4.0; leave the key out, or give another model.checkpoint");
    }

    @Test
    void shouldRefuseAShapeThatContradictsTheConfiguration() throws IOException {
        save(SHAPE);
        assertThatThrownBy(() -> resolve("--set", "model.checkpoint=" + directory, "--set", "model.layers=2"))
                .isInstanceOf(ConfigException.class)
                .hasMessage("model.layers is 2 and the checkpoint " + directory
                        + " has 3; leave the key out, or give another model.checkpoint");
    }

    @Test
    void shouldRefuseAnotherVocabulary() throws IOException {
        save(new DecoderShape(17, 32, 3, 2, 1, 16, 48, 128, 500.0, 1e-5, true, true));
        assertThatThrownBy(() -> resolve("--set", "model.checkpoint=" + directory))
                .isInstanceOf(ConfigException.class)
                .hasMessage("model.checkpoint " + directory
                        + " has a vocabulary of 17 tokens and the task's has 16; give a checkpoint with the task's"
                        + " vocabulary, or train on text with the checkpoint's own: --data FILE");
    }

    @Test
    void shouldCompareTheTokenizerWhereThereIsOne() throws IOException {
        save(SHAPE);
        writeTokenizer(0);
        assertThat(resolve("--set", "model.checkpoint=" + directory).model().layers())
                .isEqualTo(3);

        writeTokenizer(1);
        assertThatThrownBy(() -> resolve("--set", "model.checkpoint=" + directory))
                .isInstanceOf(ConfigException.class)
                .hasMessage(directory.resolve("tokenizer.json")
                        + " gives '<bos>' the id 1 and the task's vocabulary the id 0; the policy would read"
                        + " different tokens");
        Files.writeString(directory.resolve("tokenizer.json"), "{}");
        assertThatThrownBy(() -> resolve("--set", "model.checkpoint=" + directory))
                .isInstanceOf(ConfigException.class)
                .hasMessageEndingWith(
                        "has no model.vocab that gives tokens their ids, so it cannot be compared with the task's");
    }

    @Test
    void shouldSayThatThereIsNoCheckpoint() {
        assertThatThrownBy(() -> resolve("--set", "model.checkpoint=" + directory))
                .isInstanceOf(ConfigException.class)
                .hasMessage("model.checkpoint: " + directory
                        + " holds no config.json; give the folder of a model in Hugging Face's layout");
    }

    private Weights save(DecoderShape shape) throws IOException {
        Weights weights = Weights.random(shape, 3);
        new CheckpointDirectory(directory).save(weights);
        return weights;
    }

    private void writeTokenizer(int shift) throws IOException {
        String ids = IntStream.range(0, Symbols.names().size())
                .mapToObj(id -> "\"" + Symbols.names().get(id) + "\": " + (id + shift))
                .collect(Collectors.joining(", "));
        Files.writeString(directory.resolve("tokenizer.json"), "{\"model\": {\"vocab\": {" + ids + "}}}");
    }

    private static MillraceConfig resolve(String... arguments) {
        ConfigOptions options = new ConfigOptions();
        new CommandLine(CommandLine.Model.CommandSpec.create()
                        .addMixin("options", CommandLine.Model.CommandSpec.forAnnotatedObject(options)))
                .parseArgs(arguments);
        return options.over(ConfigTree.empty()).resolve();
    }

    private static MillraceConfig resolve(ObjectNode begun) {
        return new ConfigOptions().over(begun).resolve();
    }
}
