package dev.millrace.runtime.config;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

/**
 * The default limit on staleness: {@code algorithm.staleness.max_versions} is then {@code admission.eta}, which
 * is the most versions that a rollout may be behind when it is trained on. Set a larger limit for slack.
 */
public final class StalenessBound {
    private static final String ALGORITHM = "algorithm";
    private static final String STALENESS = "staleness";
    private static final String MAX_VERSIONS = "max_versions";

    private StalenessBound() {}

    /** The same tree without the limit where that is its eta, so that it follows an eta that is put over it. */
    static ObjectNode following(ObjectNode tree) {
        ObjectNode copy = tree.deepCopy();
        JsonNode eta = copy.path("admission").path("eta");
        if (copy.path(ALGORITHM).path(STALENESS) instanceof ObjectNode limits
                && eta.isIntegralNumber()
                && limits.path(MAX_VERSIONS).isIntegralNumber()
                && limits.path(MAX_VERSIONS).longValue() == eta.longValue()) {
            limits.remove(MAX_VERSIONS);
        }
        return copy;
    }

    /** Adds the limit to a tree that has none; what is no configuration is left for the binder to refuse. */
    public static void fill(ObjectNode tree) {
        JsonNode eta = tree.path("admission").path("eta");
        if (!eta.isMissingNode() && !eta.canConvertToLong()) {
            return;
        }
        JsonNode given = tree.path(ALGORITHM);
        if (given.isTextual()) { // a variant's name stands for all of it
            ObjectNode named = ConfigTree.empty();
            named.set(Variants.VARIANT, given);
            tree.set(ALGORITHM, named);
        } else if (given.isMissingNode()) {
            tree.set(ALGORITHM, ConfigTree.empty());
        }
        if (tree.path(ALGORITHM) instanceof ObjectNode algorithm) {
            if (!algorithm.has(STALENESS)) {
                algorithm.set(STALENESS, ConfigTree.empty());
            }
            if (algorithm.get(STALENESS) instanceof ObjectNode limits && !limits.has(MAX_VERSIONS)) {
                limits.put(
                        MAX_VERSIONS,
                        eta.isMissingNode()
                                ? MillraceConfig.defaults().admission().eta()
                                : eta.longValue());
            }
        }
    }
}
