package dev.millrace.cli.model;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.cli.Main;
import dev.millrace.cli.python.PythonInterpreter;
import dev.millrace.policy.huggingface.CheckpointDirectory;
import dev.millrace.policy.weights.Dtype;
import dev.millrace.runtime.config.ConfigTree;
import dev.millrace.weights.VersionHash;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.MethodOrderer;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.TestMethodOrder;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import picocli.CommandLine;

/** Versions of a run in bfloat16, published into a folder by the command and read there by the Python package. */
@Timeout(1200)
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
@TestMethodOrder(MethodOrderer.OrderAnnotation.class)
class ModelPublishIT {
    private static final String COMPARE = """
            import sys
            from millrace_rl.published import PublishedVersions
            from millrace_rl.tensors import safetensors, to_float32
            versions = PublishedVersions(sys.argv[1])
            for directory in sys.argv[2:]:
                due = safetensors(directory + "/model.safetensors")
                for reader in (versions, PublishedVersions(sys.argv[1])):
                    found = reader.load(int(directory.rsplit("-", 1)[1]))
                    assert found.keys() == due.keys(), (found.keys(), due.keys())
                    for name in due:
                        assert to_float32(found[name], "BF16").tobytes() == due[name].tobytes(), (directory, name)
            print("compared", len(sys.argv[2:]))
            """;

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

    private static Said run(String command, String run, String... more) {
        List<String> arguments = new ArrayList<>(List.of(command.split(" ")));
        arguments.addAll(List.of("--run-dir", folder.resolve(run).toString()));
        arguments.addAll(List.of(more));
        return millrace(arguments.toArray(String[]::new));
    }

    private static void train(String run, int maxSteps, String... more) {
        Said said = run(
                "train --plain --set admission.batch_sequences=32 --set topology.batch.sequences=32",
                run,
                Stream.concat(Stream.of("--max-steps", Integer.toString(maxSteps)), Stream.of(more))
                        .toArray(String[]::new));
        assertThat(said.status).as(said.toString()).isZero();
    }

    private static Said publish(String... more) {
        return run(
                "model publish",
                "run",
                Stream.concat(Stream.of("--to", folder.resolve("versions").toString()), Stream.of(more))
                        .toArray(String[]::new));
    }

    private static String base(int version) {
        return ConfigTree.read(folder.resolve("versions/" + version + ".json"))
                .path("base_version")
                .toString();
    }

    @Test
    @Order(1)
    void shouldPublishWhatTheRunHasAndGoOnAfterMoreSteps() throws Exception {
        train("first", 1);
        Path model = folder.resolve("model");
        assertThat(run("model export", "first", "--to", model.toString()).status)
                .isZero();
        Files.writeString(model.resolve("generation_config.json"), "{}");
        train("run", 2, "--set", "model.checkpoint=" + model, "--set", "learner.step.optimizer.learning_rate=1e-5");

        Said begun = publish("--from-version", "0", "--full-every", "3");
        assertThat(begun.status).as(begun.toString()).isZero();
        assertThat(begun.words())
                .contains("versions of run ")
                .contains("version 0 is in ")
                .contains(" values changed since version 1");
        train("run", 4);
        Said more = publish("--from-version", "0", "--full-every", "3");
        assertThat(more.status).as(more.toString()).isZero();
        assertThat(more.words()).doesNotContain("version 2 is in ").contains("version 4 is in ");
        assertThat(Stream.of(0, 1, 2, 3, 4).map(ModelPublishIT::base)).containsExactly("null", "0", "1", "null", "3");
        assertThat(folder.resolve("versions/3/generation_config.json")).hasContent("{}");
    }

    @Test
    @Order(2)
    void shouldGiveEveryVersionBackToPythonAsItIsExported() throws Exception {
        List<String> arguments = new ArrayList<>(
                List.of("-c", COMPARE, folder.resolve("versions").toString()));
        for (int version = 0; version <= 4; version++) {
            String to = folder.resolve("exported-" + version).toString();
            Said said = run("model export --dtype bfloat16", "run", "--to", to, "--version", Integer.toString(version));
            assertThat(said.status).as(said.toString()).isZero();
            arguments.add(to);
        }
        PythonInterpreter python = PythonInterpreter.with(folder, "numpy");
        Process compared = python.start("compared", Map.of(), arguments.toArray(String[]::new));
        assertThat(compared.waitFor(300, TimeUnit.SECONDS)).isTrue();
        assertThat(python.printed("compared")).isEqualTo("compared 5\n");

        Path newest = folder.resolve("newest");
        Process saved = python.start(
                "saved",
                Map.of(),
                "-m",
                "millrace_rl.published",
                folder.resolve("versions").toString(),
                "--to",
                newest.toString());
        assertThat(saved.waitFor(300, TimeUnit.SECONDS)).isTrue();
        assertThat(python.printed("saved")).isEqualTo("version 4 is in " + newest + "\n");
        assertThat(VersionHash.of(new CheckpointDirectory(newest), Dtype.BF16))
                .isEqualTo(VersionHash.of(new CheckpointDirectory(folder.resolve("exported-4")), Dtype.BF16));
    }

    @Test
    @Order(3)
    void shouldPublishAdaptersAndACopyThatPythonReads() throws Exception {
        train(
                "lora",
                2,
                "--set",
                "model.checkpoint=" + folder.resolve("model"),
                "--set",
                "learner.lora={rank: 2, target_modules: [q_proj, up_proj]}");
        Path copy = folder.resolve("copy");
        Said said = run(
                "model publish --adapter --from-version 0",
                "lora",
                "--to",
                folder.resolve("adapters").toString(),
                "--copy-to",
                copy.toUri().toString());
        assertThat(said.status).as(said.toString()).isZero();
        assertThat(said.words())
                .contains("version 0 is left out: it is the base of the run's adapters")
                .contains("version 2 is in ");
        Path exported = folder.resolve("exported-adapter");
        assertThat(run("model export --adapter", "lora", "--to", exported.toString()).status)
                .isZero();
        assertThat(copy.resolve("2/adapter_model.safetensors"))
                .hasSameBinaryContentAs(exported.resolve("adapter_model.safetensors"));
        assertThat(copy.resolve("2/adapter_config.json"))
                .hasSameBinaryContentAs(exported.resolve("adapter_config.json"));

        Path newest = folder.resolve("newest-adapter");
        PythonInterpreter python = PythonInterpreter.with(folder, "numpy");
        Process saved = python.start(
                "adapter", Map.of(), "-m", "millrace_rl.published", copy.toString(), "--to", newest.toString());
        assertThat(saved.waitFor(300, TimeUnit.SECONDS)).isTrue();
        assertThat(python.printed("adapter"))
                .as("the hash over its tensors is the manifest's")
                .isEqualTo("version 2 is in " + newest + "\n");
    }

    @Test
    @Order(4)
    void shouldSayWhatCannotBePublished() {
        assertThat(publish("--copy-to", "bucket/prefix").err)
                .contains("--copy-to must be s3://bucket/prefix or file:///path: bucket/prefix");
        assertThat(publish("--adapter", "--dtype", "bfloat16").err)
                .contains("--dtype is for merged versions; an adapter keeps its own type: leave --dtype out");
        assertThat(publish("--keep", "0").err).contains("--keep must be at least 1: 0");
        assertThat(publish("--from-version", "-1").err).contains("--from-version must be at least 0: -1");
        assertThat(publish("--full-every", "0").err).contains("--full-every must be at least 1: 0");
        assertThat(run(
                                "model publish --adapter",
                                "first",
                                "--to",
                                folder.resolve("none").toString())
                        .err
                        .replaceAll("\\s+", " "))
                .contains("trains all weights (learner.lora.rank=0), so it has no adapters; leave --adapter out");
        assertThat(folder.resolve("none")).doesNotExist();
        Said other =
                run("model publish", "first", "--to", folder.resolve("versions").toString());
        assertThat(other.status).isEqualTo(1);
        assertThat(other.err.replaceAll("\\s+", " "))
                .contains("0.json is of run ")
                .contains("; name another folder");
    }
}
