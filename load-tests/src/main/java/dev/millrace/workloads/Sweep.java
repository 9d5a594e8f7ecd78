package dev.millrace.workloads;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.runtime.config.ConfigException;
import dev.millrace.runtime.config.NearestKey;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** Expands lists of values into every combination; several sweeps into those of each. */
final class Sweep {
    static final String KEY = "sweep";

    private Sweep() {}

    /**
     * @param settings of the combination, in the order of the file; empty without a sweep
     * @param tree the file without its sweep
     */
    record Combination(Map<String, String> settings, ObjectNode tree) {}

    /**
     * Distinct combinations in the order of the lists.
     *
     * @param known keys that may be swept, including those below them
     * @throws ConfigException naming the unknown key
     */
    static List<Combination> of(ObjectNode file, List<String> known) {
        ObjectNode base = file.deepCopy();
        JsonNode sweep = base.remove(KEY);
        Set<Map<String, JsonNode>> distinct = new LinkedHashSet<>();
        if (sweep == null) {
            distinct.add(Map.of());
        } else if (sweep instanceof ArrayNode sweeps && !sweeps.isEmpty()) {
            sweeps.forEach(each -> distinct.addAll(combinations(each, known)));
        } else {
            distinct.addAll(combinations(sweep, known));
        }
        List<Combination> combinations = new ArrayList<>();
        for (Map<String, JsonNode> values : distinct) {
            ObjectNode tree = base.deepCopy();
            Map<String, String> settings = new LinkedHashMap<>();
            values.forEach((key, value) -> {
                put(tree, key, value);
                settings.put(key, value.isValueNode() ? value.asText() : value.toString());
            });
            combinations.add(new Combination(settings, tree));
        }
        return combinations;
    }

    private static List<Map<String, JsonNode>> combinations(JsonNode sweep, List<String> known) {
        if (!(sweep instanceof ObjectNode lists) || lists.isEmpty()) {
            throw new ConfigException(
                    "sweep must hold keys with lists of values, such as '" + known.get(0) + ": [1, 2]': " + sweep);
        }
        List<Map<String, JsonNode>> combinations = new ArrayList<>(List.of(Map.of()));
        for (Map.Entry<String, JsonNode> list : lists.properties()) {
            String key = list.getKey();
            if (known.stream().noneMatch(name -> name.equals(key) || name.startsWith(key + "."))) {
                throw new ConfigException("unknown key " + key + " in sweep"
                        + NearestKey.of(key, known)
                                .map(k -> "; did you mean " + k + "?")
                                .orElse(""));
            }
            if (!(list.getValue() instanceof ArrayNode values) || values.isEmpty()) {
                throw new ConfigException("sweep." + key + " must be a list of values: " + list.getValue());
            }
            List<Map<String, JsonNode>> longer = new ArrayList<>();
            for (Map<String, JsonNode> begun : combinations) {
                values.forEach(value -> {
                    Map<String, JsonNode> with = new LinkedHashMap<>(begun);
                    with.put(key, value);
                    longer.add(with);
                });
            }
            combinations = longer;
        }
        return combinations;
    }

    /** The settings that the points of a curve share. */
    static Map<String, String> without(String key, Map<String, String> settings) {
        Map<String, String> shared = new LinkedHashMap<>(settings);
        shared.remove(key);
        return shared;
    }

    static void put(ObjectNode tree, String key, JsonNode value) {
        String[] path = key.split("\\.");
        ObjectNode at = tree;
        for (int i = 0; i < path.length - 1; i++) {
            at = at.get(path[i]) instanceof ObjectNode object ? object : at.putObject(path[i]);
        }
        at.set(path[path.length - 1], value);
    }
}
