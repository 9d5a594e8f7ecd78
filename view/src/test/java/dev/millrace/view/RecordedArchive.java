package dev.millrace.view;

import dev.millrace.runtime.folder.ImportedRun;
import dev.millrace.view.follow.RunSource;
import dev.millrace.view.follow.ViewedRun;
import dev.millrace.view.follow.ViewedRuns;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/** The archive of {@link ImportedRun}, as a view shows it. */
public final class RecordedArchive {
    public static final Path FOLDER = ImportedRun.ARCHIVE;
    public static final String NAME = "contract-3";

    private RecordedArchive() {}

    /** The runs that a view of the archive has. */
    public static ViewedRuns runs(Path indexes) {
        return new ViewedRuns(List.of(new RunSource.Archive(FOLDER)), null, indexes);
    }

    /** The run with its whole index. */
    public static ViewedRun indexed(ViewedRuns runs) throws InterruptedException {
        ViewedRun run = runs.run(NAME).orElseThrow();
        CountDownLatch whole = new CountDownLatch(1);
        run.events().add(event -> {
            if (run.progress().isWhole()) {
                whole.countDown();
            }
        });
        if (!run.progress().isWhole() && !whole.await(150, TimeUnit.SECONDS)) {
            throw new IllegalStateException(
                    "the index is not whole after 30 s: " + run.progress() + " " + run.problem());
        }
        return run;
    }
}
