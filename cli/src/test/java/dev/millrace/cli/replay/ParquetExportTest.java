package dev.millrace.cli.replay;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.cli.Main;
import dev.millrace.cli.correct.ParquetRows;
import dev.millrace.replay.archive.ArchivedRun;
import dev.millrace.replay.archive.RecordCursor;
import dev.millrace.schemas.BatchEntry;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.TrainingStep;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.packed.PackedFloats;
import dev.millrace.schemas.packed.PackedInts;
import dev.millrace.schemas.packed.PackedMask;
import dev.millrace.schemas.serde.AvroSerde;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.apache.avro.specific.SpecificRecord;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The tables of a recorded archive have its records, each once. AuditIT compares them with the ledger and the trace. */
class ParquetExportTest {
    private static final Path ARCHIVE = Path.of("src", "test", "resources", "archives", "contract-3");

    @TempDir
    private static Path folder;

    private static Said first;

    private record Said(int status, String out, String err) {}

    private static Said export(String... arguments) {
        StringWriter out = new StringWriter();
        StringWriter err = new StringWriter();
        List<String> all = new ArrayList<>(List.of("export"));
        all.addAll(List.of(arguments));
        int status = Main.commandLine()
                .setOut(new PrintWriter(out))
                .setErr(new PrintWriter(err))
                .execute(all.toArray(String[]::new));
        return new Said(status, out.toString(), err.toString());
    }

    @BeforeAll
    static void exportOnce() {
        first = export(
                "--archive",
                ARCHIVE.toString(),
                "--parquet",
                "--to",
                folder.resolve("tables").toString());
        assertThat(first.status).as(first.err).isZero();
    }

    private static List<ObjectNode> rows(String table) throws IOException {
        List<ObjectNode> rows = new ArrayList<>();
        try (ParquetRows file = new ParquetRows(folder.resolve("tables").resolve(table))) {
            for (ObjectNode row = file.next(); row != null; row = file.next()) {
                rows.add(row);
            }
        }
        return rows;
    }

    private static <T extends SpecificRecord> List<T> records(String topic, Class<T> type) {
        List<T> records = new ArrayList<>();
        try (ArchivedRun run = new ArchivedRun(ARCHIVE)) {
            var deserializer = AvroSerde.of(type, run.registry()).deserializer();
            String name = run.topics().prefix() + topic;
            run.partitions(name).forEach(partition -> {
                try (RecordCursor cursor = run.read(partition, 0)) {
                    for (var next = cursor.next(); next.isPresent(); next = cursor.next()) {
                        records.add(deserializer.deserialize(name, next.get().value()));
                    }
                }
            });
        }
        return records;
    }

    @Test
    void writesEveryRolloutOnceWithItsOutcome() throws IOException {
        Map<String, Rollout> recorded = records("rollouts", Rollout.class).stream()
                .collect(Collectors.toMap(Rollout::getRolloutId, rollout -> rollout));
        List<ObjectNode> rows = rows("rollouts.parquet");

        assertThat(first.out)
                .isEqualTo("372 rollouts, 1,860 tokens and 6 steps of run recorded are in " + folder.resolve("tables")
                        + ": rollouts.parquet, tokens.parquet, steps.parquet" + System.lineSeparator());
        assertThat(rows)
                .extracting(row -> row.path("rollout_id").asText())
                .containsExactlyInAnyOrderElementsOf(recorded.keySet());
        assertThat(rows.stream()
                        .collect(Collectors.groupingBy(
                                row -> row.path("outcome").asText() + " "
                                        + row.path("reason").asText(),
                                Collectors.counting())))
                .isEqualTo(Map.of(
                        "trained ",
                        158L,
                        "masked rollout_correction",
                        34L,
                        "dropped zero-variance",
                        84L,
                        "waits for its step ",
                        96L));
        for (ObjectNode row : rows) {
            Rollout rollout = recorded.get(row.path("rollout_id").asText());
            assertThat(row.path("group_id").asText()).isEqualTo(rollout.getGroupId());
            assertThat(row.path("reward").doubleValue()).isEqualTo(rollout.getReward());
            rollout.getRewardComponents()
                    .forEach((name, value) -> assertThat(
                                    row.path("reward_components").path(name).doubleValue())
                            .isEqualTo(value));
            assertThat(row.path("newest_version").longValue())
                    .isEqualTo(rollout.getVersionSpans()
                            .get(rollout.getVersionSpans().size() - 1)
                            .getVersion());
            assertThat(ints(row.path("response_tokens"))).isEqualTo(PackedInts.toArray(rollout.getResponseTokens()));
            assertThat(row.path("finished_at_ms").longValue()).isEqualTo(rollout.getFinishedAtMs());
        }
        ObjectNode one = rows.stream()
                .filter(row -> row.path("rollout_id").asText().equals("0-9/0"))
                .findFirst()
                .orElseThrow();
        assertThat(one.path("prompt").asText()).isEqualTo("<bos>11896<sep>");
        assertThat(one.path("response").asText()).isEqualTo("<eos><eos><higher><found>7");
    }

    private static int[] ints(JsonNode list) {
        int[] values = new int[list.size()];
        for (int i = 0; i < values.length; i++) {
            values[i] = list.get(i).intValue();
        }
        return values;
    }

    @Test
    void writesEveryTokenOnceAsRecorded() throws IOException {
        Map<String, Rollout> rollouts = records("rollouts", Rollout.class).stream()
                .collect(Collectors.toMap(Rollout::getRolloutId, rollout -> rollout));
        Map<String, Trajectory> trajectories = records("trajectories", Trajectory.class).stream()
                .collect(Collectors.toMap(Trajectory::getRolloutId, trajectory -> trajectory));
        Map<String, BatchEntry> entries = new HashMap<>();
        records("batches", LearnerBatch.class)
                .forEach(batch -> batch.getEntries().forEach(entry -> entries.put(entry.getRolloutId(), entry)));
        Map<String, Integer> next = new HashMap<>();
        for (ObjectNode row : rows("tokens.parquet")) {
            String id = row.path("rollout_id").asText();
            int position = row.path("position").intValue();
            Rollout rollout = rollouts.get(id);
            Trajectory trajectory = trajectories.get(id);
            assertThat(position).isEqualTo(next.merge(id, 1, Integer::sum) - 1);
            assertThat(row.path("token_id").intValue())
                    .isEqualTo(PackedInts.get(rollout.getResponseTokens(), position));
            assertThat(row.path("mask").intValue()).isEqualTo(PackedMask.get(rollout.getMask(), position));
            assertThat(row.path("behavior_log_prob").floatValue())
                    .isEqualTo(PackedFloats.get(rollout.getBehaviorLogProbs(), position));
            assertThat(row.path("old_log_prob").floatValue())
                    .isEqualTo(PackedFloats.get(trajectory.getOldLogProbs(), position));
            assertThat(row.path("proximal_log_prob").floatValue())
                    .isEqualTo(PackedFloats.get(trajectory.getProximalLogProbs(), position));
            assertThat(rollout.getVersionSpans())
                    .anyMatch(span -> span.getStart() <= position
                            && position < span.getEnd()
                            && span.getVersion() == row.path("version").longValue());
            BatchEntry entry = entries.get(id);
            assertThat(row.has("batch_mask")).isEqualTo(entry != null);
            if (entry != null) {
                ByteBuffer mask = entry.getMask() == null ? rollout.getMask() : entry.getMask();
                assertThat(row.path("batch_mask").intValue()).isEqualTo(PackedMask.get(mask, position));
                assertThat(row.path("advantage").doubleValue()).isEqualTo(entry.getAdvantage());
            }
            assertThat(row.has("weight")).as("the run did not record them").isFalse();
        }
        assertThat(next).hasSize(372);
        rollouts.forEach(
                (id, rollout) -> assertThat(next.get(id)).isEqualTo(PackedInts.length(rollout.getResponseTokens())));
    }

    @Test
    void writesEveryStepUnrounded() throws IOException {
        List<TrainingStep> recorded = records("training-log", TrainingStep.class);
        List<ObjectNode> rows = rows("steps.parquet");

        assertThat(rows).hasSameSizeAs(recorded);
        for (int i = 0; i < rows.size(); i++) {
            ObjectNode row = rows.get(i);
            TrainingStep step = recorded.get(i);
            assertThat(row.path("batch_id").longValue()).isEqualTo(step.getBatchId());
            assertThat(row.path("version").longValue()).isEqualTo(step.getVersion());
            assertThat(row.path("reward").doubleValue()).isEqualTo(step.getRewardMean());
            assertThat(row.path("staleness_max").longValue()).isEqualTo(step.getStalenessMax());
            assertThat(row.path("tokens_trained").longValue()).isEqualTo(step.getTokensTrained());
            assertThat(row.path("weights_sha256").asText()).isEqualTo(step.getWeightsSha256());
            step.getMetrics()
                    .forEach((name, value) ->
                            assertThat(row.path(name).doubleValue()).as(name).isEqualTo(value));
        }
    }

    @Test
    void agreesAcrossTheTables() throws IOException {
        Map<Long, Long> trained = new HashMap<>();
        Map<Long, Double> reward = new HashMap<>();
        rows("rollouts.parquet").forEach(row -> {
            if (row.has("batch_id")) {
                trained.merge(
                        row.path("batch_id").longValue(),
                        row.path("trained_tokens").longValue(),
                        Long::sum);
                reward.merge(
                        row.path("batch_id").longValue(), row.path("reward").doubleValue() / 32, Double::sum);
            }
        });
        for (ObjectNode step : rows("steps.parquet")) {
            long batch = step.path("batch_id").longValue();
            assertThat(trained.get(batch)).isEqualTo(step.path("tokens_trained").longValue());
            assertThat(reward.get(batch)).isCloseTo(step.path("reward").doubleValue(), within(1e-12));
        }
    }

    @Test
    void refusesWhatItCannotDo() throws IOException {
        String archive = ARCHIVE.toString();
        String there = folder.resolve("tables").toString();
        String fresh = folder.resolve("fresh").toString();

        assertThat(export("--archive", archive, "--parquet", "--to", there).err)
                .isEqualTo("millrace: " + there + " is not empty; give a new or empty folder to export to"
                        + System.lineSeparator());
        assertThat(export("--archive", archive, "--to", fresh).err).contains("--archive is read with --parquet");
        assertThat(export("--archive", archive, "--run", "r", "--parquet", "--to", fresh).err)
                .contains("--archive names the run");
        assertThat(export("--archive", archive, "--parquet", "--from-version", "2", "--to", fresh).err)
                .contains("--parquet writes all of a run");
        assertThat(Files.exists(Path.of(fresh))).isFalse();
    }
}
