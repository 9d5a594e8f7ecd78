package dev.millrace.policy.autodiff;

import dev.millrace.policy.onnx.Node;
import dev.millrace.policy.onnx.Value;

/** How one operator passes the gradient of its results on to its operands. */
@FunctionalInterface
interface GradientRule {

    /**
     * Appends nodes that turn {@code dy} into contributions for {@code node}'s operands, and adds them to {@code backward}.
     *
     * @param dy gradient of the node's first result; null only for rules of operators with several results, none of
     *     which is the first, received a gradient
     */
    void propagate(Node node, Value dy, Backward backward);
}
