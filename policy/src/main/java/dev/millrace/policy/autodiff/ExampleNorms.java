package dev.millrace.policy.autodiff;

import dev.millrace.policy.onnx.Dim;
import dev.millrace.policy.onnx.ElementType;
import dev.millrace.policy.onnx.GraphBuilder;
import dev.millrace.policy.onnx.Node;
import dev.millrace.policy.onnx.Operators;
import dev.millrace.policy.onnx.Shape;
import dev.millrace.policy.onnx.Value;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.Predicate;
import java.util.stream.IntStream;

/**
 * The squared norm of every example's own gradient, from one backward pass over all of them.
 *
 * <p>Rows are tokens, and each row belongs to one example, so example b contributes to weight W a sum over b's rows.
 * For a linear layer {@code y = x W^T} it is {@code G_b = Σ_t dy_t x_t^T}. It is {@code Σ_t dy_t} for the layer's bias
 * and {@code Σ_t dy_t x̂_t} for the scale of a norm. For an embedding it is {@code dy_t} at the row that token t looked
 * up. So the pass only computes the gradients of activations. {@code |G_b|²} follows from them in one of two ways,
 * chosen for each weight by its owner:
 *
 * <pre>
 *   whole   Σ_ij (Σ_t dy_ti x_tj)²                 n·in·out products, in·out numbers an example
 *   Gram    Σ_tu (dy_t · dy_u) (x_t · x_u)         n²·(in+out) products, n² numbers an example
 * </pre>
 *
 * <p>The cheaper of the two also bounds memory by that of the activations: {@code min(n², in·out) <= n (in+out)}. A
 * weight that is used twice, such as a tied embedding, receives a sum, so its norm includes the products of the parts:
 * {@code |A + C|² = |A|² + 2 A·C + |C|²}.
 */
public final class ExampleNorms {
    private final Operators ops;
    private final Examples examples;
    private final Predicate<Value> byGram;
    private final Map<Value, Value> grams = new HashMap<>();
    private final List<Value> parts = new ArrayList<>();

    /**
     * How the rows of a graph's values belong to examples.
     *
     * @param lengths rows an example may have, padding included: a value has {@code count * length} rows, example after example
     */
    public record Examples(Dim count, List<Dim> lengths) {

        public Examples {
            lengths = List.copyOf(lengths);
        }

        /** {@code [count*length, ...]} as {@code [count, length, ...]}. */
        private Value split(Operators ops, Value rows) {
            for (Dim length : lengths) {
                if (count.times(length).equals(rows.dim(0))) {
                    List<Dim> dims = new ArrayList<>(List.of(count, length));
                    dims.addAll(rows.shape().dims().subList(1, rows.shape().rank()));
                    return ops.reshape(rows, new Shape(dims));
                }
            }
            throw new IllegalArgumentException(
                    rows + " has no rows of examples: its first axis is none of " + lengths + " times " + count);
        }
    }

    /** Contribution of one use of a weight to its gradient, a sum over the rows of an example. */
    private sealed interface Use {
        /** {@code Σ_t dy_t x_t^T}. */
        record Product(Value dy, Value x) implements Use {}

        /** {@code Σ_t e(index_t) dy_t^T}, e being unit vectors. */
        record Lookup(Value indices, Value dy) implements Use {}

        /** {@code Σ_t dy_t}. */
        record Sum(Value dy) implements Use {}
    }

    private ExampleNorms(Operators ops, Examples examples, Predicate<Value> byGram) {
        this.ops = ops;
        this.examples = examples;
        this.byGram = byGram;
    }

    /**
     * Appends backward pass and norms to the graph.
     *
     * @param graph   holds the forward pass
     * @param seeds   for each result, the gradient that flows into it
     * @param sources inputs of every activation between the weights and the results
     * @param byGram  true for a matrix whose norm is cheaper to have through Gram matrices
     * @return [count, summands], float32: the sum of a row, which is best taken in double precision, is the squared norm of that
     *     example's gradient by all the weights
     * @throws UnsupportedOperationException if an operator that reads a weight is not known here, or has no gradient rule
     */
    public static Value append(
            GraphBuilder graph,
            Map<Value, Value> seeds,
            List<Value> sources,
            Collection<Value> weights,
            Examples examples,
            Predicate<Value> byGram) {
        return appendByParts(graph, seeds, sources, inParts(graph, weights), examples, byGram);
    }

    /** A vector that is read in consecutive parts counts as several weights: their squared norms add up to its own. */
    private static Collection<Value> inParts(GraphBuilder graph, Collection<Value> weights) {
        List<Value> parts = new ArrayList<>();
        for (Value weight : weights) {
            List<Value> slices = graph.nodes().stream()
                    .filter(node ->
                            node.operator().equals("Slice") && node.input(0).equals(weight))
                    .map(Node::output)
                    .toList();
            long read = slices.stream()
                    .filter(slice -> slice.shape().rank() == 1)
                    .mapToLong(slice -> slice.dim(0).length())
                    .sum();
            boolean isInParts = weight.shape().rank() == 1 && weight.dim(0).length() == read;
            parts.addAll(isInParts ? slices : List.of(weight));
        }
        return parts;
    }

    private static Value appendByParts(
            GraphBuilder graph,
            Map<Value, Value> seeds,
            List<Value> sources,
            Collection<Value> weights,
            Examples examples,
            Predicate<Value> byGram) {
        List<Node> readers = new ArrayList<>(graph.nodes().stream()
                .filter(node -> node.inputs().stream().anyMatch(weights::contains))
                .toList());
        readers.forEach(reader -> requireKnown(reader, weights));
        List<Value> passed = readers.stream()
                .map(Node::output)
                .filter(output -> !sources.contains(output))
                .toList();
        Map<Value, Value> gradients = ReverseMode.append(graph, seeds, sources, passed);
        ExampleNorms norms = new ExampleNorms(new Operators(graph), examples, byGram);
        Map<Value, List<Use>> seen = new LinkedHashMap<>();
        for (int i = readers.size() - 1;
                i >= 0;
                i--) { // in the order in which the gradients become known, to free them early
            Node reader = readers.get(i);
            Value dy = Objects.requireNonNull(gradients.get(reader.output()), "every reader was asked for");
            norms.uses(reader, dy, weights).forEach((weight, use) -> {
                List<Use> before = seen.computeIfAbsent(weight, absent -> new ArrayList<>());
                norms.count(weight, before, use);
                before.add(use);
            });
        }
        return norms.ops.concat(1, Dim.symbol("summands"), norms.parts.toArray(Value[]::new));
    }

    private static void requireKnown(Node reader, Collection<Value> weights) {
        boolean known = switch (reader.operator()) {
            case "Gemm" ->
                reader.attribute("transA", 0) == 0
                        && reader.attribute("transB", 0) == 1
                        && reader.attribute("alpha", 1f) == 1f
                        && reader.attribute("beta", 1f) == 1f
                        && !weights.contains(reader.input(0));
            case "SimplifiedLayerNormalization", "Gather" -> true;
            default -> false;
        };
        if (!known) {
            throw new UnsupportedOperationException("no rule for an example's own gradient by a weight that operator "
                    + reader.operator() + " reads, which produces " + reader.output()
                    + "; known are x W^T + bias as Gemm, the scale of SimplifiedLayerNormalization, and Gather");
        }
    }

    private Map<Value, Use> uses(Node reader, Value dy, Collection<Value> weights) {
        Map<Value, Use> uses = new LinkedHashMap<>();
        switch (reader.operator()) {
            case "Gemm" -> {
                uses.put(reader.input(1), new Use.Product(dy, reader.input(0)));
                if (reader.inputs().size() > 2) {
                    uses.put(reader.input(2), new Use.Sum(dy));
                }
            }
            case "SimplifiedLayerNormalization" ->
                uses.put(
                        reader.input(1),
                        new Use.Sum(ops.mul(
                                dy, ops.mul(reader.input(0), reader.outputs().get(1)))));
            case "Gather" -> uses.put(reader.input(0), new Use.Lookup(reader.input(1), dy));
            default -> throw new IllegalStateException("not refused: " + reader);
        }
        uses.keySet().retainAll(weights);
        return uses;
    }

    private void count(Value weight, List<Use> before, Use use) {
        if (use instanceof Use.Product product) {
            columns(byGram.test(weight) ? ops.mul(gram(product.dy()), gram(product.x())) : squared(whole(product)));
        } else if (use instanceof Use.Lookup lookup) {
            Value indices = examples.split(ops, lookup.indices());
            Value same = ops.equal(ops.unsqueeze(indices, 2), ops.unsqueeze(indices, 1));
            columns(ops.mul(ops.cast(same, ElementType.FLOAT), gram(lookup.dy())));
        } else if (use instanceof Use.Sum sum) {
            Value split = examples.split(ops, sum.dy());
            int[] rows = IntStream.range(1, split.shape().rank() - 1)
                    .toArray(); // tokens, and heads where each has the scale
            parts.add(squared(ops.reduceSum(split, false, rows)));
        }
        before.forEach(earlier -> columns(ops.mul(product(weight, earlier, use), 2f)));
    }

    /** Summands of {@code A·C}, of an embedding that is looked up and multiplied with: {@code Σ_tu A_t[index_u] (x_t · dy_u)}. */
    private Value product(Value weight, Use one, Use other) {
        if (one instanceof Use.Product product && other instanceof Use.Lookup lookup) {
            Value dy = examples.split(ops, product.dy());
            Value indices = ops.unsqueeze(examples.split(ops, lookup.indices()), 1);
            Value at = ops.expand(indices, Shape.of(dy.dim(0), dy.dim(1), indices.dim(2)));
            Value along = ops.fusedMatMul(
                    examples.split(ops, product.x()), examples.split(ops, lookup.dy()), false, true, 1f);
            return ops.mul(ops.gatherElements(dy, at, 2), along);
        }
        throw new UnsupportedOperationException(
                weight + " is used twice, and not as an embedding and its head: " + one + ", " + other);
    }

    private Value whole(Use.Product product) {
        return ops.fusedMatMul(examples.split(ops, product.dy()), examples.split(ops, product.x()), true, false, 1f);
    }

    /**
     * {@code x_t · x_u} of an example's rows, [count, length, length]; shared by the weights that multiply the same
     * input.
     */
    private Value gram(Value rows) {
        return grams.computeIfAbsent(rows, absent -> {
            Value split = examples.split(ops, rows);
            return ops.fusedMatMul(split, split, false, true, 1f);
        });
    }

    private Value squared(Value x) {
        return ops.mul(x, x);
    }

    /** Adds up the columns of each example's matrix. */
    private void columns(Value matrices) {
        parts.add(ops.reduceSum(matrices, false, 1));
    }
}
