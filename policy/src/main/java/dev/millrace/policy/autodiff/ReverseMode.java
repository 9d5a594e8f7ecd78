package dev.millrace.policy.autodiff;

import dev.millrace.policy.onnx.Dim;
import dev.millrace.policy.onnx.ElementType;
import dev.millrace.policy.onnx.GraphBuilder;
import dev.millrace.policy.onnx.Node;
import dev.millrace.policy.onnx.Operators;
import dev.millrace.policy.onnx.Shape;
import dev.millrace.policy.onnx.Value;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Supplier;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/**
 * Reverse-mode differentiation of a graph: appends the nodes that compute {@code d(sum of seed * result) / d leaf}.
 *
 * <p>Works on any graph made of the operators in {@code GradientRules}; an operator on the way from a leaf to a result that
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
     * @param sums     initial gradients of some leaves, of the leaf's shape; the result is then the sum
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
     * As {@link #append(GraphBuilder, Map, List)}, and also returns the gradients of some intermediate values.
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

    @SuppressWarnings("NullAway") // a rule with several results fetches their gradients itself
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

    /**
     * The table of gradient rules, one per operator. In the comments {@code y} is the result and {@code dy} its gradient.
     *
     * <p>{@link Backward#add} drops unneeded contributions and sums over broadcast axes, so the rules only state the
     * mathematics. A rule with an expensive contribution checks first whether it is needed.
     */
    static final class GradientRules {
        private static final Map<String, GradientRule> RULES = new HashMap<>();

        static {
            elementwise();
            products();
            layout();
            indexing();
            reductions();
            decoderParts();
        }

        private GradientRules() {}

        static GradientRule of(Node node) {
            GradientRule rule = RULES.get(node.operator());
            if (rule == null) {
                throw noRule(
                        (node.domain().isEmpty() ? "" : node.domain() + ".") + node.operator() + ", which produces "
                                + node.output() + "; operators with a rule: "
                                + RULES.keySet().stream().sorted().toList());
            }
            return rule;
        }

        static Set<String> operators() {
            return Set.copyOf(RULES.keySet());
        }

        private static void elementwise() {
            RULES.put("Identity", (n, dy, b) -> b.add(n.input(0), dy));
            RULES.put(
                    "Cast", (n, dy, b) -> b.add(n.input(0), dy)); // float32 to float32: other types carry no gradients
            RULES.put("Neg", (n, dy, b) -> b.add(n.input(0), b.ops().neg(dy)));
            RULES.put("Exp", (n, dy, b) -> b.add(n.input(0), b.ops().mul(dy, n.output())));
            RULES.put("Log", (n, dy, b) -> b.add(n.input(0), b.ops().div(dy, n.input(0))));
            RULES.put(
                    "Sqrt", (n, dy, b) -> b.add(n.input(0), b.ops().div(b.ops().mul(dy, 0.5f), n.output())));
            RULES.put(
                    "Sigmoid",
                    (n, dy, b) -> b.add(
                            n.input(0), // dy y (1 - y)
                            b.ops().mul(dy, b.ops().sub(n.output(), b.ops().mul(n.output(), n.output())))));
            RULES.put("Add", (n, dy, b) -> {
                b.add(n.input(0), dy);
                b.add(n.input(1), dy);
            });
            RULES.put("Sub", (n, dy, b) -> {
                b.add(n.input(0), dy);
                whenWanted(b, n.input(1), () -> b.ops().neg(dy));
            });
            RULES.put("Mul", (n, dy, b) -> {
                whenWanted(b, n.input(0), () -> b.ops().mul(dy, n.input(1)));
                whenWanted(b, n.input(1), () -> b.ops().mul(dy, n.input(0)));
            });
            RULES.put("Div", (n, dy, b) -> {
                Value perDivisor = b.ops().div(dy, n.input(1));
                b.add(n.input(0), perDivisor);
                whenWanted(b, n.input(1), () -> b.ops().neg(b.ops().mul(perDivisor, n.output())));
            });
            RULES.put("Where", (n, dy, b) -> {
                Value zero = b.ops().graph().scalar(0f);
                whenWanted(b, n.input(1), () -> b.ops().where(n.input(0), dy, zero));
                whenWanted(b, n.input(2), () -> b.ops().where(n.input(0), zero, dy));
            });
        }

        private static void products() {
            RULES.put("MatMul", (n, dy, b) -> matrixProduct(n, dy, b, false, false, 1f));
            RULES.put(
                    "FusedMatMul",
                    (n, dy, b) -> matrixProduct(
                            n,
                            dy,
                            b,
                            n.attribute("transA", 0) == 1,
                            n.attribute("transB", 0) == 1,
                            n.attribute("alpha", 1f)));
            RULES.put("Gemm", (n, dy, b) -> {
                if (n.attribute("alpha", 1f) != 1f || n.attribute("beta", 1f) != 1f) {
                    throw noRule("Gemm with alpha or beta other than 1");
                }
                boolean ta = n.attribute("transA", 0) == 1;
                boolean tb = n.attribute("transB", 0) == 1;
                Value a = n.input(0);
                Value w = n.input(1);
                if (ta) {
                    b.addProduct(a, w, dy, tb, true);
                } else {
                    b.addProduct(a, dy, w, false, !tb);
                }
                LowRank factors = b.factorsOf(w);
                if (factors == null && tb) {
                    b.addProduct(w, dy, a, true, ta);
                } else if (factors == null) {
                    b.addProduct(w, a, dy, !ta, false);
                } else if (!ta && tb) {
                    factors.propagate(a, dy, b);
                } else {
                    throw noRule("Gemm by the factors of an operand that is not transposed");
                }
                if (n.inputs().size() > 2) {
                    b.add(n.input(2), dy);
                }
            });
        }

        /**
         * For {@code y = alpha a' c'} with optional transpositions: {@code da' = alpha dy c'^T} and {@code dc' = alpha a'^T dy}.
         */
        private static void matrixProduct(Node n, Value dy, Backward b, boolean ta, boolean tc, float alpha) {
            Operators o = b.ops();
            Value a = n.input(0);
            Value c = n.input(1);
            whenWanted(
                    b, a, () -> ta ? o.fusedMatMul(c, dy, tc, true, alpha) : o.fusedMatMul(dy, c, false, !tc, alpha));
            whenWanted(
                    b, c, () -> tc ? o.fusedMatMul(dy, a, true, ta, alpha) : o.fusedMatMul(a, dy, !ta, false, alpha));
        }

        private static void layout() {
            GradientRule likeInput = (n, dy, b) ->
                    b.add(n.input(0), b.ops().reshape(dy, n.input(0).shape()));
            RULES.put("Reshape", likeInput);
            RULES.put("Squeeze", likeInput);
            RULES.put("Unsqueeze", likeInput);
            RULES.put("Transpose", (n, dy, b) -> {
                int[] permutation = n.attribute("perm", new int[0]);
                int[] inverse = new int[permutation.length];
                IntStream.range(0, permutation.length).forEach(axis -> inverse[permutation[axis]] = axis);
                b.add(n.input(0), b.ops().transpose(dy, inverse));
            });
            RULES.put("Expand", (n, dy, b) -> b.add(n.input(0), dy));
            RULES.put("Concat", (n, dy, b) -> {
                int axis = axis(n, 0);
                long[] sizes = n.inputs().stream()
                        .mapToLong(part -> part.dim(axis).length())
                        .toArray();
                List<Value> parts = b.ops().split(dy, axis, sizes);
                IntStream.range(0, sizes.length).forEach(i -> b.add(n.input(i), parts.get(i)));
            });
            RULES.put("Split", (n, dy, b) -> {
                List<Value> parts = new ArrayList<>();
                for (Value part : n.outputs()) {
                    Value received = b.of(part);
                    parts.add(received == null ? b.ops().zeros(part.shape()) : received);
                }
                int axis = axis(n, 0);
                b.add(n.input(0), b.ops().concat(axis, parts.toArray(Value[]::new)));
            });
            RULES.put("Pad", (n, dy, b) -> { // as rows after those of a matrix
                long[] pads = b.ops().graph().longs(n.input(1));
                if (pads.length != 2 || pads[0] != 0 || single(b, n.input(3)) != 0) {
                    throw noRule("Pad but for rows behind others");
                }
                b.add(n.input(0), b.ops().dropRows(dy, pads[1], n.input(0).dim(0)));
            });
            RULES.put("Slice", (n, dy, b) -> {
                long start = single(b, n.input(1));
                int axis = n.input(0).shape().axis((int) single(b, n.input(3)));
                long end = single(b, n.input(2));
                if (start == 0 && end < 0 && axis == 0 && n.inputs().size() == 4) { // all rows but the last
                    b.add(n.input(0), b.ops().padRows(dy, -end, n.input(0).dim(0)));
                    return;
                }
                if (start < 0 || n.inputs().size() > 4 && single(b, n.input(4)) != 1) {
                    throw noRule("Slice with a step or a negative start");
                }
                long after =
                        n.input(0).dim(axis).length() - start - dy.dim(axis).length();
                b.add(n.input(0), b.ops().pad(dy, axis, start, after));
            });
        }

        private static void indexing() {
            RULES.put("Gather", (n, dy, b) -> {
                if (n.attribute("axis", 0) != 0) {
                    throw noRule("Gather along axis " + n.attribute("axis", 0));
                }
                Value zeros = b.ops().zeros(n.input(0).shape());
                b.add(n.input(0), b.ops().scatterNdAdd(zeros, b.ops().unsqueeze(n.input(1), -1), dy));
            });
            RULES.put("ScatterND", (n, dy, b) -> { // adds: Operators has no other kind
                b.add(n.input(0), dy);
                whenWanted(b, n.input(2), () -> b.ops().gather(dy, b.ops().squeeze(n.input(1), -1)));
            });
            RULES.put(
                    "GatherElements",
                    (n, dy, b) -> b.add(
                            n.input(0),
                            b.ops().scatterElementsAdd(b.ops().zeros(n.input(0).shape()), n.input(1), dy, (int)
                                    n.attribute("axis", 0L))));
        }

        private static void reductions() {
            RULES.put(
                    "ReduceSum",
                    (n, dy, b) -> b.add(
                            n.input(0),
                            b.ops().expand(withReducedAxes(n, dy, b), n.input(0).shape())));
            RULES.put("Softmax", (n, dy, b) -> { // y (dy - sum(dy y))
                Operators o = b.ops();
                int axis = axis(n, -1);
                b.add(n.input(0), o.mul(n.output(), o.sub(dy, o.reduceSum(o.mul(dy, n.output()), true, axis))));
            });
            RULES.put("LogSoftmax", (n, dy, b) -> { // dy - exp(y) sum(dy)
                Operators o = b.ops();
                int axis = axis(n, -1);
                b.add(n.input(0), o.sub(dy, o.mul(o.exp(n.output()), o.reduceSum(dy, true, axis))));
            });
        }

        private static void decoderParts() {
            RULES.put("SimplifiedLayerNormalization", (n, dy, b) -> {
                // y = x r s with r = 1/sqrt(mean(x^2)+eps):  dx = r (dy s - x r mean(dy s x r)),  ds = sum(dy x r)
                Operators o = b.ops();
                if (n.outputs().size() < 2) {
                    throw noRule("SimplifiedLayerNormalization without its second result");
                }
                Value factor = n.outputs().get(1);
                if (b.of(factor) != null) {
                    throw noRule("SimplifiedLayerNormalization's second result");
                }
                Value normed = o.mul(n.input(0), factor);
                whenWanted(b, n.input(1), () -> o.mul(dy, normed));
                whenWanted(b, n.input(0), () -> {
                    Value scaled = o.mul(dy, n.input(1));
                    Value along = o.reduceMean(o.mul(scaled, normed), true, -1);
                    return o.mul(factor, o.sub(scaled, o.mul(normed, along)));
                });
            });
            RULES.put(
                    "RotaryEmbedding",
                    (n, dy, b) -> // a rotation: its transpose turns the other way
                    b.add(
                            n.input(0),
                            b.ops().rotary(dy, n.input(1), n.input(2), b.ops().neg(n.input(3)))));
        }

        private static UnsupportedOperationException noRule(String operator) {
            return new UnsupportedOperationException("no gradient rule for operator " + operator);
        }

        private static int axis(Node n, int otherwise) {
            return n.input(0).shape().axis((int) n.attribute("axis", (long) otherwise));
        }

        private static long single(Backward b, Value constant) {
            long[] values = b.ops().graph().longs(constant);
            if (values.length != 1) {
                throw noRule("Slice along several axes at once");
            }
            return values[0];
        }

        private static Value withReducedAxes(Node n, Value dy, Backward b) {
            Shape kept = n.input(0).shape();
            for (long axis : b.ops().graph().longs(n.input(1))) {
                kept = kept.with((int) axis, Dim.ONE);
            }
            return b.ops().reshape(dy, kept);
        }

        private static void whenWanted(Backward b, Value operand, Supplier<Value> contribution) {
            if (b.wants(operand)) {
                b.add(operand, contribution.get());
            }
        }

        /** How one operator passes the gradient of its results on to its operands. */
        @FunctionalInterface
        interface GradientRule {

            /**
             * Appends nodes that turn {@code dy} into contributions for {@code node}'s operands, and adds them to {@code backward}.
             *
             * @param dy gradient of the node's first result; null only for operators with several results, if only results
             *     other than the first received a gradient
             */
            void propagate(Node node, Value dy, Backward backward);
        }
    }
}
