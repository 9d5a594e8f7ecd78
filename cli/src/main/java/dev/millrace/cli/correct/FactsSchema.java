package dev.millrace.cli.correct;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.corrections.stage.StageInput;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** Allowed and required fields of a line for the stages of an algorithm; see the package. */
public final class FactsSchema {
    /** One number per token. */
    public static final Map<StageInput, String> VECTORS = new EnumMap<>(Map.of(
            StageInput.BEHAVIOR, "behavior_log_probs",
            StageInput.OLD, "old_log_probs",
            StageInput.PROXIMAL, "proximal_log_probs",
            StageInput.REFERENCE, "reference_log_probs",
            StageInput.TEACHER, "teacher_log_probs",
            StageInput.ENTROPIES, "entropies",
            StageInput.SQUARED_PROBABILITIES, "squared_probabilities",
            StageInput.VALUES, "values",
            StageInput.TOKEN_REWARDS, "token_rewards"));

    /** One whole number per token. */
    public static final Map<StageInput, String> INTEGERS = new EnumMap<>(
            Map.of(StageInput.VERSIONS, "versions", StageInput.TURNS, "turns", StageInput.FORCED_TOKENS, "forced"));

    /** One number per sequence. */
    public static final Map<StageInput, String> NUMBERS =
            new EnumMap<>(Map.of(StageInput.AGES, "age_ms", StageInput.GREEDY_REWARDS, "greedy_reward"));

    private static final String TURN_REWARDS = "turn_rewards";
    private static final String COMPONENTS = "reward_components";

    private final Set<StageInput> needed;
    private final Set<String> known = new LinkedHashSet<>(List.of("id", "mask", "group", "reward"));

    /** @param needed required fields in addition to id, mask, group and reward */
    public FactsSchema(Set<StageInput> needed) {
        this(needed, List.of());
    }

    /** @param others fields that the reader removes before; known here to detect misspelt ones */
    public FactsSchema(Set<StageInput> needed, List<String> others) {
        this.needed = Set.copyOf(needed);
        known.addAll(VECTORS.values());
        known.addAll(INTEGERS.values());
        known.addAll(NUMBERS.values());
        known.addAll(List.of(TURN_REWARDS, COMPONENTS));
        known.addAll(others);
    }

    /** Returns whether a file of sequences can have the input. */
    public static boolean canHold(StageInput input) {
        return VECTORS.containsKey(input)
                || INTEGERS.containsKey(input)
                || NUMBERS.containsKey(input)
                || input == StageInput.TURN_REWARDS
                || input == StageInput.REWARD_COMPONENTS;
    }

    /** Parses and reads a line. */
    public FactsLine read(int number, String text) throws BadLineException {
        return read(number, LineFields.parsed(text));
    }

    /** Reads a parsed line. */
    public FactsLine read(int number, ObjectNode line) throws BadLineException {
        LineFields.requireKnown(line, known);
        if (line.has("group") && !line.get("group").isTextual()) {
            throw new BadLineException("group must be a text: " + line.get("group"));
        }
        byte[] mask = LineFields.mask(LineFields.list(line, "mask"));
        Map<StageInput, float[]> vectors = new HashMap<>();
        for (Map.Entry<StageInput, String> field : VECTORS.entrySet()) {
            if (isThere(line, field.getKey(), field.getValue())) {
                vectors.put(
                        field.getKey(),
                        LineFields.numbers(
                                LineFields.list(line, field.getValue()),
                                field.getValue(),
                                mask,
                                field.getValue().endsWith("_log_probs")));
            }
        }
        Map<StageInput, long[]> integers = new HashMap<>();
        for (Map.Entry<StageInput, String> field : INTEGERS.entrySet()) {
            if (isThere(line, field.getKey(), field.getValue())) {
                integers.put(field.getKey(), integers(line, field.getKey(), field.getValue(), mask.length));
            }
        }
        Map<StageInput, Double> numbers = new HashMap<>();
        for (Map.Entry<StageInput, String> field : NUMBERS.entrySet()) {
            if (isThere(line, field.getKey(), field.getValue())) {
                numbers.put(field.getKey(), finite(line.get(field.getValue()), field.getValue()));
            }
        }
        List<Double> turnRewards = new ArrayList<>();
        if (isThere(line, StageInput.TURN_REWARDS, TURN_REWARDS)) {
            JsonNode list = LineFields.list(line, TURN_REWARDS);
            for (int i = 0; i < list.size(); i++) {
                turnRewards.add(finite(list.get(i), TURN_REWARDS + "[" + i + "]"));
            }
        }
        Map<String, Double> components = new LinkedHashMap<>();
        if (isThere(line, StageInput.REWARD_COMPONENTS, COMPONENTS)) {
            if (!line.get(COMPONENTS).isObject()) {
                throw new BadLineException(COMPONENTS + " must be numbers by name: " + line.get(COMPONENTS));
            }
            for (Map.Entry<String, JsonNode> part : line.get(COMPONENTS).properties()) {
                components.put(part.getKey(), finite(part.getValue(), COMPONENTS + "." + part.getKey()));
            }
        }
        return new FactsLine(
                number,
                LineFields.id(line),
                mask,
                line.path("group").asText(""),
                finite(line.path("reward"), "reward"),
                new FactsLine.StageValues(
                        vectors,
                        integers,
                        numbers,
                        line.has(TURN_REWARDS) ? turnRewards : null,
                        line.has(COMPONENTS) ? components : null));
    }

    private boolean isThere(JsonNode line, StageInput input, String field) throws BadLineException {
        if (!line.has(field) && needed.contains(input)) {
            throw new BadLineException(field + " is missing; a stage of the algorithm reads " + input.text());
        }
        return line.has(field);
    }

    private static long[] integers(JsonNode line, StageInput input, String field, int length) throws BadLineException {
        JsonNode list = LineFields.list(line, field);
        if (list.size() != length) {
            throw new BadLineException(field + " has " + list.size() + " elements, mask has " + length);
        }
        int least = input == StageInput.TURNS ? -1 : 0;
        long most = input == StageInput.FORCED_TOKENS ? 1 : Integer.MAX_VALUE;
        long[] values = new long[length];
        for (int t = 0; t < length; t++) {
            JsonNode value = list.get(t);
            if (!value.isIntegralNumber()
                    || !value.canConvertToLong()
                    || value.longValue() < least
                    || value.longValue() > most) {
                throw new BadLineException(
                        field + "[" + t + "] must be a whole number from " + least + " to " + most + ": " + value);
            }
            values[t] = value.longValue();
        }
        return values;
    }

    private static double finite(JsonNode value, String field) throws BadLineException {
        if (!value.isNumber() || !Double.isFinite(value.doubleValue())) {
            throw new BadLineException(
                    value.isMissingNode()
                            ? field + " is missing"
                            : field + " must be a finite number: " + LineFields.text(value));
        }
        return value.doubleValue();
    }
}
