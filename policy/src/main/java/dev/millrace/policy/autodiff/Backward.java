package dev.millrace.policy.autodiff;

import dev.millrace.policy.onnx.Dim;
import dev.millrace.policy.onnx.ElementType;
import dev.millrace.policy.onnx.Operators;
import dev.millrace.policy.onnx.Shape;
import dev.millrace.policy.onnx.Value;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * The gradients known so far while a graph is walked from its results to its leaves.
 *
 * <p>Contributions to one value are summed in the order in which they arrive, which is the reverse order of the nodes: the
 * emitted graph, and with it every rounding, depends on nothing else.
 */
final class Backward {
    private final Operators ops;
    private final Set<String> active;
    private final Map<Value, LowRank> factored;
    private final Map<String, Value> gradients = new HashMap<>();

    /**
     * @param active   names of the values on a way from a leaf to a seeded result; no other gets a gradient
     * @param factored matrices whose factors get gradients in their place
     * @param sums     what the gradients of some leaves are added to
     */
    Backward(Operators ops, Set<String> active, Map<Value, LowRank> factored, Map<Value, Value> sums) {
        this.ops = ops;
        this.active = active;
        this.factored = factored;
        sums.forEach((leaf, sum) -> gradients.put(leaf.name(), sum));
    }

    /** What a matrix is differentiated by in its place; null if by itself. */
    @Nullable
    LowRank factorsOf(Value matrix) {
        return factored.get(matrix);
    }

    /** Where the rules append what they emit. */
    Operators ops() {
        return ops;
    }

    /** Whether anybody asked for a gradient that flows through this value. */
    boolean wants(Value value) {
        return value.type() == ElementType.FLOAT && active.contains(value.name());
    }

    /** The sum of what arrived for this value, null if nothing did. */
    @Nullable
    Value of(Value value) {
        return gradients.get(value.name());
    }

    /** Adds a contribution, first summing it over the axes along which the value was broadcast. */
    void add(Value value, Value contribution) {
        if (!wants(value)) {
            return;
        }
        Value summed = unbroadcast(contribution, value.shape());
        gradients.merge(value.name(), summed, ops::add);
    }

    /**
     * Adds a product of two matrices, each transposed or not, to what arrived for a matrix: within the product, so that none is there by itself.
     * The first one is transposed before, except on a device: the CPU's product of a transposed first matrix takes a fifth longer than both together.
     */
    void addProduct(Value value, Value a, Value b, boolean transposeA, boolean transposeB) {
        if (wants(value)) {
            boolean before = transposeA && !ops.graph().onDevice();
            Value first = before ? ops.transpose(a, 1, 0) : a;
            boolean within = transposeA && !before;
            gradients.compute(
                    value.name(),
                    (name, sum) -> sum == null
                            ? ops.gemm(first, b, within, transposeB)
                            : ops.gemm(first, b, sum, within, transposeB));
        }
    }

    private Value unbroadcast(Value gradient, Shape target) {
        int extra = gradient.shape().rank() - target.rank();
        int[] leading = IntStream.range(0, extra).toArray();
        Value result = extra > 0 ? ops.reduceSum(gradient, false, leading) : gradient;
        Shape shape = result.shape();
        int[] stretched = IntStream.range(0, target.rank())
                .filter(axis ->
                        target.dim(axis).equals(Dim.ONE) && !shape.dim(axis).equals(Dim.ONE))
                .toArray();
        result = stretched.length > 0 ? ops.reduceSum(result, true, stretched) : result;
        if (!result.shape().equals(target)) {
            throw new IllegalStateException(
                    "a gradient of shape " + gradient.shape() + " arrived at a value of shape " + target);
        }
        return result;
    }
}
