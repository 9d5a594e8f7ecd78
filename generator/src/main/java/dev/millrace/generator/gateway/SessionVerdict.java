package dev.millrace.generator.gateway;

import com.fasterxml.jackson.databind.JsonNode;
import dev.millrace.schemas.FinishReason;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.OptionalDouble;
import java.util.OptionalInt;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * What an agent says of its session at the end.
 *
 * @param reward empty where the run's own reward is to judge
 * @param components what it is made of, by name
 * @param turnRewards one for each turn of the branch that is trained on; empty where turns have none
 * @param status null where the session went well, and its last turn says how it ended
 * @param error what went wrong; null where nothing did
 * @param turn last turn of the branch that is trained on; empty for the newest turn
 */
record SessionVerdict(
        OptionalDouble reward,
        Map<String, Double> components,
        List<Double> turnRewards,
        @Nullable FinishReason status,
        @Nullable String error,
        OptionalInt turn) {
    private static final Set<String> KEYS =
            Set.of("reward", "reward_components", "turn_rewards", "status", "error", "turn");

    /** @throws RefusedCallException naming what is not as it should be */
    static SessionVerdict of(JsonNode body) {
        if (!body.isObject()) {
            throw RefusedCallException.invalid(null, "the body must be a JSON object");
        }
        for (Iterator<String> names = body.fieldNames(); names.hasNext(); ) {
            String name = names.next();
            if (!KEYS.contains(name)) {
                throw RefusedCallException.unsupported(name, name + " is no field here; there are " + KEYS);
            }
        }
        Map<String, Double> components = new HashMap<>();
        body.path("reward_components")
                .properties()
                .forEach(each ->
                        components.put(each.getKey(), finite(each.getValue(), "reward_components." + each.getKey())));
        List<Double> turns = new ArrayList<>();
        body.path("turn_rewards").forEach(each -> turns.add(finite(each, "turn_rewards[" + turns.size() + "]")));
        JsonNode reward = body.path("reward");
        JsonNode turn = body.path("turn");
        return new SessionVerdict(
                isGiven(reward) ? OptionalDouble.of(finite(reward, "reward")) : OptionalDouble.empty(),
                components,
                turns,
                status(body.path("status").asText("completed")),
                isGiven(body.path("error")) ? body.get("error").asText() : null,
                isGiven(turn) ? OptionalInt.of(turn.asInt(-1)) : OptionalInt.empty());
    }

    private static boolean isGiven(JsonNode value) {
        return !value.isMissingNode() && !value.isNull();
    }

    private static double finite(JsonNode value, String name) {
        if (!value.isNumber() || !Float.isFinite((float) value.doubleValue())) {
            throw RefusedCallException.invalid(name, name + " must be a finite number: " + value);
        }
        return value.doubleValue();
    }

    private static @Nullable FinishReason status(String text) {
        return switch (text.toLowerCase(Locale.ROOT)) {
            case "completed" -> null;
            case "length" -> FinishReason.LENGTH;
            case "timeout" -> FinishReason.TIMEOUT;
            case "aborted" -> FinishReason.ABORTED;
            case "failed" -> FinishReason.FAILED;
            default ->
                throw RefusedCallException.invalid(
                        "status", "status must be completed, length, timeout, aborted or failed: " + text);
        };
    }

    /** Whether there is a verdict, so that a reward means something. */
    boolean isJudged() {
        return status != FinishReason.ABORTED && status != FinishReason.FAILED;
    }
}
