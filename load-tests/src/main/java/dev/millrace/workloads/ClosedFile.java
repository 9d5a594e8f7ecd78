package dev.millrace.workloads;

import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.infra.broker.BrokerConfig;
import dev.millrace.runtime.config.ConfigBinder;
import dev.millrace.runtime.config.ConfigException;
import dev.millrace.runtime.config.ConfigTree;
import dev.millrace.runtime.config.MillraceConfig;
import dev.millrace.workloads.closed.ClosedLoop;
import dev.millrace.workloads.closed.ClosedPlan;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalDouble;
import java.util.stream.Collectors;

/**
 * A closed-loop workload file: a run's configuration, {@link ClosedPlan} under {@code closed}, and lists of values
 * under {@code sweep}, or a list of such sweeps. {@code broker.durability} is {@code system} by default.
 *
 * <pre>
 *   closed:
 *     seconds: 30
 *     environment_ms: {kind: log_normal, value: 100, spread: 1.0, least: 0, most: 5000}
 *   sweep:
 *     admission.eta: [0, 1, 4]
 * </pre>
 */
public final class ClosedFile {
    static final String KEY = "closed";
    static final String DURABILITY = "broker.durability";
    /** Keys that a load test sets itself, and why they are refused. */
    private static final Map<String, String> DECIDED = new LinkedHashMap<>(Map.of(
            "goal", "a closed loop ends with its budget; give closed.seconds, closed.tokens and closed.reward",
            "metrics", "a load test serves no metrics",
            "run.id", "every run of a load test gets a name of its own",
            "run.topic_prefix", "every run of a load test gets topics of its own",
            "run.bootstrap_servers", "give the cluster with --bootstrap-servers"));

    static {
        for (String key : ConfigBinder.keys(BrokerConfig.defaults())) {
            if (!DURABILITY.equals("broker." + key)) {
                DECIDED.put("broker." + key, "the broker is a process of its own; its heap is closed.broker_heap_mb");
            }
        }
    }

    /** Of a run apart from its budget: its topics, its first step, its end. */
    private static final double RUN_SECONDS = 4;
    /** Of the broker's start and the uncounted run. */
    private static final double START_SECONDS = 15;

    private final ObjectNode tree;

    private ClosedFile(ObjectNode tree) {
        this.tree = tree;
    }

    public static boolean isOne(ObjectNode tree) {
        return tree.has(KEY);
    }

    /** @throws ConfigException if it has a key that a load test sets itself */
    public static ClosedFile of(ObjectNode tree) {
        DECIDED.forEach((key, why) -> {
            String pointer = "/" + key.replace('.', '/');
            if (!tree.at(pointer).isMissingNode()) {
                throw new ConfigException(key + " must not be in a workload: " + why);
            }
        });
        return new ClosedFile(tree.deepCopy());
    }

    /**
     * Points in the order of the lists.
     *
     * @throws ConfigException naming the unknown or refused key
     */
    public List<ClosedPoint> points() {
        List<String> known = new ArrayList<>(ConfigBinder.keys(MillraceConfig.defaults()));
        known.removeIf(key ->
                DECIDED.keySet().stream().anyMatch(decided -> key.equals(decided) || key.startsWith(decided + ".")));
        ConfigBinder.keys(ClosedPlan.defaults()).forEach(key -> known.add(KEY + "." + key));
        List<ClosedPoint> points = new ArrayList<>();
        for (Sweep.Combination combination : Sweep.of(tree, known)) {
            points.add(ClosedPoint.of(combination.settings(), combination.tree()));
        }
        if (points.stream().map(point -> point.plan().brokerHeapMb()).distinct().count() > 1) {
            throw new ConfigException("closed.broker_heap_mb cannot be swept: one broker serves all points");
        }
        if (points.stream().map(point -> point.config().broker()).distinct().count() > 1) {
            throw new ConfigException(DURABILITY + " cannot be swept: one broker serves all points");
        }
        return points;
    }

    /** About how long all runs take; empty if one may end with its tokens. */
    OptionalDouble seconds() {
        List<ClosedPoint> points = points();
        if (points.stream().anyMatch(point -> point.plan().tokens() > 0)) {
            return OptionalDouble.empty();
        }
        // a curve's plain loop, and its synchronous run, take as long as its first point
        Map<Map<String, String>, List<ClosedPoint>> curves = points.stream()
                .collect(Collectors.groupingBy(point -> Sweep.without(ClosedLoop.ETA, point.settings())));
        return OptionalDouble.of(curves.values().stream()
                .mapToDouble(curve -> (curve.stream().anyMatch(point -> point.eta() == 0) ? 1 : 2)
                                * (curve.get(0).plan().seconds() + RUN_SECONDS)
                        + curve.stream()
                                .mapToDouble(point -> point.plan().seconds() + RUN_SECONDS)
                                .sum())
                .reduce(START_SECONDS, Double::sum));
    }

    /** The first point in full, and the sweep, as YAML. */
    public String resolved() {
        ClosedPoint first = points().get(0);
        ObjectNode resolved = ConfigTree.empty();
        resolved.set(KEY, ConfigBinder.unbind(first.plan()));
        resolved.setAll(ConfigBinder.unbind(first.config()));
        if (tree.has(Sweep.KEY)) {
            resolved.set(Sweep.KEY, tree.get(Sweep.KEY));
        }
        return ConfigTree.write(resolved);
    }
}
