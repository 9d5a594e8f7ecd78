package dev.millrace.generator.environment.text;

import com.fasterxml.jackson.core.type.TypeReference;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.api.environment.FinishedResponse;
import dev.millrace.api.environment.RewardFunction;
import dev.millrace.api.environment.VerifiedReward;
import dev.millrace.policy.tokenizer.NumberExpression;
import java.util.HashMap;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Rewards a response by a Jinja expression, as in chat templates. Variables: {@code response} and {@code prompt} (texts), {@code tokens} (sampled by
 * the policy), {@code answer} (of the row, if it has one) and {@code row} (its other fields). The result is a number; true is 1
 * and false 0.
 *
 * @param expression such as {@code response.count('?') / 2}
 */
public record ExpressionReward(String expression) implements RewardFunction {
    private static final String NOTHING = "";
    private static final Set<String> NAMES = Set.of("response", "tokens", "prompt", "answer", "row");
    private static final ObjectMapper JSON = new ObjectMapper();
    /** By their texts, which are the run's and few; one is parsed once. */
    private static final Map<String, NumberExpression> PARSED = new ConcurrentHashMap<>();

    public ExpressionReward {
        if (!expression.equals(NOTHING)) {
            try {
                PARSED.computeIfAbsent(expression, text -> new NumberExpression(text, NAMES));
            } catch (IllegalArgumentException e) {
                throw new IllegalArgumentException("expression " + e.getMessage(), e);
            }
        }
    }

    /** An expression must be given; without one no prompt is judgeable. */
    public static ExpressionReward defaults() {
        return new ExpressionReward(NOTHING);
    }

    /** A policy may answer nothing, so the expression is tried on that. */
    @Override
    public void requireJudgeable(String environmentState) {
        if (expression.equals(NOTHING)) {
            throw new IllegalArgumentException("reward expression has no expression; give one,"
                    + " --set \"reward.expression=response.count('?') / 2\"");
        }
        try {
            parsed().of(values("", 0, "", environmentState));
        } catch (IllegalArgumentException e) {
            throw new IllegalArgumentException("of an empty response reward.expression " + e.getMessage(), e);
        }
    }

    private NumberExpression parsed() {
        return Objects.requireNonNull(PARSED.get(expression));
    }

    @Override
    public VerifiedReward reward(FinishedResponse response) {
        int sampled = 0;
        for (int i = 0; i < response.response().length(); i++) {
            sampled += response.response().byPolicy(i) ? 1 : 0;
        }
        try {
            double number = parsed().of(values(
                    response.text(),
                    sampled,
                    response.tokenizer().text(response.promptTokens()),
                    response.environmentState()));
            return new VerifiedReward(number, Map.of("failed", 0.0));
        } catch (IllegalArgumentException e) {
            return new VerifiedReward(0, Map.of("failed", 1.0)); // the same on every machine, and said in the record
        }
    }

    private static Map<String, Object> values(String response, int tokens, String prompt, String state) {
        ObjectNode row = RowState.parse(state);
        Map<String, Object> values = new HashMap<>();
        values.put("response", response);
        values.put("tokens", (long) tokens);
        values.put("prompt", prompt);
        values.put("row", JSON.convertValue(row, new TypeReference<Map<String, Object>>() {}));
        if (row.path("answer").isValueNode() && !row.path("answer").isNull()) {
            values.put("answer", JSON.convertValue(row.get("answer"), Object.class));
        }
        return values;
    }
}
