package dev.millrace.policy.onnx;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/** Goes through the nodes of a graph and adds up what is in memory. Used once. */
final class PeakMemory {
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

    /** What is put together of parts may have an axis whose length nobody says: it is as large as these. */
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
                        Objects.requireNonNull(lengths.get(symbol), () -> "the length of " + symbol + " in " + value));
            }
        }
        return count;
    }
}
