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
 * Gradients known so far during the walk of a graph from its results to its leaves.
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
     * @param active   names of the values on a path from a leaf to a seeded result; others get no gradient
     * @param factored matrices whose factors get gradients instead
     * @param sums     initial values of some leaves' gradients
     */
    Backward(Operators ops, Set<String> active, Map<Value, LowRank> factored, Map<Value, Value> sums) {
        this.ops = ops;
        this.active = active;
        this.factored = factored;
        sums.forEach((leaf, sum) -> gradients.put(leaf.name(), sum));
    }

    /** Factors to differentiate by instead of the matrix; null if there are none. */
    @Nullable
    LowRank factorsOf(Value matrix) {
        return factored.get(matrix);
    }

    Operators ops() {
        return ops;
    }

    /** Returns whether a requested gradient flows through this value. */
    boolean wants(Value value) {
        return value.type() == ElementType.FLOAT && active.contains(value.name());
    }

    /** Returns the sum of the contributions to this value; null without any. */
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
     * Adds a product of two matrices, each transposed or not, to a matrix's gradient. The addition is part of the
     * product node, so the product is never stored separately. The first matrix is transposed beforehand, except on a
     * device: the CPU's product of a transposed first matrix takes a fifth longer than both together.
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
