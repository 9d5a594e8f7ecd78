package dev.millrace.runtime.train;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.millrace.runtime.RefusedRequestException;
import java.nio.file.Path;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class FolderLockTest {
    @TempDir
    private Path folder;

    @Test
    void shouldBeARunOnlyWhereAFolderIsNotLent() {
        assertThat(RunDirectory.isInUse(folder)).isFalse();
        try (RunDirectory run = RunDirectory.open(folder)) {
            assertThat(run.path()).isEqualTo(folder);
            assertThat(RunDirectory.isRunning(folder)).isTrue();
        }
        try (RunDirectory reader = RunDirectory.lend(folder)) {
            assertThat(reader.path()).isEqualTo(folder);
            assertThat(RunDirectory.isInUse(folder)).isTrue();
            assertThat(RunDirectory.isLent(folder)).isTrue();
            assertThat(RunDirectory.isRunning(folder)).isFalse();
        }
        assertThat(RunDirectory.isInUse(folder)).isFalse();
        assertThat(RunDirectory.isLent(folder)).isFalse();
    }

    @Test
    void shouldWaitForAReader() throws Exception {
        RunDirectory reader = RunDirectory.lend(folder);
        CompletableFuture<RunDirectory> run = CompletableFuture.supplyAsync(() -> RunDirectory.open(folder));
        assertThatThrownBy(() -> run.get(1, TimeUnit.SECONDS)).isInstanceOf(TimeoutException.class);
        reader.close();
        try (RunDirectory opened = run.get(90, TimeUnit.SECONDS)) {
            assertThat(opened.path()).isEqualTo(folder);
            assertThat(RunDirectory.isRunning(folder)).isTrue();
        }
    }

    @Test
    void shouldNotWaitForARun() {
        try (RunDirectory run = RunDirectory.open(folder)) {
            assertThatThrownBy(() -> RunDirectory.lend(folder))
                    .isInstanceOf(RefusedRequestException.class)
                    .hasMessageContaining("another process is running in " + run.path());
        }
    }
}
