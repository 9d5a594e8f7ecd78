package dev.millrace.cli.run;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.cli.audit.RunInFolder;
import dev.millrace.schemas.BatchEntry;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.RecordedBaseline;
import dev.millrace.schemas.StageReport;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A run without groups: each rollout is compared with earlier batches of its prompt. It learns, and its record explains it. */
class LoneRolloutsIT {
    private static final double GOAL = 0.3;
    /** What the tracker expects of a prompt it has not seen; an untrained policy earns far less. */
    private static final double PRIOR = 0.5;

    private static final int PROMPTS = 100;

    @TempDir
    private static Path folder;

    private static void run(String... arguments) {
        List<String> all = new ArrayList<>(List.of(arguments));
        all.addAll(List.of("--run-dir", folder.resolve("run").toString()));
        RunInFolder.Said said = RunInFolder.said(all);
        assertThat(said.status()).as(said.toString()).isZero();
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
                folder.resolve("lone.yaml").toString(),
                "--seed",
                "3",
                "--set",
                "goal.mean_reward=" + GOAL,
                "--set",
                "goal.max_seconds=1800");
        List<LearnerBatch> batches;
        try (LoggedRun run = LoggedRun.in(folder.resolve("run"), "lone")) {
            batches = run.records(run.topics().batches(), LearnerBatch.class);
        }

        assertThat(batches.get(0).getEntries())
                .allSatisfy(entry -> assertThat(baseline(entry)).isEqualTo(PRIOR));
        LearnerBatch last = batches.get(batches.size() - 1);
        assertThat(last.getEntries().stream().map(BatchEntry::getGroupId)).doesNotHaveDuplicates();
        double[] known = batches.get(1).getEntries().stream()
                .mapToDouble(LoneRolloutsIT::baseline)
                .filter(value -> value != PRIOR)
                .toArray();
        assertThat(Arrays.stream(known).average().orElseThrow())
                .as("success rate of prompts that the first batch held")
                .isBetween(0.0, PRIOR);
        Map<String, Double> seen = new HashMap<>();
        batches.forEach(batch -> batch.getEntries()
                .forEach(entry ->
                        seen.merge(Objects.requireNonNull(entry.getBaseline()).getKey(), 1.0, Double::sum)));
        assertThat(seen.size()).isLessThanOrEqualTo(PROMPTS);
        assertThat(memory(last).getValues()).containsEntry("keys", (double) seen.size());

        run("replay");
        run("replay", "--retrain", "--to-version", "2", "--evaluation-prompts", "0");
    }

    private static double baseline(BatchEntry entry) {
        RecordedBaseline of = Objects.requireNonNull(entry.getBaseline());
        return of.getValue();
    }

    private static StageReport memory(LearnerBatch batch) {
        return batch.getStages().stream()
                .filter(report -> report.getStage().equals("memory"))
                .findFirst()
                .orElseThrow();
    }
}
