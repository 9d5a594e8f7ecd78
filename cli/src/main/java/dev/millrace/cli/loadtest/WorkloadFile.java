package dev.millrace.cli.loadtest;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.cli.config.ConfigBinder;
import dev.millrace.cli.config.ConfigException;
import dev.millrace.cli.config.ConfigTree;
import dev.millrace.cli.config.NearestKey;
import dev.millrace.loadtests.sweep.LoadTest;
import dev.millrace.loadtests.sweep.SweepPoint;
import dev.millrace.loadtests.workload.Workload;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * A workload file: the keys of a {@link Workload}, and under {@code sweep} lists of values for any of them. Every
 * combination of the lists is a point.
 *
 * <pre>
 *   seconds: 10
 *   rollouts: {response_tokens: {kind: log_normal, value: 512, spread: 0.8, least: 16, most: 4096}}
 *   sweep:
 *     load.rollouts_per_second: [100, 200, 400]
 *     topology.runtime.commit_interval_ms: [20, 100]
 * </pre>
 */
final class WorkloadFile {
    private static final String SWEEP = "sweep";

    private final ObjectNode tree;

    private WorkloadFile(ObjectNode tree) {
        this.tree = tree;
    }

    /** @throws ConfigException if there is no such file, or it is no YAML mapping */
    static WorkloadFile read(Path file) {
        return new WorkloadFile(ConfigTree.read(file));
    }

    /** Of a tree that was read elsewhere. */
    static WorkloadFile of(ObjectNode tree) {
        return new WorkloadFile(tree.deepCopy());
    }

    /**
     * Every point, in the order of the lists.
     *
     * @throws ConfigException naming the key that is unknown or refused
     */
    List<SweepPoint> points() {
        ObjectNode base = tree.deepCopy();
        JsonNode sweep = base.remove(SWEEP);
        List<Map<String, JsonNode>> combinations = new ArrayList<>(List.of(Map.of()));
        if (sweep != null) {
            combinations = combinations(sweep);
        }
        List<SweepPoint> points = new ArrayList<>();
        for (Map<String, JsonNode> combination : combinations) {
            ObjectNode at = base.deepCopy();
            Map<String, String> settings = new LinkedHashMap<>();
            combination.forEach((key, value) -> {
                put(at, key, value);
                settings.put(key, value.isValueNode() ? value.asText() : value.toString());
            });
            points.add(new SweepPoint(settings, ConfigBinder.bind(Workload.defaults(), at)));
        }
        if (points.get(0).workload().knee().search() && combinations.get(0).containsKey(LoadTest.RATE)) {
            throw new ConfigException("knee.search chooses the rates itself, so sweep must not list " + LoadTest.RATE
                + "; leave one of them out");
        }
        return points;
    }

    private static List<Map<String, JsonNode>> combinations(JsonNode sweep) {
        if (!(sweep instanceof ObjectNode lists) || lists.isEmpty()) {
            throw new ConfigException("sweep must hold keys with lists of values, such as 'load.rollouts_per_second: [100, 200]': " + sweep);
        }
        List<String> known = ConfigBinder.keys(Workload.defaults());
        List<Map<String, JsonNode>> combinations = new ArrayList<>(List.of(Map.of()));
        for (Map.Entry<String, JsonNode> list : lists.properties()) {
            String key = list.getKey();
            if (known.stream().noneMatch(name -> name.equals(key) || name.startsWith(key + "."))) {
                throw new ConfigException("unknown key " + key + " in sweep" + NearestKey.of(key, known).map(k -> "; did you mean " + k + "?").orElse(""));
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

    private static void put(ObjectNode tree, String key, JsonNode value) {
        String[] path = key.split("\\.");
        ObjectNode at = tree;
        for (int i = 0; i < path.length - 1; i++) {
            at = at.get(path[i]) instanceof ObjectNode object ? object : at.putObject(path[i]);
        }
        at.set(path[path.length - 1], value);
    }

    /** The first point's workload in full, and the sweep, as YAML. */
    String resolved() {
        ObjectNode resolved = ConfigBinder.unbind(points().get(0).workload());
        if (tree.has(SWEEP)) {
            resolved.set(SWEEP, tree.get(SWEEP));
        }
        return ConfigTree.write(resolved);
    }
}
