package dev.millrace.cli.run;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.schemas.BatchEntry;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.RecordedBaseline;
import dev.millrace.schemas.StageReport;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A run without groups: each rollout is compared with earlier batches of its prompt. It learns, and its record explains it. */
class LoneRolloutsIT {
    private static final double GOAL = 0.3;
    /** Reward of a policy that guesses each digit. */
    private static final double CHANCE = 0.1;

    private static final int PROMPTS = 100;

    @TempDir
    private static Path folder;

    private static void run(String... arguments) throws Exception {
        try (TrainProcess process = TrainProcess.start(folder, List.of(arguments))) {
            int status = process.awaitExit(TrainProcess.PATIENCE);
            List<String> printed = new ArrayList<>(process.out());
            printed.addAll(process.err());
            assertThat(status).as(String.join("\n", printed)).isZero();
        }
    }

    @Test
    void shouldLearnWithoutGroupsAndBeReplayedAsRecorded() throws Exception {
        Files.writeString(folder.resolve("lone.yaml"), """
                run: {id: lone}
                task: {kind: inc, digits: 2}
                admission: {group_size: 1, batch_sequences: 128}
                topology:
                  groups: {min_size: 1}
                  batch: {sequences: 128}
                algorithm:
                  advantage: value_tracker
                """);
        run(
                "train",
                "--plain",
                "--config",
                "lone.yaml",
                "--run-dir",
                "run",
                "--seed",
                "3",
                "--set",
                "goal.mean_reward=" + GOAL,
                "--set",
                "goal.max_seconds=600");
        List<LearnerBatch> batches;
        try (LoggedRun run = LoggedRun.in(folder.resolve("run"), "lone")) {
            batches = run.records(run.topics().batches(), LearnerBatch.class);
        }

        assertThat(batches.get(0).getEntries())
                .allSatisfy(entry -> assertThat(baseline(entry)).isEqualTo(0.5));
        LearnerBatch last = batches.get(batches.size() - 1);
        assertThat(last.getEntries().stream().map(BatchEntry::getGroupId)).doesNotHaveDuplicates();
        double tracked =
                mean(last.getEntries().stream().map(LoneRolloutsIT::baseline).toList());
        assertThat(tracked).as("success rates behind the goal of %s", GOAL).isBetween(CHANCE, GOAL + CHANCE);
        Map<String, Double> seen = new HashMap<>();
        batches.forEach(batch -> batch.getEntries()
                .forEach(entry ->
                        seen.merge(Objects.requireNonNull(entry.getBaseline()).getKey(), 1.0, Double::sum)));
        assertThat(seen.size()).isLessThanOrEqualTo(PROMPTS);
        assertThat(memory(last).getValues()).containsEntry("keys", (double) seen.size());

        run("replay", "--run-dir", "run");
        run("replay", "--run-dir", "run", "--retrain", "--to-version", "2", "--evaluation-prompts", "0");
    }

    private static double baseline(BatchEntry entry) {
        RecordedBaseline of = Objects.requireNonNull(entry.getBaseline());
        return of.getValue();
    }

    private static double mean(List<Double> values) {
        return values.stream().mapToDouble(Double::doubleValue).average().orElseThrow();
    }

    private static StageReport memory(LearnerBatch batch) {
        return batch.getStages().stream()
                .filter(report -> report.getStage().equals("memory"))
                .findFirst()
                .orElseThrow();
    }
}
