package dev.millrace.view.http;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.view.index.RunIndex;
import java.util.List;

/** How stale the rollouts were that the newest steps trained on. */
public final class StalenessAnswer {
    private static final int STEPS = 8;

    private StalenessAnswer() {}

    /**
     * Rollouts by the staleness of their oldest token at the step, over the newest steps that the index has, without those that were masked: version
     * at the start of the step less the oldest version that sampled a token.
     */
    public static ObjectNode of(RunIndex index, int epoch) {
        List<Long> batches = index.numbers(
                "SELECT batch FROM batch JOIN step USING(epoch, batch) WHERE epoch = ? ORDER BY batch DESC LIMIT "
                        + STEPS,
                epoch);
        ObjectNode json = JsonNodeFactory.instance.objectNode();
        ArrayNode histogram = json.putArray("histogram");
        if (batches.isEmpty()) {
            return json;
        }
        long from = batches.get(batches.size() - 1);
        json.put("from_batch", from).put("to_batch", batches.get(0));
        index.read(
                "SELECT step.version - (1 - step.starved) - rollout.version_min, count(*) FROM rollout JOIN step USING(epoch, batch)"
                        + " WHERE rollout.epoch = ? AND batch BETWEEN ? AND ? AND trained_tokens > 0 AND version_min IS NOT NULL"
                        + " GROUP BY 1 ORDER BY 1",
                List.of(epoch, from, batches.get(0)),
                row -> histogram.addArray().add(row.getLong(1)).add(row.getLong(2)));
        return json;
    }
}
