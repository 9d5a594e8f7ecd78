package dev.millrace.cli.model;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.cli.Main;
import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.decoder.DecoderTraits;
import dev.millrace.policy.decoder.RopeScaling;
import dev.millrace.policy.huggingface.CheckpointDirectory;
import dev.millrace.policy.weights.Weights;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import picocli.CommandLine;

class InspectCommandTest {
    @TempDir
    Path directory;

    private record Said(int status, String out, String err) {}

    private Said inspect(Path path, String... options) {
        StringWriter out = new StringWriter();
        StringWriter err = new StringWriter();
        CommandLine command = Main.commandLine().setOut(new PrintWriter(out)).setErr(new PrintWriter(err));
        int status = command.execute(Stream.concat(Stream.of("model", "inspect", path.toString()), Stream.of(options))
                .toArray(String[]::new));
        return new Said(status, out.toString(), err.toString());
    }

    @Test
    void shouldSayThatATokenizerWhichNoRunOpensKeepsItFromBeingTrained() throws IOException {
        save();
        Files.createDirectory(directory.resolve("tokenizer.json"));
        Said said = inspect(directory);
        assertThat(said.status).as(said.toString()).isEqualTo(InspectCommand.UNSUPPORTED);
        assertThat(said.out.replaceAll("\\s+", " "))
                .contains("It cannot be trained: " + directory, "is not a regular file");
    }

    private void save() throws IOException {
        DecoderTraits traits =
                new DecoderTraits(new RopeScaling.Yarn(4, 32, 32, 1, 1.2, true), false, false, true, 24, 1);
        DecoderShape shape = new DecoderShape(1000, 32, 3, 2, 1, 16, 48, 128, 500.0, 1e-5, true, false).with(traits);
        new CheckpointDirectory(directory).save(Weights.random(shape, 3));
    }

    @Test
    void shouldSayWhatAModelIsAndCosts() throws IOException {
        save();
        Files.copy(
                Path.of("..", "policy", "src", "test", "resources", "tiny", "tokenizer.json"),
                directory.resolve("tokenizer.json"));
        Said said = inspect(directory);
        assertThat(said.status).as(said.toString()).isZero();
        assertThat(said.out)
                .containsSubsequence(
                        "model " + directory,
                        "  family      qwen3 (Qwen3ForCausalLM)",
                        "  parameters  55,360",
                        "  shape       3 layers of width 32, 2 heads on 1 key heads of 16",
                        "  vocabulary  1,000 tokens, head tied",
                        "  positions   at most 128 tokens, rope theta 500, stretched by YaRN by 4 from 32",
                        "  window      24 tokens, from layer 1 on",
                        "  attention   norms of queries and keys",
                        "  files       1 file with 35 tensors, 221 kB of F32",
                        "  also has    tokenizer.json",
                        "  weights     221 kB for each copy",
                        "  learner     221 kB of gradients and 664 kB of optimiser's",
                        "  gradient    ",
                        "for one sequence of 128 tokens",
                        "  generator   384 B of cache for each token",
                        "  version     111 kB of bfloat16 (weights.dtype), every 8th",
                        "  adapters    of rank 8 (learner.lora.rank) in place of these: 11,136",
                        "It can be trained.");
        assertThat(said.out.replaceAll("\\s+", " "))
                .containsPattern(
                        "gradient [0-9.]+ MB for one sequence of 128 tokens, [0-9.]+ MB where its layers are computed"
                                + " again \\(learner.step.recompute\\); each of 2 shards may take 1.07 GB \\(learner.step.memory_mb\\),"
                                + " so 32 of these go at once");
        assertThat(said.out.lines().count()).as("one screen").isLessThanOrEqualTo(32);
    }

    @Test
    void shouldSayWhichMatricesLieInSeveralTensors() throws IOException {
        save();
        Path config = directory.resolve("config.json");
        Files.writeString(
                config, Files.readString(config).replaceAll("\"vocab_size\" ?: ?1000", "\"vocab_size\": 33554432"));
        Said said = inspect(directory);
        assertThat(said.out.replaceAll("\\s+", " "))
                .contains(
                        "tensors model.embed_tokens.weight has 1,073,741,824 numbers and lies in 3, which have 536,870,911 at most")
                .contains("model.embed_tokens.weight has the shape [1000, 32], the config asks for [33554432, 32]");
        assertThat(said.status).as("the files are another model's").isEqualTo(InspectCommand.UNSUPPORTED);

        Files.writeString(
                config,
                Files.readString(config)
                        .replaceAll("\"tie_word_embeddings\" ?: ?true", "\"tie_word_embeddings\": false"));
        assertThat(inspect(directory).out.replaceAll("\\s+", " "))
                .contains("which have 536,870,911 at most; so does lm_head.weight");
    }

    @Test
    void shouldSayWhatAdaptersOfARankCostOrThatThereAreNone() throws IOException {
        save();
        assertThat(inspect(directory, "--lora-rank", "2").out).contains("adapters    of rank 2");
        assertThat(inspect(directory, "--lora-rank", "17").out.replaceAll("\\s+", " "))
                .contains(
                        "rank is 17, and model.layers.0.self_attn.k_proj.weight is 16 x 32, which has no higher rank");
        Said said = inspect(directory, "--lora-rank", "0");
        assertThat(said.status).isEqualTo(2);
        assertThat(said.err).contains("--lora-rank must be at least 1: 0");
    }

    @Test
    void shouldMeasureTheModelWhereItIsAskedTo() throws IOException {
        save();
        Said said = inspect(directory, "--measure");
        assertThat(said.status).as(said.toString()).isZero();
        assertThat(said.out.replaceAll("\\s+", " "))
                .containsPattern(
                        "It can be trained\\. on cpu here \\(one thread, 8 sequences of 64 prompt and 64 sampled tokens, "
                                + "medians of 3\\) generator [0-9,]+ tokens of prompts a second, [0-9,]+ sampled tokens a second "
                                + "scorer [0-9,]+ tokens a second learner [0-9.]+ s a step of these 8 sequences, [0-9.e-]+ s of it");
        assertThat(inspect(directory, "--measure", "--device", "abacus").err)
                .contains("device must be cpu, cuda:N or cuda:N:tf32, such as cuda:0: device=abacus");
    }

    @Test
    void shouldNameEverythingThatIsNotSupportedAndEndWithAnExitCode() throws IOException {
        save();
        Path config = directory.resolve("config.json");
        Files.writeString(
                config,
                Files.readString(config)
                        .replace("\"yarn\"", "\"longrope\"")
                        .replace(
                                "\"model_type\"",
                                "\"num_experts\" : 64, \"attn_logit_softcapping\" : 50.0, \"model_type\""));
        Said said = inspect(directory);
        assertThat(said.status).isEqualTo(InspectCommand.UNSUPPORTED);
        assertThat(said.out.replaceAll("\\s+", " "))
                .contains("It cannot be trained:")
                .contains("num_experts=64: mixtures of experts are supported for qwen3_moe only")
                .contains("attn_logit_softcapping=50.0: capped attention scores are not supported")
                .contains("rotary positions of type longrope are not supported");
    }

    @Test
    void shouldNameAFileThatIsNotWhatTheDescriptionAsksFor() throws IOException {
        save();
        Files.delete(directory.resolve("model.safetensors"));
        Said said = inspect(directory);
        assertThat(said.status).isEqualTo(InspectCommand.UNSUPPORTED);
        assertThat(said.out).contains("holds no *.safetensors file");
    }

    @Test
    void shouldRefuseWhatIsNoModel() {
        Said said = inspect(directory);
        assertThat(said.status).isEqualTo(2);
        assertThat(said.err).contains(directory + " holds no config.json");
        assertThat(inspect(directory.resolve("nothing")).err).contains("is not a directory");
    }
}
