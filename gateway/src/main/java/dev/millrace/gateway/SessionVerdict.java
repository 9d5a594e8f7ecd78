package dev.millrace.gateway;

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
 * An agent's verdict on its session.
 *
 * @param reward empty for the run's own
 * @param components by name
 * @param turnRewards one per turn of the trained branch; empty for none
 * @param status null for the last turn's
 * @param error null for none
 * @param turn last turn of the trained branch; empty for the newest
 * @param branches further trained branches
 * @param allBranches trains all branches
 */
record SessionVerdict(
        OptionalDouble reward,
        Map<String, Double> components,
        List<Double> turnRewards,
        @Nullable FinishReason status,
        @Nullable String error,
        OptionalInt turn,
        List<BranchVerdict> branches,
        boolean allBranches) {
    private static final Set<String> KEYS =
            Set.of("reward", "reward_components", "turn_rewards", "status", "error", "turn", "branches");
    private static final Set<String> BRANCH_KEYS =
            Set.of("turn", "reward", "reward_share", "reward_components", "turn_rewards");

    /**
     * An agent's verdict on an extra branch.
     *
     * @param turn its last
     * @param reward of its own; empty for a share of the session's
     * @param share 0 to 1; ignored with an own reward
     * @param turnRewards one per turn of its own; empty for none
     */
    record BranchVerdict(
            int turn, OptionalDouble reward, double share, Map<String, Double> components, List<Double> turnRewards) {

        /** With the session's whole reward. */
        static BranchVerdict ofWhole(int turn) {
            return new BranchVerdict(turn, OptionalDouble.empty(), 1, Map.of(), List.of());
        }
    }

    /** @throws RefusedCallException naming the invalid field */
    static SessionVerdict of(JsonNode body) {
        if (!body.isObject()) {
            throw RefusedCallException.invalid(null, "the body must be a JSON object");
        }
        requireKnown(body, KEYS, "");
        JsonNode named = body.path("branches");
        boolean all = named.isTextual() && named.textValue().equals("all");
        if (isGiven(named) && !all && !named.isArray()) {
            throw RefusedCallException.invalid(
                    "branches", "branches must be \"all\", or a list of objects with turn: " + named);
        }
        List<BranchVerdict> branches = new ArrayList<>();
        if (!all) {
            named.forEach(each -> branches.add(branch(each, "branches[" + branches.size() + "].")));
        }
        JsonNode reward = body.path("reward");
        JsonNode turn = body.path("turn");
        return new SessionVerdict(
                isGiven(reward) ? OptionalDouble.of(finite(reward, "reward")) : OptionalDouble.empty(),
                components(body, ""),
                turnRewards(body, ""),
                status(body.path("status").asText("completed")),
                isGiven(body.path("error")) ? body.get("error").asText() : null,
                isGiven(turn) ? OptionalInt.of(turn.asInt(-1)) : OptionalInt.empty(),
                List.copyOf(branches),
                all);
    }

    private static BranchVerdict branch(JsonNode body, String place) {
        if (!body.isObject()) {
            throw RefusedCallException.invalid("branches", "branches must be a list of objects with turn: " + body);
        }
        requireKnown(body, BRANCH_KEYS, place);
        if (!body.path("turn").isInt()) {
            throw RefusedCallException.invalid(
                    place + "turn", place + "turn must be the last turn of a branch: " + body.path("turn"));
        }
        JsonNode reward = body.path("reward");
        JsonNode share = body.path("reward_share");
        if (isGiven(reward) && isGiven(share)) {
            throw RefusedCallException.invalid(
                    place + "reward_share",
                    place + "reward_share must be left out where " + place + "reward is given: " + share);
        }
        if (!isGiven(reward) && isGiven(body.path("reward_components"))) {
            throw RefusedCallException.invalid(
                    place + "reward_components",
                    place + "reward_components must be left out where there is no " + place
                            + "reward: of a share they are the session's");
        }
        double part = isGiven(share) ? finite(share, place + "reward_share") : 1;
        if (part < 0 || part > 1) {
            throw RefusedCallException.invalid(
                    place + "reward_share", place + "reward_share must be from 0 to 1: " + share);
        }
        return new BranchVerdict(
                body.get("turn").intValue(),
                isGiven(reward) ? OptionalDouble.of(finite(reward, place + "reward")) : OptionalDouble.empty(),
                part,
                components(body, place),
                turnRewards(body, place));
    }

    private static void requireKnown(JsonNode body, Set<String> keys, String place) {
        for (Iterator<String> names = body.fieldNames(); names.hasNext(); ) {
            String name = names.next();
            if (!keys.contains(name)) {
                throw RefusedCallException.unsupported(
                        place + name, place + name + " is no field here; there are " + keys);
            }
        }
    }

    private static Map<String, Double> components(JsonNode body, String place) {
        Map<String, Double> components = new HashMap<>();
        body.path("reward_components")
                .properties()
                .forEach(each -> components.put(
                        each.getKey(), finite(each.getValue(), place + "reward_components." + each.getKey())));
        return components;
    }

    private static List<Double> turnRewards(JsonNode body, String place) {
        List<Double> turns = new ArrayList<>();
        body.path("turn_rewards")
                .forEach(each -> turns.add(finite(each, place + "turn_rewards[" + turns.size() + "]")));
        return turns;
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

    /** True if there is a verdict, so a reward is meaningful. */
    boolean isJudged() {
        return status != FinishReason.ABORTED && status != FinishReason.FAILED;
    }
}
