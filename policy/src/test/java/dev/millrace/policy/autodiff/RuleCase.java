package dev.millrace.policy.autodiff;

import dev.millrace.policy.onnx.ElementType;
import dev.millrace.policy.onnx.GraphBuilder;
import dev.millrace.policy.onnx.Operators;
import dev.millrace.policy.onnx.Shape;
import dev.millrace.policy.onnx.Value;
import dev.millrace.policy.ort.Session;
import dev.millrace.policy.ort.Tensor;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;
import java.util.SplittableRandom;

/**
 * A small graph around one operator, with its gradient by the rules and by finite differences.
 *
 * @param operator   whose rule is on trial
 * @param name       what is special about this case
 * @param inputs     what the graph is fed, by name, in order
 * @param expression writes the graph
 */
record RuleCase(String operator, String name, List<Input> inputs, Expression expression) {

    /**
     * One operand.
     *
     * @param shape   as declared in the graph, symbols included
     * @param dims    as fed
     * @param floats  values, or null for an index operand
     * @param indices int64 values, or null
     */
    record Input(String name, Shape shape, long[] dims, float[] floats, long[] indices) {

        static Input random(String name, Shape shape, double low, double high, long... dims) {
            int count = 1;
            for (long dim : dims) {
                count *= (int) dim;
            }
            SplittableRandom random = new SplittableRandom(name.hashCode() * 31L + count);
            float[] values = new float[count];
            for (int i = 0; i < count; i++) {
                values[i] = (float) random.nextDouble(low, high);
            }
            return new Input(name, shape, dims, values, null);
        }

        static Input indices(String name, long[] dims, long... values) {
            return new Input(name, Shape.of(dims), dims, null, values);
        }
    }

    @FunctionalInterface
    interface Expression {
        Value write(Operators ops, Map<String, Value> operands);
    }

    @Override
    public String toString() {
        return operator + ": " + name;
    }

    /**
     * Largest difference between rule and finite difference over all float inputs, in units of the gradient's norm plus one.
     */
    double worstError() {
        GraphBuilder graph = new GraphBuilder("case");
        Map<String, Value> operands = new LinkedHashMap<>();
        for (Input input : inputs) {
            operands.put(
                    input.name(),
                    graph.input(
                            input.name(),
                            input.floats() == null ? ElementType.INT64 : ElementType.FLOAT,
                            input.shape()));
        }
        Value result = expression.write(new Operators(graph), operands);
        if (graph.nodes().stream().noneMatch(node -> node.operator().equals(operator))) {
            throw new IllegalStateException("the case does not contain " + operator + ": " + graph.nodes());
        }
        Value seed = graph.input("seed", ElementType.FLOAT, result.shape());
        List<Input> leaves =
                inputs.stream().filter(input -> input.floats() != null).toList();
        Map<Value, Value> gradients = ReverseMode.append(
                graph,
                Map.of(result, seed),
                leaves.stream().map(leaf -> operands.get(leaf.name())).toList());
        graph.output("result", result);
        leaves.forEach(leaf -> graph.output("gradient." + leaf.name(), gradients.get(operands.get(leaf.name()))));

        Session.Options options = new Session.Options(OptionalInt.empty(), false, 1, false, true, Map.of(), Map.of());
        try (Session session = Session.compile(graph.model().toByteArray(), options)) {
            return compare(session, leaves, result.shape());
        }
    }

    private double compare(Session session, List<Input> leaves, Shape declared) {
        Map<String, float[]> point = new HashMap<>();
        leaves.forEach(leaf -> point.put(leaf.name(), leaf.floats().clone()));
        SplittableRandom random = new SplittableRandom(7);
        long[] resultDims = resultDims(declared);
        int size = 1;
        for (long dim : resultDims) {
            size *= (int) dim;
        }
        float[] seed = new float[size];
        for (int i = 0; i < size; i++) {
            seed[i] = (float) random.nextDouble(-1, 1);
        }
        Map<String, float[]> claimed = run(session, point, seed, resultDims);
        double worst = 0;
        for (Input leaf : leaves) {
            float[] gradient = claimed.get("gradient." + leaf.name());
            double norm = 0;
            for (float g : gradient) {
                norm += g * g;
            }
            for (int trial = 0; trial < 3; trial++) {
                double[] direction = random.doubles(gradient.length, -1, 1).toArray();
                double along = 0;
                for (int i = 0; i < gradient.length; i++) {
                    along += gradient[i] * direction[i];
                }
                // five points: what a float forward pass loses to rounding at a small step, a higher order wins back at
                // a large one
                double h = 0.02;
                double numeric = (8
                                        * (value(session, point, leaf, direction, h, seed, resultDims)
                                                - value(session, point, leaf, direction, -h, seed, resultDims))
                                - (value(session, point, leaf, direction, 2 * h, seed, resultDims)
                                        - value(session, point, leaf, direction, -2 * h, seed, resultDims)))
                        / (12 * h);
                worst = Math.max(worst, Math.abs(numeric - along) / (1 + Math.sqrt(norm)));
            }
        }
        return worst;
    }

    private double value(
            Session session,
            Map<String, float[]> point,
            Input leaf,
            double[] direction,
            double step,
            float[] seed,
            long[] resultDims) {
        float[] original = point.get(leaf.name());
        float[] moved = new float[original.length];
        for (int i = 0; i < moved.length; i++) {
            moved[i] = (float) (original[i] + step * direction[i]);
        }
        point.put(leaf.name(), moved);
        float[] result = run(session, point, seed, resultDims).get("result");
        point.put(leaf.name(), original);
        double sum = 0;
        for (int i = 0; i < result.length; i++) {
            sum += (double) seed[i] * result[i];
        }
        return sum;
    }

    /** The declared shape with its symbols replaced by what is fed. */
    private long[] resultDims(Shape shape) {
        Map<String, Long> symbols = new HashMap<>();
        for (Input input : inputs) {
            for (int axis = 0; axis < input.dims().length; axis++) {
                if (!input.shape().dim(axis).isConstant()) {
                    symbols.put(input.shape().dim(axis).toString(), input.dims()[axis]);
                }
            }
        }
        return shape.dims().stream()
                .mapToLong(dim -> Arrays.stream(dim.toString().split("\\*"))
                        .mapToLong(factor -> symbols.containsKey(factor) ? symbols.get(factor) : Long.parseLong(factor))
                        .reduce(1, Math::multiplyExact))
                .toArray();
    }

    private Map<String, float[]> run(Session session, Map<String, float[]> point, float[] seed, long[] seedDims) {
        Map<String, Tensor> feeds = new HashMap<>();
        for (Input input : inputs) {
            feeds.put(
                    input.name(),
                    input.floats() == null
                            ? Tensor.of(input.indices(), input.dims())
                            : Tensor.of(point.get(input.name()), input.dims()));
        }
        feeds.put("seed", Tensor.of(seed, seedDims));
        Map<String, float[]> results = new HashMap<>();
        try (Session.Result result = session.run(feeds)) {
            result.names().forEach(name -> results.put(name, result.floats(name)));
        } finally {
            feeds.values().forEach(Tensor::close);
        }
        return results;
    }
}
