package dev.millrace.view.http;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.view.index.RunIndex;
import java.util.List;
import java.util.Optional;

/** A batch: its members, and what became of each. */
public final class BatchAnswer {
    private BatchAnswer() {}

    /**
     * The batch.
     *
     * @param batch its number; -1 for the newest that a step was taken on
     * @return empty if the index has no such batch
     */
    public static Optional<ObjectNode> of(RunIndex index, int epoch, long batch) {
        ObjectNode json = JsonNodeFactory.instance.objectNode();
        index.read(
                "SELECT batch.batch, assembled_version, expected_version, assembled_ms, batch.partition, batch.offset, step.version,"
                        + " step.partition, step.offset, step.finished_ms, step.starved FROM batch LEFT JOIN step USING(epoch, batch)"
                        + " WHERE epoch = ? AND (batch = ? OR ? < 0 AND step.version IS NOT NULL) ORDER BY batch DESC LIMIT 1",
                List.of(epoch, batch, batch),
                row -> {
                    json.put("batch", row.getLong(1))
                            .put("assembled_version", row.getLong(2))
                            .put("expected_version", row.getLong(3))
                            .put("assembled_ms", row.getLong(4))
                            .put("offset", row.getLong(6))
                            .put("place", "batches-" + row.getLong(5) + "@" + row.getLong(6));
                    if (row.getObject(7) != null) {
                        json.put("version", row.getLong(7))
                                .put("step_place", "training-log-" + row.getLong(8) + "@" + row.getLong(9))
                                .put("finished_ms", row.getLong(10))
                                .put("starved", row.getInt(11) == 1);
                    }
                });
        if (!json.has("batch")) {
            return Optional.empty();
        }
        json.put(
                "last",
                index.numbers("SELECT coalesce(max(batch), -1) FROM batch WHERE epoch = ?", epoch)
                        .get(0));
        index.read(
                "SELECT partition, offset, published_ms FROM version WHERE epoch = ? AND batch = ?",
                List.of(epoch, json.path("batch").asLong()),
                row -> json.putObject("published")
                        .put("place", "policy-versions-" + row.getLong(1) + "@" + row.getLong(2))
                        .put("published_ms", row.getLong(3)));
        ArrayNode entries = json.putArray("entries");
        index.read(
                "SELECT id, grp, reward, policy_tokens, advantage, staleness, trained_tokens, masked_by, log_ratio FROM rollout"
                        + " WHERE epoch = ? AND batch = ? ORDER BY entry",
                List.of(epoch, json.path("batch").asLong()),
                row -> entries.addObject()
                        .put("id", row.getString(1))
                        .put("group", row.getString(2))
                        .put("reward", row.getObject(3) == null ? null : row.getDouble(3))
                        .put("tokens", row.getObject(4) == null ? null : row.getInt(4))
                        .put("advantage", row.getDouble(5))
                        .put("staleness", row.getLong(6))
                        .put("trained_tokens", row.getInt(7))
                        .put("masked_by", row.getString(8))
                        .put("ratio", row.getObject(9) == null ? null : row.getDouble(9)));
        return Optional.of(json);
    }
}
