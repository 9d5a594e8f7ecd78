package dev.millrace.view.follow;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.millrace.infra.broker.EmbeddedBroker;
import dev.millrace.runtime.RefusedRequestException;
import dev.millrace.runtime.train.RunDirectory;
import dev.millrace.view.ImportedRun;
import dev.millrace.view.http.LedgerRows;
import java.nio.file.Path;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.CleanupMode;
import org.junit.jupiter.api.io.TempDir;

/** The broker of a run that has ended is started for a question, and is never in the way of the run. */
@Timeout(300)
class LentLogIT {
    @TempDir(cleanup = CleanupMode.NEVER) // the broker's, which outlives a test
    private static Path folder;

    private static LentLog log;

    @BeforeAll
    static void make() {
        ImportedRun.into(folder);
        log = new LentLog(new RunSource.Folder(folder));
    }

    @Test
    void shouldAnswerByTheLogAndGiveTheFolderBack() throws Exception {
        assertThat(log.ask(folder, run -> LedgerRows.check(run.connection().orElseThrow()))
                        .path("generated")
                        .asInt())
                .isEqualTo(372);
        assertThat(RunDirectory.isInUse(folder)).isFalse();
    }

    @Test
    void shouldStepAsideWhenTheRunIsToGoOn() throws Exception {
        CountDownLatch asked = new CountDownLatch(1);
        CompletableFuture<RunDirectory> run = CompletableFuture.supplyAsync(() -> {
            try {
                asked.await();
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            }
            return RunDirectory.open(folder);
        });
        assertThatThrownBy(() -> log.ask(folder, open -> {
                    asked.countDown();
                    try {
                        new CountDownLatch(1).await(); // a question without an end
                        return "never";
                    } catch (InterruptedException e) {
                        throw new IllegalStateException(e);
                    }
                }))
                .isInstanceOf(RefusedRequestException.class)
                .hasMessageContaining("is wanted by another command, which goes first; ask again when it is done");
        try (RunDirectory going = run.get(150, TimeUnit.SECONDS);
                EmbeddedBroker broker = EmbeddedBroker.start(going.broker())) {
            assertThat(broker.bootstrapServers()).as("its broker was down").isNotEmpty();
        }
    }
}
