package dev.millrace.workloads;

import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.runtime.config.ConfigBinder;
import dev.millrace.runtime.config.ConfigException;
import dev.millrace.runtime.config.ConfigTree;
import dev.millrace.workloads.topology.RecordedShape;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalDouble;
import java.util.function.Function;

/**
 * A workload file: keys of a {@link Workload}, and lists of values under {@code sweep}, or a list of
 * such sweeps; every combination is a point.
 *
 * <pre>
 *   seconds: 10
 *   rollouts: {response_tokens: {kind: log_normal, value: 512, spread: 0.8, least: 16, most: 4096}}
 *   sweep:
 *     load.rollouts_per_second: [100, 200, 400]
 *     topology.runtime.commit_interval_ms: [20, 100]
 * </pre>
 */
public final class WorkloadFile {
    private static final List<String> COUNTED = List.of(
            "group_size", "prompt_tokens", "response_tokens", "versions_behind", "unscored_share", "garbage_share");

    /** Of the start of a broker. */
    private static final double START_SECONDS = 5;
    /** Of a point apart from its load, on each broker: its topics, the start and the end of its topology. */
    private static final double POINT_SECONDS = 4;

    private final ObjectNode tree;
    private final Map<String, RecordedShape> recorded = new HashMap<>();

    private WorkloadFile(ObjectNode tree) {
        this.tree = tree;
    }

    static WorkloadFile read(Path file) {
        return new WorkloadFile(ConfigTree.read(file));
    }

    public static WorkloadFile of(ObjectNode tree) {
        return new WorkloadFile(tree.deepCopy());
    }

    /**
     * Points in the order of the lists.
     *
     * @param recordedShapes reads the rollout shape of a recorded run's folder
     * @throws ConfigException naming the unknown or refused key
     */
    public List<SweepPoint> points(Function<String, RecordedShape> recordedShapes) {
        List<SweepPoint> points = new ArrayList<>();
        for (Sweep.Combination combination : Sweep.of(tree, ConfigBinder.keys(Workload.defaults()))) {
            Workload stated = ConfigBinder.bind(Workload.defaults(), combination.tree());
            String from = stated.rollouts().from();
            if (!from.isEmpty()) {
                requireNotStated(combination.tree());
            }
            points.add(new SweepPoint(
                    combination.settings(),
                    from.isEmpty()
                            ? stated
                            : stated.with(stated.rollouts().with(recorded.computeIfAbsent(from, recordedShapes)))));
        }
        for (String key : List.of("brokers", "broker_heap_mb")) {
            if (points.stream().anyMatch(point -> point.settings().containsKey(key))) {
                throw new ConfigException(key + " cannot be swept: the same brokers serve all points");
            }
        }
        if (points.get(0).workload().knee().search()
                && points.stream().anyMatch(point -> point.settings().containsKey(LoadTest.RATE))) {
            throw new ConfigException("knee.search chooses the rates itself, so sweep must not list " + LoadTest.RATE
                    + "; leave one of them out");
        }
        return points;
    }

    /** About how long all points and their baselines take; empty if the rollouts are those of a recorded run. */
    OptionalDouble seconds() {
        if (tree.at("/rollouts/from").isTextual()) {
            return OptionalDouble.empty();
        }
        List<SweepPoint> points = points(recorded::get);
        Workload each = points.get(0).workload();
        long curves = points.stream()
                .map(point -> Sweep.without(LoadTest.RATE, point.settings()))
                .distinct()
                .count();
        long measured = each.knee().search() ? curves * each.knee().points() : points.size();
        double point = each.warmUpSeconds() + each.seconds() + each.brokers() * POINT_SECONDS;
        // the first point runs once more, with a baseline of its own
        return OptionalDouble.of(
                each.brokers() * START_SECONDS + (curves + 1) * Baseline.seconds(each) + (measured + 1) * point);
    }

    private static void requireNotStated(ObjectNode combination) {
        for (String key : COUNTED) {
            if (combination.path("rollouts").has(key)) {
                throw new ConfigException(
                        "rollouts." + key
                                + " is given and so is rollouts.from, the recorded run that says it too; leave one of them out");
            }
        }
    }

    /** The first point in full, and the sweep, as YAML. */
    public String resolved(SweepPoint first) {
        ObjectNode resolved = ConfigBinder.unbind(first.workload());
        if (tree.has(Sweep.KEY)) {
            resolved.set(Sweep.KEY, tree.get(Sweep.KEY));
        }
        return ConfigTree.write(resolved);
    }

    /** A workload with its swept settings, in the order of the file. */
    public record SweepPoint(Map<String, String> settings, Workload workload) {}
}
