package dev.millrace.runtime.config;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

/** Keys under the names that they had when older runs recorded them. A key under its present name goes before its former one. */
final class FormerKeys {
    private static final String GROUP = "evaluation";
    private static final String SAMPLES = "samples";

    private FormerKeys() {}

    /** The same tree under present names; the tree itself if it has none of the former ones. */
    static ObjectNode renamed(ObjectNode tree) {
        if (!(tree.get(GROUP) instanceof ObjectNode group) || !group.has("every_steps") && !group.has("responses")) {
            return tree;
        }
        ObjectNode copy = tree.deepCopy();
        ObjectNode evaluation = (ObjectNode) copy.get(GROUP);
        boolean isOneEach = evaluation.has("responses") && !evaluation.has(SAMPLES);
        move(evaluation, "every_steps", "every_versions");
        move(evaluation, "responses", "prompts");
        if (isOneEach) {
            evaluation.put(SAMPLES, 1); // there was one response to each
        }
        return copy;
    }

    private static void move(ObjectNode group, String former, String present) {
        JsonNode value = group.remove(former);
        if (value != null && !group.has(present)) {
            group.set(present, value);
        }
    }
}
