package dev.millrace.view.http;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.runtime.config.MillraceConfig;
import dev.millrace.runtime.report.KnownFigures;
import dev.millrace.runtime.report.StepFigure;
import dev.millrace.view.RecordedArchive;
import dev.millrace.view.follow.RunSource;
import dev.millrace.view.follow.ViewedRuns;
import dev.millrace.view.http.CourseAnswer.HeldOutCourse;
import dev.millrace.view.index.RunIndex;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class CourseAnswerTest {
    @TempDir
    private Path folder;

    @Test
    void shouldHaveFiguresThatStepsCsvHasUnderTheSameNames() {
        assertThat(KnownFigures.all()).extracting(StepFigure::key).containsAll(CourseAnswer.COLUMNS);
    }

    @Test
    void shouldHaveWhateverThePageOfRunsOffersToLayOverEachOther() throws Exception {
        String page = Files.readString(Path.of("page", "src", "pages", "runs.tsx"));
        String metrics = page.substring(page.indexOf("const METRICS"), page.indexOf("const OVERS"));
        List<String> offered = new ArrayList<>();
        for (Matcher key = Pattern.compile("\\[\"([a-z_]+)\",").matcher(metrics); key.find(); ) {
            offered.add(key.group(1));
        }
        assertThat(offered).hasSizeGreaterThan(8).contains(HeldOutCourse.NAME);
        offered.remove(HeldOutCourse.NAME);
        assertThat(CourseAnswer.COLUMNS).containsAll(offered);
    }

    @Test
    void shouldHaveANumberForEveryStepOfAnIndexThatTheTrainingLogHas() throws Exception {
        try (ViewedRuns runs = RecordedArchive.runs(folder)) {
            RunIndex index = RecordedArchive.indexed(runs).index().orElseThrow();
            ObjectNode course = CourseAnswer.of(index, 0, MillraceConfig.defaults());
            for (String name : CourseAnswer.COLUMNS) {
                assertThat(course.path(name)).as(name).hasSize(6);
                assertThat(course.path(name))
                        .as(name)
                        .allSatisfy(value -> assertThat(value.isNumber())
                                .as(name + " " + course.path(name))
                                .isTrue());
            }
            assertThat(course.at("/settings/run.seed").asText())
                    .isEqualTo(String.valueOf(MillraceConfig.defaults().run().seed()));
            assertThat(course.path("step").get(5).asInt()).isEqualTo(6);
            double trained = index.numbers("SELECT json_extract(json, '$.tokens_trained') FROM step ORDER BY batch")
                    .get(5);
            double trainable = index.numbers("SELECT json_extract(json, '$.tokens_trainable') FROM step ORDER BY batch")
                    .get(5);
            assertThat(course.path("trained_share").get(5).asDouble()).isEqualTo(trained / trainable);
        }
    }

    @Test
    void shouldReadTheTableThatARunLeaves() throws Exception {
        Files.writeString(folder.resolve("steps.csv"), """
                step,version,reward,tokens_trained,trained_share
                1,1,0.5,10,1.0
                2,2,,20,0.25
                """);
        ObjectNode course = CourseAnswer.of(folder).orElseThrow();
        assertThat(course.path("reward").toString()).isEqualTo("[0.5,null]");
        assertThat(course.path("trained_share").toString()).isEqualTo("[1.0,0.25]");
        assertThat(course.path("tokens").toString()).isEqualTo("[10.0,30.0]");
        assertThat(course.path("entropy")).as("which this table lacks").isEmpty();
    }

    @Test
    void shouldSayWhenARunBeganAndHowFarItCame() throws Exception {
        Files.writeString(folder.resolve("steps.csv"), "step,reward,started_at_ms,finished_at_ms\n");
        assertThat(CourseAnswer.ends(folder)).as("no step").isEmpty();
        Files.writeString(folder.resolve("steps.csv"), "step,reward,started_at_ms,finished_at_ms\n1,0.5,1000,2000\n");
        assertThat(CourseAnswer.ends(folder).orElseThrow().toString())
                .isEqualTo("{\"steps\":1.0,\"reward\":0.5,\"started_ms\":1000.0,\"finished_ms\":2000.0}");
        StringBuilder table = new StringBuilder("step,reward,started_at_ms,finished_at_ms\n");
        for (int step = 1; step <= 9000; step++) {
            table.append(step + ",0.25," + 1000 * step + "," + (1000 * step + 500) + "\n");
        }
        Files.writeString(folder.resolve("steps.csv"), table.toString());
        assertThat(CourseAnswer.ends(folder).orElseThrow().toString())
                .isEqualTo("{\"steps\":9000.0,\"reward\":0.25,\"started_ms\":1000.0,\"finished_ms\":9000500.0}");
    }

    @Test
    void shouldTellARunThatFailedToStartFromOneThatWasKilled() throws Exception {
        Files.writeString(folder.resolve("config.yaml"), """
                task: {kind: inc}
                model: {checkpoint: "models/small-1"}
                """);
        Files.writeString(folder.resolve(RunSource.ADDRESS), "127.0.0.1:1\n");
        RunSource run = new RunSource.Folder(folder);
        assertThat(RunFacts.of(run).path("state").asText()).isEqualTo("ended before its first step");
        assertThat(RunFacts.of(run).path("task_kind").asText()).isEqualTo("inc");
        assertThat(RunFacts.of(run).path("model").asText()).isEqualTo("small-1");
        assertThat(RunFacts.of(run).at("/course/started_ms").asLong()).isPositive();
        Files.writeString(folder.resolve("steps.csv"), "step,reward,started_at_ms,finished_at_ms\n1,0.5,1000,2000\n");
        assertThat(RunFacts.of(run).path("state").asText()).isEqualTo("killed");
        assertThat(RunFacts.of(run).at("/course/steps").asInt()).isEqualTo(1);
    }
}
