package dev.millrace.policy.autodiff;

import dev.millrace.policy.onnx.ElementType;
import dev.millrace.policy.onnx.GraphBuilder;
import dev.millrace.policy.onnx.Node;
import dev.millrace.policy.onnx.Operators;
import dev.millrace.policy.onnx.Value;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Stream;

/**
 * Reverse-mode differentiation of a graph: appends the nodes that compute {@code d(sum of seed * result) / d leaf}.
 *
 * <p>Works on any graph made of the operators in {@link GradientRules}; an operator on the way from a leaf to a result that
 * has no rule is refused by name. Gradients flow through float32 values only.
 */
public final class ReverseMode {

    private ReverseMode() {}

    /**
     * Appends the backward pass to the graph.
     *
     * @param graph  holds the forward pass; receives the backward pass
     * @param seeds  for each result, the gradient that flows into it, of the result's shape
     * @param leaves inputs or intermediate values to differentiate by; nothing flows past a leaf, so one that is computed
     *     from another counts as independent of it
     * @return for each leaf, in order, the value that holds its gradient
     * @throws IllegalArgumentException if a leaf does not influence a result
     * @throws UnsupportedOperationException if an operator between leaf and result has no rule
     */
    public static Map<Value, Value> append(GraphBuilder graph, Map<Value, Value> seeds, List<Value> leaves) {
        return append(graph, seeds, leaves, List.of(), Map.of(), Map.of());
    }

    /**
     * As {@link #append(GraphBuilder, Map, List)}, by the factors of some matrices.
     *
     * @param factored second operands of matrix products ({@code Gemm}, transposed), none of them a leaf; their factors may be leaves
     * @param sums     for some leaves what their gradients are added to, of the leaf's shape: then the sum is what is returned
     */
    public static Map<Value, Value> append(
            GraphBuilder graph,
            Map<Value, Value> seeds,
            List<Value> leaves,
            Map<Value, LowRank> factored,
            Map<Value, Value> sums) {
        return append(graph, seeds, leaves, List.of(), factored, sums);
    }

    /**
     * As {@link #append(GraphBuilder, Map, List)}, and says what flows through some values on the way.
     *
     * @param passed values computed from the leaves whose gradients are wanted too; unlike a leaf's, they flow on
     * @return for each leaf, then for each passed value, its gradient
     */
    static Map<Value, Value> append(
            GraphBuilder graph, Map<Value, Value> seeds, List<Value> leaves, List<Value> passed) {
        return append(graph, seeds, leaves, passed, Map.of(), Map.of());
    }

    private static Map<Value, Value> append(
            GraphBuilder graph,
            Map<Value, Value> seeds,
            List<Value> leaves,
            List<Value> passed,
            Map<Value, LowRank> factored,
            Map<Value, Value> sums) {
        List<Node> forward = new ArrayList<>(graph.nodes());
        Backward backward = new Backward(
                new Operators(graph),
                reachable(
                        forward,
                        Stream.concat(leaves.stream(), factored.keySet().stream())
                                .toList()),
                factored,
                sums);
        seeds.forEach((result, seed) -> {
            if (!seed.shape().equals(result.shape())) {
                throw new IllegalArgumentException(
                        "the seed of " + result + " must have its shape, not " + seed.shape());
            }
            backward.add(result, seed);
        });
        for (int i = forward.size() - 1; i >= 0; i--) {
            Node node = forward.get(i);
            if (node.outputs().stream().anyMatch(leaves::contains)) {
                continue;
            }
            boolean received = node.outputs().stream().anyMatch(output -> backward.of(output) != null);
            if (received && node.inputs().stream().anyMatch(backward::wants)) {
                propagate(node, backward);
            }
        }
        Map<Value, Value> gradients = new LinkedHashMap<>();
        for (Value wanted : Stream.concat(leaves.stream(), passed.stream()).toList()) {
            Value gradient = backward.of(wanted);
            if (gradient == null || gradient.equals(sums.get(wanted))) {
                throw new IllegalArgumentException(wanted + " does not influence any of the results " + seeds.keySet());
            }
            gradients.put(wanted, gradient);
        }
        return gradients;
    }

    @SuppressWarnings("NullAway") // a rule of several results asks for their gradients itself, and is given none here
    private static void propagate(Node node, Backward backward) {
        GradientRules.of(node).propagate(node, backward.of(node.output()), backward);
    }

    /** Names of the float values that depend on a leaf, the leaves included. */
    private static Set<String> reachable(List<Node> forward, List<Value> leaves) {
        Set<String> names = new HashSet<>();
        leaves.forEach(leaf -> names.add(leaf.name()));
        for (Node node : forward) {
            if (node.inputs().stream().anyMatch(input -> names.contains(input.name()))) {
                node.outputs().stream()
                        .filter(output -> output.type() == ElementType.FLOAT)
                        .forEach(output -> names.add(output.name()));
            }
        }
        return names;
    }
}
