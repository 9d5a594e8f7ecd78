package dev.millrace.workloads;

import com.fasterxml.jackson.databind.node.IntNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.fasterxml.jackson.databind.node.TextNode;
import dev.millrace.runtime.config.ConfigBinder;
import dev.millrace.runtime.config.ConfigTree;
import dev.millrace.runtime.config.MillraceConfig;
import dev.millrace.runtime.config.RunConfig;
import dev.millrace.runtime.config.StalenessBound;
import dev.millrace.workloads.closed.ClosedLoop;
import dev.millrace.workloads.closed.ClosedPlan;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * A run of a closed loop.
 *
 * @param settings of the sweep, in the order of the file
 * @param tree the run's configuration with the sweep's values
 */
public record ClosedPoint(Map<String, String> settings, ClosedPlan plan, ObjectNode tree, MillraceConfig config)
        implements ClosedLoop.Point<ClosedPoint> {
    private static final long SHORT_TOKENS = 1500;

    static ClosedPoint of(Map<String, String> settings, ObjectNode file) {
        ObjectNode tree = file.deepCopy();
        ObjectNode closed = ConfigTree.empty();
        closed.set(ClosedFile.KEY, tree.remove(ClosedFile.KEY));
        ClosedPlan plan = ConfigBinder.bind(ClosedSection.defaults(), closed).closed();
        if (tree.at("/broker/durability").isMissingNode()) { // which other load tests have too
            Sweep.put(tree, ClosedFile.DURABILITY, TextNode.valueOf("system"));
        }
        if (plan.batchSequences() > 0) {
            Sweep.put(tree, "admission.batch_sequences", IntNode.valueOf(plan.batchSequences()));
            Sweep.put(tree, "topology.batch.sequences", IntNode.valueOf(plan.batchSequences()));
        }
        MillraceConfig config = bound(tree);
        config.requireTrainable();
        return new ClosedPoint(settings, plan, tree, config);
    }

    @Override
    public int eta() {
        return config.admission().eta();
    }

    @Override
    public ClosedPoint synchronous() {
        Map<String, String> with = new LinkedHashMap<>(settings);
        with.put(ClosedLoop.ETA, "0");
        ObjectNode changed = tree.deepCopy();
        Sweep.put(changed, ClosedLoop.ETA, IntNode.valueOf(0));
        return new ClosedPoint(with, plan, changed, bound(changed));
    }

    private static MillraceConfig bound(ObjectNode tree) {
        ObjectNode whole = tree.deepCopy();
        StalenessBound.fill(whole);
        return ConfigBinder.bind(MillraceConfig.defaults(), whole);
    }

    @Override
    public ClosedPoint shortened() {
        long tokens = plan.tokens() == 0
                ? SHORT_TOKENS
                : Math.min(SHORT_TOKENS, plan.tokens()); // steps, however long a cold one takes
        return new ClosedPoint(
                settings,
                new ClosedPlan(
                        plan.environmentMs(),
                        plan.stepMs(),
                        plan.batchSequences(),
                        0,
                        tokens,
                        plan.reward(),
                        plan.overSteps(),
                        plan.limitSeconds(),
                        plan.brokerHeapMb(),
                        plan.seed()),
                tree,
                config);
    }

    MillraceConfig named(String id, String bootstrapServers) {
        RunConfig run = config.run();
        return config.with(new RunConfig(
                id,
                run.epoch(),
                run.policyId(),
                "",
                bootstrapServers,
                run.schemaRegistryUrl(),
                run.seed(),
                run.device(),
                run.patienceSeconds(),
                run.recorded()));
    }

    /** The section that makes a workload file a closed loop. */
    public record ClosedSection(ClosedPlan closed) {
        public static ClosedSection defaults() {
            return new ClosedSection(ClosedPlan.defaults());
        }
    }
}
