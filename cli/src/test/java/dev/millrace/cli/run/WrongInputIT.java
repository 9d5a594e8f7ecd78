package dev.millrace.cli.run;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.cli.audit.RunInFolder;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/** What a mistake gets: a status other than 0 and one sentence that names it, its bound and the way out. */
@Timeout(900)
class WrongInputIT {
    private static final int FAILED = 1;
    private static final int MISTAKEN = 2;

    @TempDir
    private Path folder;

    /** Runs {@code millrace train} with the arguments in a process of its own; returns its one sentence. */
    private String refusal(int status, String... arguments) throws Exception {
        List<String> all = new ArrayList<>(List.of("train"));
        all.addAll(Arrays.asList(arguments));
        try (TrainProcess process = TrainProcess.start(folder, all)) {
            assertThat(process.awaitExit(TrainProcess.PATIENCE))
                    .as(process::toString)
                    .isEqualTo(status);
            return sentence(process.err());
        }
    }

    /** The same in this process; {@code DIR} in the arguments is the folder, and is left out of the sentence. */
    private String refusalHere(int status, String... arguments) {
        List<String> all = new ArrayList<>(List.of("train"));
        Stream.of(arguments)
                .map(argument -> argument.replace("DIR", folder.toString()))
                .forEach(all::add);
        RunInFolder.Said said = RunInFolder.said(all);
        assertThat(said.status()).as(said.toString()).isEqualTo(status);
        return sentence(said.err().lines().toList()).replace(folder + "/", "");
    }

    private static String sentence(List<String> err) {
        assertThat(err).singleElement().asString().startsWith("millrace: ");
        return err.get(0).substring("millrace: ".length());
    }

    private static ServerSocket taken() throws Exception {
        return new ServerSocket(0, 1, InetAddress.getByAddress(new byte[] {127, 0, 0, 1}));
    }

    static Stream<Arguments> settings() {
        return Stream.of(
                Arguments.of("lerner.max_steps=3", "unknown key lerner; did you mean learner?"),
                Arguments.of("learner.max_step=3", "unknown key learner.max_step; did you mean learner.max_steps?"),
                Arguments.of("admission.eta=-1", "admission.eta must be at least 0: -1"),
                Arguments.of(
                        "learner.step.optimizer.learning_rate=fast",
                        "learner.step.optimizer.learning_rate must be a number: 'fast'"),
                Arguments.of(
                        "task=incc",
                        "task must be one of inc, sort, guess, text, or a kind of a plug-in (--plugin-path): 'incc'; did you mean inc?"),
                Arguments.of(
                        "topology.batch.sequences=128",
                        "admission.batch_sequences is 256 and topology.batch.sequences is 128; both are the batch"
                                + " size, so give both the same value"),
                Arguments.of(
                        "kafka.bootstrap.servers=x",
                        "kafka.bootstrap.servers must not be set: run.bootstrap_servers "
                                + "(--bootstrap-servers) says where the cluster is"),
                Arguments.of(
                        "kafka.consumer.fetch.max.byte=1",
                        "kafka.consumer.fetch.max.byte is not a setting that Kafka's consumer knows "
                                + "(settings of a Kafka plug-in go under kafka.plugin.); did you mean"
                                + " kafka.consumer.fetch.max.bytes?"));
    }

    @ParameterizedTest
    @MethodSource("settings")
    void shouldNameTheKeyAndWhatIsAllowed(String setting, String sentence) {
        assertThat(refusalHere(MISTAKEN, "--run-dir", "DIR/r", "--set", setting))
                .isEqualTo(sentence);
        assertThat(folder.resolve("r")).doesNotExist();
    }

    @Test
    void shouldSayWhereAConfigurationIsNoYaml() throws Exception {
        Files.writeString(folder.resolve("bad.yaml"), "goal:\n  mean_reward: [0.5\n");
        assertThat(refusal(MISTAKEN, "--config", "bad.yaml"))
                .startsWith("bad.yaml is not valid YAML at line 3, column 1: expected ',' or ']'");
    }

    @Test
    void shouldSayThatAConfigurationIsNotThere() throws Exception {
        assertThat(refusalHere(MISTAKEN, "--config", "DIR/none.yaml"))
                .isEqualTo("there is no configuration file none.yaml");
    }

    @Test
    void shouldTakeBackABeginningWhosePortIsTaken() throws Exception {
        try (ServerSocket socket = taken()) {
            int port = socket.getLocalPort();
            assertThat(refusal(FAILED, "--run-dir", "r", "--set", "broker.port=" + port))
                    .isEqualTo("the broker cannot listen on 127.0.0.1:" + port
                            + ": Address already in use; set broker.port to another number, or to 0 for any free one");
            assertThat(refusalHere(FAILED, "--run-dir", "DIR/r", "--metrics-port", Integer.toString(port)))
                    .isEqualTo("port " + port
                            + " on loopback is taken; give --metrics-port another one, or 0 for any free one");
        }
        assertThat(folder.resolve("r/config.yaml"))
                .as("the next attempt begins afresh")
                .doesNotExist();
        assertThat(folder.resolve("r/broker")).doesNotExist();
    }

    @Test
    void shouldNameTheOptionOfTrainWhereThePortOfThePageIsTaken() throws Exception {
        try (ServerSocket socket = taken()) {
            int port = socket.getLocalPort();
            assertThat(refusalHere(FAILED, "--run-dir", "DIR/r", "--view", Integer.toString(port)))
                    .isEqualTo(
                            "port " + port + " on loopback is taken; give --view another one, or 0 for any free one");
        }
    }

    @Test
    void shouldGiveUpOnAClusterThatDoesNotAnswer() throws Exception {
        int port;
        try (ServerSocket socket = taken()) {
            port = socket.getLocalPort();
        }
        assertThat(refusalHere(
                        FAILED,
                        "--run-dir",
                        "DIR/r",
                        "--bootstrap-servers",
                        "127.0.0.1:" + port,
                        "--set",
                        "topics.timeout_ms=3000"))
                .startsWith("no broker answers at bootstrap_servers=127.0.0.1:" + port
                        + " within timeout_ms=3000; start it, or correct the address");
        assertThat(refusalHere(FAILED, "--run-dir", "DIR/r", "--bootstrap-servers", "no-port"))
                .startsWith("cannot connect to bootstrap_servers=no-port: Invalid url");
    }

    @Test
    void shouldLeaveAloneWhatIsNoRun() throws Exception {
        Files.writeString(folder.resolve("file"), "x");
        Files.createDirectories(folder.resolve("thesis"));
        Files.writeString(folder.resolve("thesis/chapter.tex"), "important");
        assertThat(refusalHere(FAILED, "--run-dir", "DIR/file"))
                .isEqualTo("file is a file; give --run-dir a new or empty folder, or one of an earlier run");
        assertThat(refusalHere(FAILED, "--run-dir", "DIR/file/below"))
                .isEqualTo(
                        "cannot use file/below as run directory (Not a directory); give --run-dir a folder that can be written");
        assertThat(refusalHere(FAILED, "--run-dir", "DIR/thesis"))
                .isEqualTo("thesis is not empty and holds no run (it has no config.yaml); "
                        + "give --run-dir a new or empty folder, or one of an earlier run");
        assertThat(folder.resolve("thesis")).isDirectoryNotContaining("glob:**lock");
    }

    @Test
    void shouldSayBeforeTheRunThatItsSummaryCannotBeWritten() throws Exception {
        Files.writeString(folder.resolve("file"), "x");
        assertThat(refusalHere(FAILED, "--run-dir", "DIR/r", "--summary", "DIR/file/s.json"))
                .startsWith("cannot write the summary to ")
                .endsWith("give --summary a file that can be written");
        assertThat(folder.resolve("r")).doesNotExist();
    }

    @Test
    void shouldLetOneProcessIntoARun() throws Exception {
        Path directory = Files.createDirectories(folder.resolve("r"));
        Files.writeString(directory.resolve("config.yaml"), "run:\n  id: r\n");
        try (FileChannel channel = FileChannel.open(
                        directory.resolve("lock"), StandardOpenOption.CREATE, StandardOpenOption.WRITE);
                FileLock lock = channel.lock()) {
            assertThat(lock.isValid()).isTrue();
            assertThat(refusal(FAILED, "--run-dir", "r"))
                    .isEqualTo("another process is running in r; wait for it, or give --run-dir another folder");
        }
    }

    @Test
    void shouldGoOnWithARunOnlyAsWhatItIs() throws Exception {
        Path directory = Files.createDirectories(folder.resolve("r"));
        byte[] begun = "run:\n  id: r\n".getBytes(StandardCharsets.UTF_8);
        Files.write(directory.resolve("config.yaml"), begun);
        assertThat(refusalHere(MISTAKEN, "--run-dir", "DIR/r", "--set", "model.layers=3"))
                .isEqualTo("model.layers is 2 in r/config.yaml and 3 is requested; it cannot change once a run has"
                        + " started, so leave it unchanged, or give --run-dir a new folder");
        assertThat(refusalHere(MISTAKEN, "--run-dir", "DIR/r", "--seed", "9"))
                .startsWith("run.seed is 1 in r/config.yaml and 9 is requested;");
        assertThat(directory.resolve("config.yaml"))
                .as("what the run was begun with")
                .hasBinaryContent(begun);
    }

    @Test
    void shouldShowWhereOnlyWhenAsked() throws Exception {
        try (TrainProcess process =
                TrainProcess.start(folder, List.of("train", "--verbose", "--set", "admission.eta=-1"))) {
            assertThat(process.awaitExit(TrainProcess.PATIENCE)).isEqualTo(MISTAKEN);
            assertThat(process.err()).anyMatch(line -> line.startsWith("\tat dev.millrace."));
        }
    }
}
