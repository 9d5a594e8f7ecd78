package dev.millrace.cli.replay;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.cli.sequences.BadLineException;
import dev.millrace.cli.sequences.LineFields;
import dev.millrace.replay.Verifier.Verdict;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;

/** What a verifier says of a rollout, as a JSON object: rollout_id, reward, and reward_components if there are any. */
final class RewardLine {
    private static final Set<String> KNOWN = Set.of("rollout_id", "reward", "reward_components");

    private RewardLine() {}

    static String rolloutId(ObjectNode line) throws BadLineException {
        JsonNode id = line.path("rollout_id");
        if (!id.isTextual()) {
            throw new BadLineException("rollout_id must be a text: " + id);
        }
        return id.asText();
    }

    static Verdict verdict(ObjectNode line) throws BadLineException {
        LineFields.requireKnown(line, KNOWN);
        Map<String, Double> components = new LinkedHashMap<>();
        JsonNode parts = line.path("reward_components");
        if (!parts.isMissingNode() && !parts.isObject()) {
            throw new BadLineException("reward_components must be numbers by name: " + parts);
        }
        for (Map.Entry<String, JsonNode> part : parts.properties()) {
            components.put(part.getKey(), finite(part.getValue(), "reward_components." + part.getKey()));
        }
        return new Verdict(finite(line.path("reward"), "reward"), components);
    }

    private static double finite(JsonNode value, String name) throws BadLineException {
        if (!value.isNumber() || !Double.isFinite(value.doubleValue())) {
            throw new BadLineException(name + " must be a finite number: " + (value.isMissingNode() ? "none" : value));
        }
        return value.doubleValue();
    }
}
