package dev.millrace.cli.model;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.cli.Main;
import dev.millrace.policy.huggingface.CheckpointDirectory;
import dev.millrace.policy.weights.Dtype;
import dev.millrace.runtime.config.ConfigTree;
import dev.millrace.weights.VersionHash;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.MethodOrderer;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.TestMethodOrder;
import org.junit.jupiter.api.io.TempDir;
import picocli.CommandLine;

/** A run whose model is taken out, and a second one that begins with it; by the commands as a user types them, in one story. */
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
@TestMethodOrder(MethodOrderer.OrderAnnotation.class)
class ModelExportIT {
    private static final Pattern VERSION = Pattern.compile("version (\\d+), weights ([0-9a-f]{64}),");

    @TempDir
    private static Path folder;

    private record Said(int status, String out, String err) {
        String words() {
            return out.replaceAll("\\s+", " ");
        }

        /** Number and hash of the version that was written. */
        Matcher version() {
            Matcher matcher = VERSION.matcher(words());
            assertThat(matcher.find()).as(toString()).isTrue();
            return matcher;
        }
    }

    private static Said millrace(String... arguments) {
        StringWriter out = new StringWriter();
        StringWriter err = new StringWriter();
        CommandLine command = Main.commandLine().setOut(new PrintWriter(out)).setErr(new PrintWriter(err));
        int status = command.execute(arguments);
        return new Said(status, out.toString(), err.toString());
    }

    private static void train(String run, int maxSteps, String... more) {
        List<String> arguments = Stream.concat(
                        Stream.of(
                                "train",
                                "--plain",
                                "--run-dir",
                                folder.resolve(run).toString(),
                                "--max-steps",
                                Integer.toString(maxSteps),
                                "--set",
                                "admission.batch_sequences=32",
                                "--set",
                                "topology.batch.sequences=32",
                                "--set",
                                "goal.mean_reward=0"),
                        Stream.of(more))
                .toList();
        Said said = millrace(arguments.toArray(String[]::new));
        assertThat(said.status).as(said.toString()).isZero();
    }

    private static Said export(String run, Path to, String... more) {
        return millrace(Stream.concat(
                        Stream.of(
                                "model",
                                "export",
                                "--run-dir",
                                folder.resolve(run).toString(),
                                "--to",
                                to.toString()),
                        Stream.of(more))
                .toArray(String[]::new));
    }

    @BeforeAll
    void train() {
        train("first", 3);
    }

    @Test
    @Order(1)
    void shouldWriteTheNewestVersionBitForBitAndNothingOverIt() throws Exception {
        Path to = folder.resolve("model");
        Said said = export("first", to);
        assertThat(said.status).as(said.toString()).isZero();
        String hash = said.version().group(2);
        assertThat(said.words()).contains("version 3, ").contains("the version bit for bit");
        assertThat(VersionHash.of(new CheckpointDirectory(to), Dtype.F32)).isEqualTo(hash);
        assertThat(Files.readString(to.resolve("README.md")))
                .contains("| version | 3, made by batch ")
                .contains("| weights (SHA-256) | `" + hash + "` |")
                .contains("| began with | random weights |");

        Said again = export("first", to);
        assertThat(again.status).isEqualTo(1);
        assertThat(again.err).contains(to + " exists and is not overwritten; name a new directory");
        Said unknown = export("first", folder.resolve("other"), "--version", "17");
        assertThat(unknown.status).isEqualTo(1);
        assertThat(unknown.err).contains("17").contains("give --version a version whose weights are kept");
        assertThat(folder.resolve("other")).doesNotExist();
    }

    @Test
    @Order(2)
    void shouldBeginAnotherRunWithTheseWeightsRoundedAndWriteItsOwnAsTheyCame() throws Exception {
        Path model = folder.resolve("model");
        Files.writeString(model.resolve("generation_config.json"), "{}");
        String hash = VersionHash.of(new CheckpointDirectory(model), Dtype.BF16);
        train("second", 1, "--set", "model.checkpoint=" + model);
        Path left = folder.resolve("second/models");
        assertThat(Files.readString(folder.resolve("second/steps.csv")))
                .as("a run that began with a checkpoint leaves its last version, and its best")
                .contains(VersionHash.of(new CheckpointDirectory(left.resolve("last")), Dtype.BF16))
                .contains(VersionHash.of(new CheckpointDirectory(left.resolve("best")), Dtype.BF16));
        assertThat(folder.resolve("first/models")).doesNotExist();

        Said first = export("second", folder.resolve("again"), "--version", "0");
        assertThat(first.status).as(first.toString()).isZero();
        assertThat(first.version().group(2))
                .as("version 0 is what was loaded, as bfloat16")
                .isEqualTo(hash);
        assertThat(first.words()).contains("the version bit for bit");
        assertThat(new CheckpointDirectory(folder.resolve("again")).layout())
                .as("written as it came")
                .isEqualTo(new CheckpointDirectory(model).layout());
        assertThat(VersionHash.of(new CheckpointDirectory(folder.resolve("again")), Dtype.BF16))
                .isEqualTo(hash);
        assertThat(folder.resolve("again/generation_config.json")).hasContent("{}");

        Said newest = export("second", folder.resolve("brain"), "--dtype", "bfloat16");
        assertThat(newest.words()).contains("the version bit for bit");
        assertThat(newest.version().group(2))
                .isNotEqualTo(hash)
                .isEqualTo(VersionHash.of(new CheckpointDirectory(folder.resolve("brain")), Dtype.BF16));
        assertThat(export("second", folder.resolve("half"), "--dtype", "float16")
                        .words())
                .contains("rounded to F16 (--dtype float32 keeps every bit)");
        assertThat(Files.readString(folder.resolve("brain/README.md")))
                .contains("| began with | `model` |")
                .contains("| start's weights (SHA-256) | `" + hash + "` |");
        Said inspected = millrace("model", "inspect", folder.resolve("brain").toString());
        assertThat(inspected.status).as(inspected.toString()).isZero();
        assertThat(inspected.words()).contains("of BF16").contains("It can be trained.");
    }

    @Test
    @Order(3)
    void shouldWriteTheAdapterOfARunThatTrainsOne() throws Exception {
        train(
                "adapters",
                1,
                "--set",
                "model.checkpoint=" + folder.resolve("model"),
                "--set",
                "learner.lora={rank: 2, target_modules: [q_proj, up_proj]}");
        Path adapter = folder.resolve("adapter");
        Said said = export("adapters", adapter, "--adapter");
        assertThat(said.status).as(said.toString()).isZero();
        assertThat(said.words()).contains("version 1, ").contains("the version bit for bit");
        byte[] written = Files.readAllBytes(adapter.resolve("adapter_model.safetensors"));
        int header = ByteBuffer.wrap(written).order(ByteOrder.LITTLE_ENDIAN).getInt();
        assertThat(HexFormat.of()
                        .formatHex(MessageDigest.getInstance("SHA-256")
                                .digest(Arrays.copyOfRange(written, 8 + header, written.length))))
                .as("the file's numbers are the version's")
                .isEqualTo(said.version().group(2));
        assertThat(folder.resolve("adapters/models/last-adapter/adapter_model.safetensors"))
                .as("left by the run, not merged")
                .hasBinaryContent(written);
        assertThat(folder.resolve("adapters/models/last/model.safetensors")).exists();
        assertThat(ConfigTree.read(adapter.resolve("adapter_config.json")).get("target_modules"))
                .hasToString("[\"q_proj\",\"up_proj\"]");
        assertThat(Files.readString(adapter.resolve("README.md")))
                .contains("| trained | an adapter of rank 2, alpha 16 to q_proj, up_proj, on the start's weights |");
        assertThat(millrace("model", "inspect", adapter.toString()).err)
                .contains("holds an adapter (adapter_config.json) and no model");
    }

    /**
     * From other random weights of another shape: what the policy samples is at first improbable to the teacher. Neither samples ahead,
     * so that every run of this test learns the same.
     */
    @Test
    @Order(4)
    void shouldTeachASmallerPolicyWhatItLearned() throws Exception {
        train("teacher", 20, "--set", "admission.eta=0");
        Said said = export("teacher", folder.resolve("taught"));
        assertThat(said.status).as(said.toString()).isZero();
        train(
                "student",
                20,
                "--seed",
                "7",
                "--set",
                "admission.eta=0",
                "--set",
                "model.layers=1",
                "--set",
                "topology.join.teacher=true",
                "--set",
                "scorer.teacher.directory=" + folder.resolve("taught"),
                "--set",
                "algorithm.advantage=distillation",
                "--set",
                "algorithm.entropy.bonus=0");

        List<String> rows = Files.readAllLines(folder.resolve("student/steps.csv"));
        int column = List.of(rows.get(0).split(",")).indexOf("stage.distillation.reverse_kl");
        double[] divergence = rows.stream()
                .skip(1)
                .mapToDouble(row -> Double.parseDouble(row.split(",", -1)[column]))
                .toArray();
        assertThat(divergence).hasSize(20);
        assertThat(divergence[19])
                .as("nats per token: %s", Arrays.toString(divergence))
                .isLessThan(0.5 * divergence[0]);
    }

    @Test
    @Order(5)
    void shouldSayWhatCannotBeTakenFromAStartThatIsGone() throws Exception {
        Path model = folder.resolve("model");
        Files.move(model.resolve("model.safetensors"), folder.resolve("kept.safetensors"));
        Said said = export("second", folder.resolve("without"));
        assertThat(said.status).as(said.toString()).isZero();
        assertThat(said.words())
                .contains("the run's start checkpoint can no longer be read")
                .contains("so config.json is derived from the shape")
                .contains("the version bit for bit");
        assertThat(folder.resolve("without/generation_config.json")).doesNotExist();
        assertThat(VersionHash.of(new CheckpointDirectory(folder.resolve("without")), Dtype.BF16))
                .isEqualTo(said.version().group(2));
    }
}
