package dev.millrace.policy.decoder;

import dev.millrace.policy.autodiff.LowRank;
import dev.millrace.policy.autodiff.ReverseMode;
import dev.millrace.policy.onnx.Dim;
import dev.millrace.policy.onnx.ElementType;
import dev.millrace.policy.onnx.GraphBuilder;
import dev.millrace.policy.onnx.GraphPart;
import dev.millrace.policy.onnx.Node;
import dev.millrace.policy.onnx.Shape;
import dev.millrace.policy.onnx.Value;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.function.UnaryOperator;
import java.util.stream.Collectors;

/**
 * Forward and backward pass through one layer. The same two graphs serve every layer of a decoder, fed with that
 * layer's weights.
 *
 * <p>Forward inputs: {@link #INPUT} [B*L, hidden], the positions and masks of {@link SequenceGraph} (the mask always as
 * {@link SequenceGraph#MASK}), the weights, and for a mixture of experts {@link RoutingPorts#replayed} of layer 0.
 * Forward outputs: {@link #OUTPUT}, and the {@link #kept} values for the backward pass. Backward inputs: the kept
 * values, {@link #INPUT} and {@link #OUTPUT_GRADIENT}. Backward outputs: {@link #INPUT_GRADIENT}, and an addition to
 * the gradient of each {@link #trained} tensor. {@link #gradientOf} is {@link #sumOf} plus this layer's part; both can
 * be the same memory, so the part is never stored separately. Tensors have the names of the first layer.
 */
public final class LayerGradient {
    public static final String INPUT = "x";
    public static final String OUTPUT = "y";
    public static final String OUTPUT_GRADIENT = "gradient.y";
    public static final String INPUT_GRADIENT = "gradient.x";

    private static final Dim BATCH = Dim.symbol("B");
    private static final Dim LENGTH = Dim.symbol("L");
    private static final String FIRST = "model.layers.0.";
    /** Recomputed instead of kept: they need no matrix product and would be as large as their operands. */
    private static final Set<String> CHEAP =
            Set.of("Reshape", "Squeeze", "Unsqueeze", "Identity", "Mul", "Sigmoid", "SimplifiedLayerNormalization");

    private final List<String> trained;
    private final GraphPart.Cut parts;

    private LayerGradient(List<String> trained, GraphPart.Cut parts) {
        this.trained = trained;
        this.parts = parts;
    }

    /** Which forward values the backward pass can use. */
    public enum Activations {
        /** All values that cost a matrix product. */
        KEPT,
        /** Only the layer's input: the backward pass first repeats the forward pass, for about a third more time. */
        RECOMPUTED
    }

    /**
     * @param lora shape of the adapters to differentiate by; empty for all weights of a layer
     * @param onDevice whether it is for a device other than the CPU
     */
    public static LayerGradient of(
            DecoderShape shape, Optional<LoraShape> lora, Activations activations, boolean onDevice) {
        GraphBuilder graph = new GraphBuilder("layer", onDevice);
        Transformer transformer = Transformer.declare(shape, graph);
        Dim rows = BATCH.times(LENGTH);
        Value x = graph.input(INPUT, ElementType.FLOAT, Shape.of(rows, Dim.of(shape.hiddenSize())));
        Value positions = graph.input(SequenceGraph.POSITIONS, ElementType.INT64, Shape.of(BATCH, LENGTH));
        Value cos = graph.input(SequenceGraph.COS, ElementType.FLOAT, Shape.of(LENGTH, Dim.of(shape.headSize() / 2)));
        Value sin = graph.input(SequenceGraph.SIN, ElementType.FLOAT, cos.shape());
        Value mask = graph.input(SequenceGraph.MASK, ElementType.FLOAT, Shape.of(LENGTH, LENGTH));
        Attention.Rotation rotation = new Attention.Rotation(positions, cos, sin, UnaryOperator.identity());
        Value y = transformer
                .routed(new RoutingPorts(graph, shape.traits().experts(), BATCH, LENGTH))
                .layer(x, 0, new FullAttention(shape, transformer.ops(), rotation, List.of(mask)));
        int forward = graph.size();

        Map<String, Value> leaves = new LinkedHashMap<>();
        Map<Value, LowRank> factored = new LinkedHashMap<>();
        if (lora.isPresent()) {
            adapters(shape, lora.get(), transformer, graph, leaves, factored);
        } else {
            ofFirst(shape.tensors()).forEach(spec -> leaves.put(spec.name(), transformer.weight(spec.name())));
        }
        Map<Value, Value> sums = new LinkedHashMap<>();
        leaves.forEach((name, leaf) -> sums.put(leaf, graph.input(sumOf(name), ElementType.FLOAT, leaf.shape())));
        List<Value> wanted = new ArrayList<>(leaves.values());
        wanted.add(x);
        Value dy = graph.input(OUTPUT_GRADIENT, ElementType.FLOAT, y.shape());
        Map<Value, Value> found = ReverseMode.append(graph, Map.of(y, dy), wanted, factored, sums);
        Map<String, Value> gradients = new LinkedHashMap<>();
        leaves.forEach((name, leaf) -> gradients.put(gradientOf(name), Objects.requireNonNull(found.get(leaf), name)));
        gradients.put(INPUT_GRADIENT, Objects.requireNonNull(found.get(x), INPUT));
        return new LayerGradient(
                List.copyOf(leaves.keySet()),
                graph.cut(forward, Map.of(OUTPUT, y), gradients, node -> isAgain(node, activations)));
    }

    private static void adapters(
            DecoderShape shape,
            LoraShape lora,
            Transformer transformer,
            GraphBuilder graph,
            Map<String, Value> leaves,
            Map<Value, LowRank> factored) {
        for (TensorSpec spec : ofFirst(lora.tensors(shape))) {
            leaves.put(spec.name(), graph.input(spec.name(), ElementType.FLOAT, Shape.of(spec.dimsArray())));
        }
        for (TensorSpec spec : ofFirst(lora.adapted(shape))) {
            factored.put(
                    transformer.weight(spec.name()),
                    new LowRank(
                            Objects.requireNonNull(leaves.get(LoraShape.a(spec.name()))),
                            Objects.requireNonNull(leaves.get(LoraShape.b(spec.name()))),
                            lora.scale()));
        }
    }

    private static boolean isAgain(Node node, Activations activations) {
        return activations == Activations.RECOMPUTED
                || CHEAP.contains(node.operator())
                || node.output().type() == ElementType.INT64;
    }

    private static List<TensorSpec> ofFirst(List<TensorSpec> specs) {
        return specs.stream().filter(spec -> spec.name().startsWith(FIRST)).collect(Collectors.toList());
    }

    /** Maps a tensor name of the first layer to another layer. */
    public static String ofLayer(String tensor, int layer) {
        return tensor.startsWith(FIRST) ? "model.layers." + layer + "." + tensor.substring(FIRST.length()) : tensor;
    }

    /**
     * Returns the lengths of a layer's axes. Lengths that a router decides are taken as if every expert had the same
     * number of tokens.
     *
     * @param given lengths of the symbols B and L, and of any others
     */
    public static Map<String, Long> lengths(DecoderShape shape, Map<String, Long> given) {
        Map<String, Long> lengths = new LinkedHashMap<>(given);
        long tokens = Objects.requireNonNull(given.get("B")) * Objects.requireNonNull(given.get("L"));
        ExpertLayer.addEvenLengths(shape.traits().experts(), 0, tokens, lengths);
        return lengths;
    }

    /** Returns the tensors that get gradients, by their names in the first layer. */
    public List<String> trained() {
        return trained;
    }

    public GraphPart forward() {
        return parts.first();
    }

    public GraphPart backward() {
        return parts.second();
    }

    /** Returns the names of the values that the forward pass keeps for the backward pass, in addition to its result. */
    public List<String> kept() {
        return parts.kept().stream().map(Value::name).toList();
    }

    /** Returns the input name of a tensor's gradient before the addition. */
    public static String sumOf(String tensor) {
        return "sum." + tensor;
    }

    /** Returns the output name of a tensor's gradient after the addition. */
    public static String gradientOf(String tensor) {
        return "gradient." + tensor;
    }
}
