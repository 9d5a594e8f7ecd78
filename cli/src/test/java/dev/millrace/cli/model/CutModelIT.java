package dev.millrace.cli.model;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.cli.Main;
import dev.millrace.policy.huggingface.CheckpointDirectory;
import dev.millrace.policy.weights.Dtype;
import dev.millrace.weights.VersionHash;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.MethodOrderer;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.TestMethodOrder;
import org.junit.jupiter.api.io.TempDir;
import picocli.CommandLine;

/** Runs whose tensors may have so few numbers that every matrix lies in several, by the commands as a user types them, in one story. */
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
@TestMethodOrder(MethodOrderer.OrderAnnotation.class)
class CutModelIT {
    private static final String CUT = "model.max_tensor_elements=700"; // a matrix of 64 x 128 lies in 12 or 13 tensors

    @TempDir
    private static Path folder;

    private record Said(int status, String out, String err) {
        String words() {
            return out.replaceAll("\\s+", " ");
        }
    }

    private static Said millrace(String... arguments) {
        StringWriter out = new StringWriter();
        StringWriter err = new StringWriter();
        CommandLine command = Main.commandLine().setOut(new PrintWriter(out)).setErr(new PrintWriter(err));
        int status = command.execute(arguments);
        return new Said(status, out.toString(), err.toString());
    }

    private static Said train(String run, int maxSteps, String... more) {
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
        return said;
    }

    private static String export(String run, String to, String... more) throws Exception {
        Said said = millrace(Stream.concat(
                        Stream.of(
                                "model",
                                "export",
                                "--run-dir",
                                folder.resolve(run).toString(),
                                "--to",
                                folder.resolve(to).toString()),
                        Stream.of(more))
                .toArray(String[]::new));
        assertThat(said.status).as(said.toString()).isZero();
        assertThat(said.words()).contains("the version bit for bit");
        return VersionHash.of(new CheckpointDirectory(folder.resolve(to)), Dtype.F32);
    }

    @Test
    @Order(1)
    void shouldBeginAsARunWhoseTensorsAreWholeAndGoOnAfterARestart() throws Exception {
        train("whole", 1);
        train("cut", 2, "--set", CUT);
        assertThat(export("cut", "cut-0", "--version", "0"))
                .as("the same seed gives the same weights")
                .isEqualTo(export("whole", "whole-0", "--version", "0"));
        assertThat(folder.resolve("cut-0/model.safetensors"))
                .hasSameBinaryContentAs(folder.resolve("whole-0/model.safetensors"));

        train("cut", 4, "--set", CUT);
        assertThat(export("cut", "cut-4")).isNotEqualTo(export("cut", "cut-2", "--version", "2"));
        assertThat(Files.readString(folder.resolve("cut-4/README.md"))).contains("| version | 4, made by batch ");
        Said other = millrace(
                "train",
                "--plain",
                "--run-dir",
                folder.resolve("cut").toString(),
                "--max-steps",
                "5",
                "--set",
                "model.max_tensor_elements=800");
        assertThat(other.status).as(other.toString()).isNotZero();
        assertThat(other.err).contains("model.max_tensor_elements is 700");
    }

    @Test
    @Order(2)
    void shouldBeginWithAFileOfWholeTensorsAndLeaveOne() throws Exception {
        Path model = folder.resolve("cut-4");
        train("second", 1, "--set", "model.checkpoint=" + model, "--set", CUT);
        Path last = folder.resolve("second/models/last");
        assertThat(new CheckpointDirectory(last).layout())
                .as("written as it came")
                .isEqualTo(new CheckpointDirectory(model).layout());
        assertThat(Files.readString(folder.resolve("second/steps.csv")))
                .contains(VersionHash.of(new CheckpointDirectory(last), Dtype.BF16));
    }

    @Test
    @Order(3)
    void shouldRefuseALimitThatIsShorterThanARow() {
        Said said = millrace(
                "train",
                "--plain",
                "--run-dir",
                folder.resolve("refused").toString(),
                "--set",
                "model.max_tensor_elements=60");
        assertThat(said.status).isEqualTo(2);
        assertThat(said.err.replaceAll("\\s+", " "))
                .contains("model.embed_tokens.weight has rows of 64 numbers, and a tensor may have 60")
                .contains("raise the limit (model.max_tensor_elements)");
    }
}
