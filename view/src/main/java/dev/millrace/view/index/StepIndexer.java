package dev.millrace.view.index;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.schemas.StepEntry;
import dev.millrace.schemas.TrainingStep;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.jspecify.annotations.Nullable;

/** The steps of the training log, as the page draws them, and what a step said last of its batch's entries. */
final class StepIndexer {
    private static final ObjectMapper JSON = new ObjectMapper();

    private final OwnRecords records;

    StepIndexer(OwnRecords records) {
        this.records = records;
    }

    /** What a step has said of an entry: tokens trained on, and the stage that masked; null for none. */
    record LastWord(int trainedTokens, @Nullable String maskedBy) {}

    /** @return whether the step is new */
    boolean step(ConsumerRecord<byte[], byte[]> record, IndexStatements statements) throws SQLException {
        Optional<TrainingStep> decoded = records.decoded(record, TrainingStep.class, TrainingStep::getRunId);
        if (decoded.isEmpty()) {
            return false;
        }
        TrainingStep step = decoded.get();
        List<StepEntry> entries = step.getEntries();
        int known = statements.run(
                "INSERT INTO step(epoch, batch, version, starved, started_ms, finished_ms, partition, offset, entries, json)"
                        + " VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
                step.getEpoch(),
                step.getBatchId(),
                step.getVersion(),
                step.getStarved() ? 1 : 0,
                step.getStartedAtMs(),
                step.getFinishedAtMs(),
                record.partition(),
                record.offset(),
                entries == null ? null : lastWords(entries),
                json(step));
        if (known > 0 && entries != null) {
            for (int e = 0; e < entries.size(); e++) {
                statements.run(
                        "UPDATE rollout SET trained_tokens = ?, masked_by = ? WHERE batch = ? AND entry = ? AND epoch = ?",
                        entries.get(e).getTrainedTokens(),
                        entries.get(e).getMaskedBy(),
                        step.getBatchId(),
                        e,
                        step.getEpoch());
            }
        }
        return known > 0;
    }

    private static String json(TrainingStep step) {
        ObjectNode json = JSON.createObjectNode()
                .put("batch", step.getBatchId())
                .put("version", step.getVersion())
                .put("reward", step.getRewardMean())
                .put("staleness_mean", step.getStalenessMean())
                .put("staleness_max", step.getStalenessMax())
                .put("staleness_in_flight", step.getStalenessInFlightMean())
                .put("staleness_in_queue", step.getStalenessInQueueMean())
                .put("ess", step.getStarved() ? null : step.getEssRatio())
                .put("ess_truncated", step.getStarved() ? null : step.getEssRatioTruncated())
                .put("second_moment", step.getSecondMoment())
                .put("second_moment_trained", step.getSecondMomentTrained())
                .put("learning_rate", step.getLearningRate())
                .put("rollouts_trained", step.getRolloutsTrained())
                .put("rollouts_masked", step.getRolloutsMasked())
                .put("tokens_trained", step.getTokensTrained())
                .put("tokens_trainable", step.getTokensTrainable())
                .put("starved", step.getStarved())
                .put("started_ms", step.getStartedAtMs())
                .put("finished_ms", step.getFinishedAtMs());
        ObjectNode metrics = json.putObject("metrics");
        step.getMetrics().forEach((name, value) -> {
            if (Double.isFinite(value)) {
                metrics.put(name, value);
            }
        });
        return text(json);
    }

    private static String lastWords(List<StepEntry> entries) {
        ArrayNode array = JSON.createArrayNode();
        entries.forEach(entry -> array.addArray().add(entry.getTrainedTokens()).add(entry.getMaskedBy()));
        return text(array);
    }

    private static String text(JsonNode json) {
        try {
            return JSON.writeValueAsString(json);
        } catch (JsonProcessingException e) {
            throw new IllegalStateException("numbers and names cannot be written as JSON", e);
        }
    }

    /** What the step on a batch has said of its entries; none where it let the batch's word stand. */
    static List<LastWord> lastWords(IndexStatements statements, int epoch, long batchId) throws SQLException {
        String entries = statements.text("SELECT entries FROM step WHERE epoch = ? AND batch = ?", epoch, batchId);
        if (entries == null) {
            return List.of();
        }
        try {
            List<LastWord> words = new ArrayList<>();
            JSON.readTree(entries)
                    .forEach(word -> words.add(new LastWord(
                            word.get(0).asInt(),
                            word.get(1).isNull() ? null : word.get(1).asText())));
            return words;
        } catch (JsonProcessingException e) {
            throw new IllegalStateException("the index holds what it did not write", e);
        }
    }
}
