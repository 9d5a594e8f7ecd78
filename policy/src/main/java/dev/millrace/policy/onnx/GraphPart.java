package dev.millrace.policy.onnx;

import dev.millrace.policy.onnx.proto.ModelProto;
import dev.millrace.policy.onnx.proto.TensorProto;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/**
 * A part of a graph that computes some values from others and can run separately. Immutable.
 *
 * <p>A part contains no loops, because their bodies read outer values.
 */
public final class GraphPart {
    private final String name;
    private final List<Node> nodes;
    private final List<Value> inputs;
    private final Map<String, Value> outputs;
    private final List<TensorProto> constants;
    private final int namesTaken;

    private GraphPart(
            String name,
            List<Node> nodes,
            List<Value> inputs,
            Map<String, Value> outputs,
            List<TensorProto> constants,
            int namesTaken) {
        this.name = name;
        this.nodes = nodes;
        this.inputs = inputs;
        this.outputs = outputs;
        this.constants = constants;
        this.namesTaken = namesTaken;
    }

    /** Two parts of a graph. The first outputs the {@code kept} values that the second needs from it. */
    public record Cut(GraphPart first, GraphPart second, List<Value> kept) {}

    /**
     * Extracts the part that computes some values.
     *
     * @param outputs values by output name; each computed in the graph
     * @param given   values that are inputs of the part, computed elsewhere
     */
    static GraphPart of(GraphBuilder graph, String name, Map<String, Value> outputs, Set<Value> given) {
        Map<Value, Node> producers = producers(graph.nodes());
        Set<Node> needed = new HashSet<>();
        Set<Value> read = new LinkedHashSet<>();
        Deque<Value> open = new ArrayDeque<>(outputs.values());
        while (!open.isEmpty()) {
            Value value = open.pop();
            Node producer = given.contains(value) ? null : producers.get(value);
            if (producer == null) {
                read.add(value);
            } else if (needed.add(producer)) {
                open.addAll(producer.inputs());
            }
        }
        Map<String, TensorProto> byName = new LinkedHashMap<>();
        graph.constants().forEach(constant -> byName.put(constant.getName(), constant));
        List<TensorProto> used = new ArrayList<>();
        List<Value> inputs = new ArrayList<>();
        for (Value value : read) {
            TensorProto constant = byName.get(value.name());
            if (constant == null) {
                inputs.add(value);
            } else {
                used.add(constant);
            }
        }
        return new GraphPart(
                name,
                graph.nodes().stream().filter(needed::contains).toList(),
                List.copyOf(inputs),
                new LinkedHashMap<>(outputs),
                List.copyOf(used),
                graph.namesTaken());
    }

    /**
     * Cuts a graph into its forward and its backward pass.
     *
     * @param forwardNodes number of leading nodes that form the forward pass
     * @param again nodes of the forward pass that the backward pass recomputes where it needs them; other values that
     *     it needs are kept
     */
    static Cut cut(
            GraphBuilder graph,
            int forwardNodes,
            Map<String, Value> results,
            Map<String, Value> gradients,
            Predicate<Node> again) {
        Map<Value, Node> producers = producers(graph.nodes());
        Set<Node> forward = new HashSet<>(graph.nodes().subList(0, forwardNodes));
        Set<Value> seen = new HashSet<>();
        Set<Value> kept = new LinkedHashSet<>();
        Deque<Value> open = new ArrayDeque<>(gradients.values());
        while (!open.isEmpty()) {
            Value value = open.pop();
            Node producer = producers.get(value);
            if (producer == null || !seen.add(value)) {
                continue;
            }
            if (forward.contains(producer) && !again.test(producer)) {
                kept.add(value);
            } else {
                open.addAll(producer.inputs());
            }
        }
        Map<String, Value> left = new LinkedHashMap<>(results);
        kept.forEach(value -> left.put(value.name(), value));
        return new Cut(of(graph, "forward", left, Set.of()), of(graph, "backward", gradients, kept), List.copyOf(kept));
    }

    private static Map<Value, Node> producers(List<Node> nodes) {
        Map<Value, Node> producers = new HashMap<>();
        for (Node node : nodes) {
            node.outputs().forEach(output -> producers.put(output, node));
        }
        return producers;
    }

    /** Inputs in no particular order; all are used. */
    public List<String> inputs() {
        return inputs.stream().map(Value::name).toList();
    }

    public Set<String> outputs() {
        return Set.copyOf(outputs.keySet());
    }

    public ModelProto model() {
        GraphBuilder part = new GraphBuilder(name);
        inputs.forEach(part::input);
        part.take(nodes, constants, namesTaken);
        outputs.forEach(part::output);
        return part.model();
    }

    /**
     * Estimates the memory that a run takes in addition to its inputs: the peak bytes of all values that exist at the
     * same time. Assumes that nodes run in their order and that each value is freed after its last reader. Views share
     * the memory of the viewed value. An elementwise operator overwrites an operand that has no further reader.
     *
     * @param elsewhere outputs that are written into the caller's memory
     */
    public long peakBytes(Map<String, Long> lengths, Predicate<String> elsewhere) {
        return new PeakMemory(nodes, inputs, outputs, lengths, elsewhere).bytes();
    }

    /** Bytes of the outputs, which stay after a run. */
    public long outputBytes(Map<String, Long> lengths) {
        return outputs.values().stream()
                .mapToLong(output -> PeakMemory.bytes(output, lengths))
                .sum();
    }

    /** Walks the nodes of a graph and adds up live memory. Used once. */
    static final class PeakMemory {
        /** Operators whose result is their first operand under another shape. */
        private static final Set<String> VIEWS = Set.of("Reshape", "Squeeze", "Unsqueeze", "Identity");

        /** Operators that may write their result over an operand of its size. */
        private static final Set<String> IN_PLACE =
                Set.of("Add", "Sub", "Mul", "Div", "Neg", "Exp", "Log", "Sqrt", "Sigmoid", "Softmax", "LogSoftmax");

        private final List<Node> nodes;
        private final Map<String, Long> lengths;
        private final Map<Value, Buffer> buffers = new HashMap<>();
        private final Map<Value, Integer> readers = new HashMap<>();
        private final Map<Value, Boolean> outputs = new HashMap<>();
        private long now;
        private long most;

        /** Memory of one value, and of all views of it. */
        private static final class Buffer {
            private final long bytes;
            private final boolean isFixed;
            private int uses;

            Buffer(long bytes, boolean isFixed, int uses) {
                this.bytes = bytes;
                this.isFixed = isFixed;
                this.uses = uses;
            }
        }

        PeakMemory(
                List<Node> nodes,
                List<Value> inputs,
                Map<String, Value> outputs,
                Map<String, Long> lengths,
                Predicate<String> elsewhere) {
            this.nodes = nodes;
            this.lengths = lengths;
            for (Node node : nodes) {
                node.inputs().forEach(input -> readers.merge(input, 1, Integer::sum));
            }
            inputs.forEach(input -> buffers.put(input, new Buffer(0, true, 0)));
            outputs.forEach((name, value) -> this.outputs.put(value, elsewhere.test(name)));
        }

        long bytes() {
            for (Node node : nodes) {
                node.inputs().forEach(input -> use(buffers.get(input)));
                for (Value output : node.outputs()) {
                    place(node, output);
                }
                node.inputs().forEach(input -> free(buffers.get(input)));
                node.outputs().forEach(output -> free(buffers.get(output)));
            }
            return most;
        }

        private static void use(@Nullable Buffer buffer) {
            if (buffer != null) { // not a constant
                buffer.uses--;
            }
        }

        private void place(Node node, Value output) {
            int uses = readers.getOrDefault(output, 0);
            Boolean elsewhere = outputs.get(output);
            if (elsewhere != null) {
                buffers.put(output, taken(elsewhere ? 0 : size(node, output), true, uses));
                return;
            }
            Buffer first = node.inputs().isEmpty() ? null : buffers.get(node.input(0));
            if (VIEWS.contains(node.operator()) && first != null) {
                share(output, first, uses);
                return;
            }
            long size = size(node, output);
            if (IN_PLACE.contains(node.operator())) {
                for (Value input : node.inputs()) {
                    Buffer over = buffers.get(input);
                    if (over != null && !over.isFixed && over.uses == 0 && over.bytes == size) {
                        share(output, over, uses);
                        return;
                    }
                }
            }
            buffers.put(output, taken(size, false, uses));
        }

        private void share(Value output, Buffer buffer, int uses) {
            buffer.uses += uses;
            buffers.put(output, buffer);
        }

        private Buffer taken(long size, boolean isFixed, int uses) {
            now += size;
            most = Math.max(most, now);
            return new Buffer(size, isFixed, uses);
        }

        private void free(@Nullable Buffer buffer) {
            if (buffer != null && !buffer.isFixed && buffer.uses == 0) {
                now -= buffer.bytes;
                buffer.uses = Integer.MIN_VALUE; // freed once
            }
        }

        /** Size of a concatenation, whose axis may be unknown: the sum of its operands. */
        private long size(Node node, Value output) {
            return node.operator().equals("Concat")
                    ? node.inputs().stream()
                            .mapToLong(input -> bytes(input, lengths))
                            .sum()
                    : bytes(output, lengths);
        }

        /** Size of a value, given what its symbols stand for. */
        static long bytes(Value value, Map<String, Long> lengths) {
            long count = value.type().bytes();
            for (Dim dim : value.shape().dims()) {
                count = Math.multiplyExact(count, dim.factor());
                for (String symbol : dim.symbols()) {
                    count = Math.multiplyExact(
                            count,
                            Objects.requireNonNull(
                                    lengths.get(symbol), () -> "the length of " + symbol + " in " + value));
                }
            }
            return count;
        }
    }
}
