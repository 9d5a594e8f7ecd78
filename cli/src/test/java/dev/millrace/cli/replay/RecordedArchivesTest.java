package dev.millrace.cli.replay;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.cli.Main;
import dev.millrace.replay.AsRecorded;
import dev.millrace.replay.TaskVerdict;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Archives of runs that earlier versions made, each to be read and proved by every later one, without an option and without
 * an exception: configuration, schemas, settings' text, and every record that the topology made.
 *
 * <p>If one of them cannot be proved any more, the change that did it is incomplete. A key of the configuration that was
 * renamed has to be read under its old name too, a setting needs its neutral value or a change of form (TopologySettings), a
 * field of a record a default. {@code make.sh} next to them made them; archives are added, never rebuilt.
 */
class RecordedArchivesTest {
    private static final Path ARCHIVES = Path.of("src", "test", "resources", "archives");

    static List<Path> archives() throws IOException {
        try (Stream<Path> folders = Files.list(ARCHIVES)) {
            return folders.filter(Files::isDirectory).sorted().toList();
        }
    }

    private static List<TaskVerdict> replay(Path archive) throws InterruptedException {
        try (ReplayedRun run = ReplayedRun.open(archive, null)) {
            return new AsRecorded(
                            run.recorded(),
                            run.config().topology(),
                            run.config().algorithm(),
                            run.maxValueBytes())
                    .replay(2);
        }
    }

    @ParameterizedTest
    @MethodSource("archives")
    void shouldProveEveryArchive(Path archive) throws Exception {
        assertThat(replay(archive)).isNotEmpty().allMatch(TaskVerdict::isProved);
    }

    private static String said(String... arguments) {
        StringWriter out = new StringWriter();
        int status = Main.commandLine().setOut(new PrintWriter(out)).execute(arguments);
        assertThat(status).as(out.toString()).isZero();
        return out.toString();
    }

    @ParameterizedTest
    @MethodSource("archives")
    void shouldVerifyAndDiagnoseEveryArchive(Path archive) {
        assertThat(said("import", archive.toString(), "--verify")).contains("matches its hash");
        assertThat(said("doctor", "--archive", archive.toString())).contains("Nothing is broken or critical.");
    }

    @ParameterizedTest
    @MethodSource("archives")
    void shouldAccountForEveryRolloutOfEveryArchiveAndTraceOne(Path archive) {
        assertThat(said("ledger", "--archive", archive.toString())).contains("It adds up.");
        assertThat(said("trace", "0-3/0", "--archive", archive.toString()))
                .contains("rollout 0-3/0 — dropped: zero-variance", "prompt released", "joined");
    }

    @Test
    void shouldExplainEveryRecordOfTheRunThatWasMadeByTheThirdContract() throws Exception {
        List<TaskVerdict> verdicts = replay(ARCHIVES.resolve("contract-3"));
        Map<String, Long> same = new HashMap<>();
        verdicts.forEach(verdict -> verdict.same().forEach((topic, records) -> same.merge(topic, records, Long::sum)));
        assertThat(same)
                .isEqualTo(Map.of("millrace.trajectories", 372L, "millrace.batches", 9L, "millrace.outcomes", 84L));
        assertThat(verdicts)
                .extracting(TaskVerdict::task)
                .containsExactly("join-0", "join-1", "join-2", "join-3", "assembly-0");
        assertThat(verdicts.stream().mapToInt(TaskVerdict::beginnings).sum()).isEqualTo(10);
    }
}
