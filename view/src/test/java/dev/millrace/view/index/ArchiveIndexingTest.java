package dev.millrace.view.index;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.view.RecordedArchive;
import dev.millrace.view.follow.ViewedRun;
import dev.millrace.view.follow.ViewedRuns;
import dev.millrace.view.http.Answers;
import dev.millrace.view.http.CourseAnswer.StepsAnswer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The index agrees with the ledger about a recorded run. */
class ArchiveIndexingTest {
    @TempDir
    Path indexes;

    @Test
    void shouldCountAsTheLedgerDoes() throws Exception {
        try (ViewedRuns runs = RecordedArchive.runs(indexes)) {
            RunIndex index = RecordedArchive.indexed(runs).index().orElseThrow();
            assertThat(index.numbers("SELECT count(*) FROM rollout")).containsExactly(372L);
            assertThat(index.numbers(
                            "SELECT count(*) FROM rollout JOIN step USING(epoch, batch) WHERE trained_tokens > 0"))
                    .containsExactly(158L);
            assertThat(
                            index.numbers(
                                    "SELECT count(*) FROM rollout JOIN step USING(epoch, batch) WHERE masked_by = 'rollout_correction'"))
                    .containsExactly(34L);
            assertThat(index.numbers("SELECT count(*) FROM rollout WHERE dropped = 'zero-variance'"))
                    .containsExactly(84L);
            assertThat(index.numbers("SELECT count(*) FROM rollout LEFT JOIN step USING(epoch, batch)"
                            + " WHERE rollout.batch IS NOT NULL AND step.version IS NULL"))
                    .containsExactly(96L);
            assertThat(index.numbers("SELECT count(*) FROM rollout WHERE tokens IS NULL OR reward IS NULL"))
                    .containsExactly(0L);
        }
    }

    @Test
    void shouldSayTheSameWhenTheSameRecordsCameTwice() throws Exception {
        TreeMap<String, Long> once;
        try (ViewedRuns runs = RecordedArchive.runs(indexes)) {
            ViewedRun run = RecordedArchive.indexed(runs);
            RunIndex index = run.index().orElseThrow();
            once = sums(index);
            index.write(statements -> statements.run("DELETE FROM position"));
        }
        try (ViewedRuns runs = RecordedArchive.runs(indexes)) {
            assertThat(sums(RecordedArchive.indexed(runs).index().orElseThrow()))
                    .isEqualTo(once);
        }
        try (var folders = Files.list(indexes)) {
            assertThat(folders.toList()).as("one index for one run").hasSize(1);
        }
    }

    private static TreeMap<String, Long> sums(RunIndex index) {
        TreeMap<String, Long> sums = new TreeMap<>();
        for (String table : List.of("step", "batch", "rollout", "prompt", "version", "served", "letter")) {
            sums.put(table, index.numbers("SELECT count(*) FROM " + table).get(0));
        }
        sums.put(
                "trained",
                index.numbers("SELECT sum(trained_tokens) FROM rollout").get(0));
        return sums;
    }

    @Test
    void shouldTellTheStepsThatComeAfterOne() throws Exception {
        try (ViewedRuns runs = RecordedArchive.runs(indexes)) {
            RunIndex index = RecordedArchive.indexed(runs).index().orElseThrow();
            assertThat(StepsAnswer.of(index, 0, -1))
                    .startsWith("{\"all\":6,\"count\":6,\"every\":1,\"steps\":[{\"batch\":0,");
            assertThat(StepsAnswer.of(index, 0, 4))
                    .startsWith("{\"all\":6,\"count\":1,\"every\":1,\"steps\":[{\"batch\":5,");
            assertThat(StepsAnswer.of(index, 1, -1))
                    .as("another epoch has none")
                    .contains("\"count\":0");
        }
    }

    @Test
    void shouldPassOverAVersionBehindAGapInWhatIsNewest() throws Exception {
        try (ViewedRuns runs = RecordedArchive.runs(indexes)) {
            ViewedRun run = RecordedArchive.indexed(runs);
            RunIndex index = run.index().orElseThrow();
            index.write(statements -> statements.run(
                    "INSERT INTO version(epoch, version, parent, batch, published_ms) VALUES(0, 1000000, 999999, 5, 1),"
                            + " (0, 1000001, 1000000, 6, 1)"));
            assertThat(Answers.now(run, index, 0, 0).path("newest_version").asLong())
                    .isEqualTo(6);
        }
    }
}
