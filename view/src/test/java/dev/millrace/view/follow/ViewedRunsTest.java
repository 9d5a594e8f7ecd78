package dev.millrace.view.follow;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ViewedRunsTest {
    @TempDir
    private Path folder;

    @Test
    void shouldFindRunsInTheFolderAndThoseThatAnExperimentKeepsTogether() throws IOException {
        Path runs = folder.resolve("runs");
        for (String run : List.of("mine", "collapse/run", "mine/models/config", "too/deep/run")) {
            Files.createFile(Files.createDirectories(runs.resolve(run)).resolve("config.yaml"));
        }
        try (ViewedRuns viewed = new ViewedRuns(List.of(), runs, folder.resolve("indexes"))) {
            assertThat(viewed.sources()).extracting(RunSource::name).containsExactlyInAnyOrder("mine", "collapse.run");
            assertThat(viewed.sources())
                    .extracting(RunSource::options)
                    .contains("--run-dir " + runs.resolve("collapse").resolve("run"));
        }
    }
}
