package dev.millrace.runtime.train;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.millrace.runtime.RefusedRequestException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class RunDirectoryTest {
    @TempDir
    private Path folder;

    @Test
    void shouldKnowAnOldRunFromANewOne() {
        Path path = folder.resolve("runs/a");
        try (RunDirectory first = RunDirectory.open(path)) {
            assertThat(first.resumed()).isFalse();
            first.write(first.config(), "run:\n  id: a\n");
        }
        try (RunDirectory second = RunDirectory.open(path)) {
            assertThat(second.resumed()).isTrue();
        }
    }

    @Test
    void shouldLetOneProcessIn() {
        try (RunDirectory first = RunDirectory.open(folder)) {
            assertThatThrownBy(() -> RunDirectory.open(folder))
                    .isInstanceOf(RefusedRequestException.class)
                    .hasMessageContaining("another process is running in");
            assertThat(first.path()).isEqualTo(folder);
        }
    }

    @Test
    void shouldNameItsProcessAndStopNoOther() throws Exception {
        assertThat(RunDirectory.stop(folder)).as("nobody trains").isEmpty();
        try (RunDirectory first = RunDirectory.open(folder)) {
            ProcessHandle own = ProcessHandle.current();
            assertThat(Files.readString(folder.resolve("lock")))
                    .isEqualTo(own.pid() + " "
                            + own.info().startInstant().orElseThrow().toEpochMilli());
            Files.writeString(folder.resolve("lock"), own.pid() + " 1"); // its number was given to a later process
            assertThatThrownBy(() -> RunDirectory.stop(folder))
                    .isInstanceOf(RefusedRequestException.class)
                    .hasMessage("cannot ask the process that trains in " + folder
                            + " to stop: this process may not signal it;"
                            + " end it where it runs, with SIGTERM or Ctrl-C");
            assertThat(first.path().resolve("lock.stop")).doesNotExist();
        }
    }

    @Test
    void shouldRefuseAFolderOfSomethingElse() throws Exception {
        Files.writeString(folder.resolve("thesis.tex"), "important");
        assertThatThrownBy(() -> RunDirectory.open(folder))
                .isInstanceOf(RefusedRequestException.class)
                .hasMessageContaining("holds no run");
    }

    @Test
    void shouldRefuseAPathThatIsAFile() throws Exception {
        Path file = folder.resolve("file");
        Files.writeString(file, "x");
        assertThatThrownBy(() -> RunDirectory.open(file))
                .isInstanceOf(RefusedRequestException.class)
                .hasMessageContaining(file + " is a file; give --run-dir");
        assertThatThrownBy(() -> RunDirectory.open(file.resolve("below")))
                .isInstanceOf(RefusedRequestException.class)
                .hasMessageContaining("cannot use")
                .hasMessageContaining("Not a directory");
    }

    @Test
    void shouldTakeBackABeginningThatFailed() throws Exception {
        try (RunDirectory first = RunDirectory.open(folder)) {
            first.write(first.config(), "broker:\n  port: 80\n");
            Files.createDirectories(first.broker().resolve("topic-0"));
            Files.writeString(first.broker().resolve("topic-0/segment"), "x");
            Files.writeString(first.log(), "what happened");
            first.discard();
            assertThat(first.broker()).doesNotExist();
            assertThat(first.log()).exists();
        }
        try (RunDirectory second = RunDirectory.open(folder)) {
            assertThat(second.resumed()).isFalse();
        }
    }
}
