package dev.millrace.view.index;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.millrace.runtime.config.MillraceConfig;
import dev.millrace.view.http.CourseAnswer;
import dev.millrace.view.http.CourseAnswer.StepsAnswer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class LongRunTest {
    private static final int STEPS = 10_000;

    @TempDir
    private Path folder;

    @Test
    void shouldThinTheStepsOfALongRunButNotTheNewest() throws Exception {
        try (RunIndex index = RunIndex.open(folder)) {
            index.write(statements -> {
                for (int batch = 0; batch < STEPS; batch++) {
                    statements.run(
                            "INSERT INTO step(epoch, batch, version, json) VALUES(0, ?, ?, ?)",
                            batch,
                            batch + 1,
                            "{\"batch\":" + batch + ",\"tokens_trained\":2}");
                }
            });
            JsonNode answer = new ObjectMapper().readTree(StepsAnswer.of(index, 0, -1));
            assertThat(answer.path("all").asInt()).isEqualTo(STEPS);
            assertThat(answer.path("every").asInt()).isEqualTo(5);
            List<Integer> batches = new ArrayList<>();
            answer.path("steps").forEach(step -> batches.add(step.path("batch").asInt()));
            assertThat(batches).isSorted().doesNotHaveDuplicates().hasSize(2000 + 48);
            assertThat(batches.subList(batches.size() - 60, batches.size()))
                    .as("the newest, one after the other")
                    .startsWith(STEPS - 60)
                    .endsWith(STEPS - 1);
            JsonNode newest = new ObjectMapper().readTree(StepsAnswer.newest(index, 0));
            assertThat(newest.path("all").asInt()).isEqualTo(STEPS);
            assertThat(newest.path("steps")).hasSize(60);
            assertThat(newest.path("steps").get(59).path("batch").asInt()).isEqualTo(STEPS - 1);
            JsonNode course = CourseAnswer.of(index, 0, MillraceConfig.defaults());
            assertThat(course.path("tokens")).as("a sum for each of them").hasSize(batches.size());
            assertThat(course.path("step")).hasSize(batches.size());
            assertThat(course.path("tokens").get(batches.size() - 1).asInt()).isEqualTo(2 * STEPS);
        }
    }
}
