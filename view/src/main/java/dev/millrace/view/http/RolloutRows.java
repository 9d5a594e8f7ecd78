package dev.millrace.view.http;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.view.index.RunIndex;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/** Rollouts by properties: a list, or points of two numbers. */
public final class RolloutRows {
    private static final int MOST_ROWS = 500;
    private static final int POINTS = 4000;

    /** State of a rollout in the words of {@code millrace trace} and the order of the ledger. */
    public static final String STATE =
            "CASE WHEN refused IS NOT NULL THEN 'refused' WHEN dropped IS NOT NULL THEN 'dropped'"
                    + " WHEN step.version IS NOT NULL THEN CASE WHEN trained_tokens > 0 THEN 'trained' ELSE 'masked' END"
                    + " WHEN rollout.batch IS NOT NULL THEN 'waits for its step' WHEN trajectory_offset IS NOT NULL THEN 'waits for its batch'"
                    + " ELSE 'waits to be scored and joined' END";

    public static final String FROM =
            " FROM rollout LEFT JOIN step ON step.epoch = rollout.epoch AND step.batch = rollout.batch";

    /** Version at step start minus oldest sampling version; before the step, as expected by the batch. */
    public static final String STALENESS =
            "CASE WHEN step.version IS NOT NULL THEN step.version - (1 - step.starved) - version_min ELSE staleness END";

    /** Why it was refused or dropped, or the stage that masked its last token. */
    public static final String REASON = "coalesce(refused, dropped, CASE WHEN trained_tokens = 0 THEN masked_by END)";

    /** Queryable columns by the page's names. */
    private static final Map<String, String> COLUMNS = new LinkedHashMap<>();

    static {
        COLUMNS.put("id", "id");
        COLUMNS.put("group", "grp");
        COLUMNS.put("sample", "sample");
        COLUMNS.put("ordinal", "ordinal");
        COLUMNS.put("generator", "generator");
        COLUMNS.put("version", "version_max");
        COLUMNS.put("oldest_version", "version_min");
        COLUMNS.put("reward", "reward");
        COLUMNS.put("tokens", "tokens");
        COLUMNS.put("policy_tokens", "policy_tokens");
        COLUMNS.put("prompt_tokens", "prompt_tokens");
        COLUMNS.put("finish", "finish");
        COLUMNS.put("seconds", "(rollout.finished_ms - rollout.started_ms) / 1000.0");
        COLUMNS.put("finished_ms", "rollout.finished_ms");
        COLUMNS.put("ratio", "log_ratio");
        COLUMNS.put("staleness", STALENESS);
        COLUMNS.put("batch", "rollout.batch");
        COLUMNS.put("advantage", "advantage");
        COLUMNS.put("trained_tokens", "trained_tokens");
        COLUMNS.put("state", STATE);
        COLUMNS.put("reason", REASON);
        COLUMNS.put("prompt_text", "prompt_text");
        COLUMNS.put("text", "text");
    }

    private RolloutRows() {}

    private static final class Where {
        private final List<String> conditions = new ArrayList<>(List.of("tokens IS NOT NULL"));
        private final List<Object> values = new ArrayList<>();

        Where(Map<String, String> query) {
            query.forEach((name, value) -> {
                if (name.equals("contains") && !value.isEmpty()) {
                    conditions.add(
                            "instr(lower(coalesce(prompt_text, '') || char(10) || coalesce(text, '')), lower(?)) > 0");
                    values.add(value);
                    return;
                }
                String column = name.replaceFirst("\\.(from|to)$", "");
                String expression = COLUMNS.get(column);
                if (expression == null || value.isEmpty()) {
                    return;
                }
                boolean isNumber = value.matches("-?\\d{1,15}(\\.\\d{1,15})?");
                conditions.add(
                        expression + (name.endsWith(".from") ? " >= ?" : name.endsWith(".to") ? " <= ?" : " = ?"));
                values.add(
                        isNumber && !column.equals("group") && !column.equals("id")
                                ? (Object) Double.valueOf(value)
                                : value);
            });
        }

        String text() {
            return " WHERE " + String.join(" AND ", conditions);
        }
    }

    /**
     * @param query conditions by column such as {@code state=trained}, {@code reward.from=0.5}, {@code
     *     contains=carry}; {@code sort} (default: newest trained first), {@code down=1} for descending, {@code limit},
     *     {@code offset}
     */
    public static ObjectNode list(RunIndex index, Map<String, String> query) {
        Where where = new Where(query);
        String sort = COLUMNS.get(query.getOrDefault("sort", ""));
        String order = sort == null
                ? "(step.version IS NOT NULL AND trained_tokens > 0) DESC, rollout.batch DESC, ordinal DESC"
                : sort + (query.getOrDefault("down", "0").equals("1") ? " DESC" : "") + ", ordinal";
        int limit = Math.max(1, Math.min(MOST_ROWS, number(query.getOrDefault("limit", ""), 50)));
        int offset = Math.max(0, number(query.getOrDefault("offset", ""), 0));
        ObjectNode json = JsonNodeFactory.instance.objectNode();
        index.read("SELECT count(*)" + FROM + where.text(), where.values, row -> json.put("count", row.getLong(1)));
        List<Object> values = new ArrayList<>(where.values);
        values.add(limit);
        values.add(offset);
        json.putArray("rows")
                .addAll(index.objects(
                        "SELECT " + selected() + ", 'rollouts-' || rollout.partition || '@' || rollout.offset AS place"
                                + FROM + where.text() + " ORDER BY " + order + ", sample LIMIT ? OFFSET ?",
                        values));
        return json;
    }

    private static String selected() {
        StringBuilder text = new StringBuilder();
        COLUMNS.forEach((name, expression) -> text.append(text.isEmpty() ? "" : ", ")
                .append(expression)
                .append(" AS \"")
                .append(name)
                .append('"'));
        return text.toString();
    }

    /** Two numbers and state per rollout, thinned over the run. */
    public static Optional<ObjectNode> points(RunIndex index, Map<String, String> query) {
        String x = COLUMNS.get(query.getOrDefault("x", "tokens"));
        String y = COLUMNS.get(query.getOrDefault("y", "reward"));
        if (x == null || y == null) {
            return Optional.empty();
        }
        Where where = new Where(query);
        ObjectNode json = JsonNodeFactory.instance.objectNode();
        long[] count = new long[1];
        index.read("SELECT count(*)" + FROM + where.text(), where.values, row -> count[0] = row.getLong(1));
        long every = Math.max(1, (count[0] + POINTS - 1) / POINTS);
        List<Object> values = new ArrayList<>(where.values);
        values.add(every);
        ArrayNode points = json.put("count", count[0]).put("every", every).putArray("points");
        index.read(
                "SELECT id, " + x + " AS x, " + y + " AS y, " + STATE + FROM + where.text()
                        + " AND (rollout.partition * 7919 + rollout.offset) % ? = 0 AND x IS NOT NULL AND y IS NOT NULL",
                values,
                row -> points.addArray()
                        .add(row.getDouble(2))
                        .add(row.getDouble(3))
                        .add(row.getString(4))
                        .add(row.getString(1)));
        return Optional.of(json);
    }

    /** States with reasons, and generators. */
    public static ObjectNode choices(RunIndex index) {
        ObjectNode json = JsonNodeFactory.instance.objectNode();
        json.putArray("states")
                .addAll(index.objects(
                        "SELECT " + STATE + " AS state, " + REASON + " AS reason, count(*) AS count" + FROM
                                + " WHERE tokens IS NOT NULL GROUP BY state, reason ORDER BY 3 DESC",
                        List.of()));
        ArrayNode generators = json.putArray("generators");
        index.read(
                "SELECT DISTINCT generator FROM rollout WHERE generator IS NOT NULL ORDER BY 1 LIMIT 50",
                List.of(),
                row -> generators.add(row.getString(1)));
        return json;
    }

    private static int number(String text, int otherwise) {
        return !text.matches("\\d{1,9}") ? otherwise : Integer.parseInt(text);
    }
}
