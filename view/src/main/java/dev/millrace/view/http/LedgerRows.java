package dev.millrace.view.http;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.audit.ledger.Account;
import dev.millrace.audit.ledger.LedgerReader;
import dev.millrace.log.scan.RunRecords;
import dev.millrace.view.index.RunIndex;
import java.time.Duration;
import java.util.List;

/** Outcomes of the rollouts from the index; the full check reads the whole log. */
public final class LedgerRows {
    private static final Duration PATIENCE = Duration.ofSeconds(30);
    private static final int LETTERS = 200;
    private static final int BINS = 16;

    private LedgerRows() {}

    public static ObjectNode of(RunIndex index) {
        ObjectNode json = JsonNodeFactory.instance.objectNode();
        ArrayNode ends = json.putArray("ends");
        index.read(
                "SELECT " + RolloutRows.STATE
                        + " AS state, coalesce(refused, dropped, CASE WHEN trained_tokens = 0 THEN masked_by END) AS reason,"
                        + " count(*), avg(reward), avg(reward * reward), avg(policy_tokens), avg(policy_tokens * policy_tokens),"
                        + " sum(policy_tokens), sum(trained_tokens), min(rollout.finished_ms)" + RolloutRows.FROM
                        + " WHERE tokens IS NOT NULL AND redriven IS NULL GROUP BY state, reason ORDER BY 3 DESC",
                List.of(),
                row -> {
                    double reward = row.getDouble(4);
                    double tokens = row.getDouble(6);
                    ends.addObject()
                            .put("state", row.getString(1))
                            .put("reason", row.getString(2))
                            .put("rollouts", row.getLong(3))
                            .put("reward_mean", reward)
                            .put("reward_sd", Math.sqrt(Math.max(0, row.getDouble(5) - reward * reward)))
                            .put("tokens_mean", tokens)
                            .put("tokens_sd", Math.sqrt(Math.max(0, row.getDouble(7) - tokens * tokens)))
                            .put("tokens", row.getLong(8))
                            .put("trained_tokens", row.getLong(9))
                            .put("oldest_ms", row.getLong(10));
                });
        json.put(
                "redriven",
                index.numbers("SELECT count(*) FROM letter WHERE redriven >= 0").get(0));
        histogram(json, index, "reward", "reward");
        histogram(json, index, "policy_tokens", "tokens");
        return json;
    }

    /** Trained and other rollouts over one scale. */
    private static void histogram(ObjectNode json, RunIndex index, String column, String name) {
        double[] range = new double[2];
        index.read(
                "SELECT min(" + column + "), max(" + column + ") FROM rollout WHERE tokens IS NOT NULL",
                List.of(),
                row -> {
                    range[0] = row.getDouble(1);
                    range[1] = row.getDouble(2);
                });
        double width = range[1] > range[0] ? (range[1] - range[0]) / BINS : 1;
        ObjectNode histogram =
                json.putObject(name + "_histogram").put("from", range[0]).put("width", width);
        ArrayNode bins = histogram.putArray("bins");
        index.read(
                "SELECT min(" + (BINS - 1) + ", CAST((" + column + " - ?) / ? AS INTEGER)) AS bin, " + RolloutRows.STATE
                        + " AS state, count(*)" + RolloutRows.FROM + " WHERE tokens IS NOT NULL AND " + column
                        + " IS NOT NULL GROUP BY bin, state ORDER BY bin",
                List.of(range[0], width),
                row -> bins.addArray().add(row.getLong(1)).add(row.getString(2)).add(row.getLong(3)));
    }

    public static ObjectNode letters(RunIndex index, String options) {
        ObjectNode json = JsonNodeFactory.instance.objectNode().put("options", options);
        json.putArray("reasons")
                .addAll(index.objects(
                        "SELECT reason, sum(redriven < 0) AS refused, sum(redriven >= 0) AS redriven FROM letter GROUP BY reason"
                                + " ORDER BY 2 DESC",
                        List.of()));
        json.putArray("letters")
                .addAll(index.objects(
                        "SELECT 'dead-letters-' || partition || '@' || offset AS place, offset AS letter, written_ms, reason, field,"
                                + " message, source, rollout, redriven FROM letter ORDER BY written_ms DESC LIMIT "
                                + LETTERS,
                        List.of()));
        return json;
    }

    public static ObjectNode check(RunRecords records) {
        Account account = new LedgerReader(records).read(PATIENCE);
        ObjectNode json = JsonNodeFactory.instance
                .objectNode()
                .put("adds_up", account.balance().addsUp())
                .put("generated", account.balance().all().generated())
                .put("trained", account.balance().all().trained())
                .put("contradictions", account.balance().contradictionCount());
        account.balance().contradictions().forEach(json.putArray("sentences")::add);
        account.balance().gaps().forEach(json.putArray("gaps")::add);
        return json;
    }
}
