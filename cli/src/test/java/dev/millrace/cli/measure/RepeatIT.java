package dev.millrace.cli.measure;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.cli.Main;
import dev.millrace.view.follow.RunSource;
import dev.millrace.view.follow.ViewedRun;
import dev.millrace.view.follow.ViewedRuns;
import dev.millrace.view.index.RunIndex;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A recorded run repeated three times is a run to the view: everything of it is there, and points at what is there. */
class RepeatIT {
    private static final Path ARCHIVE = Path.of("src", "test", "resources", "archives", "contract-3");

    @TempDir
    private Path folder;

    @Test
    void shouldBeARunThreeTimesAsLong() throws Exception {
        Path run = folder.resolve("long");
        assertThat(Main.commandLine()
                        .execute(
                                "load-test",
                                "repeat",
                                "--archive",
                                ARCHIVE.toString(),
                                "--times",
                                "3",
                                "--run-dir",
                                run.toString()))
                .isZero();
        try (ViewedRuns runs = new ViewedRuns(List.of(new RunSource.Folder(run)), null, folder.resolve("indexes"))) {
            RunIndex index = whole(runs.run("long").orElseThrow());
            assertThat(index.numbers("SELECT count(*) FROM rollout")).containsExactly(3 * 372L);
            assertThat(index.numbers("SELECT batch FROM step ORDER BY batch DESC LIMIT 1"))
                    .containsExactly(3 * 6 - 1L);
            assertThat(index.numbers(
                            "SELECT count(*) FROM rollout JOIN step USING(epoch, batch) WHERE trained_tokens > 0"))
                    .containsExactly(3 * 158L);
            assertThat(index.numbers("SELECT count(*) FROM rollout WHERE dropped = 'zero-variance'"))
                    .containsExactly(3 * 84L);
            assertThat(index.numbers("SELECT count(*) FROM rollout WHERE tokens IS NULL"))
                    .as("what batches and outcomes point at is a rollout")
                    .containsExactly(0L);
        }
    }

    private static RunIndex whole(ViewedRun run) throws InterruptedException {
        CountDownLatch whole = new CountDownLatch(1);
        run.events().add(event -> {
            if (run.progress().isWhole()) {
                whole.countDown();
            }
        });
        assertThat(run.progress().isWhole() || whole.await(150, TimeUnit.SECONDS))
                .as("the index is whole after 60 s; %s", run.problem())
                .isTrue();
        return run.index().orElseThrow();
    }
}
