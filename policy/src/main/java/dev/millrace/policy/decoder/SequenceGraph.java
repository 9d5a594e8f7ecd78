package dev.millrace.policy.decoder;

import dev.millrace.policy.autodiff.ExampleNorms;
import dev.millrace.policy.autodiff.ExampleNorms.Examples;
import dev.millrace.policy.onnx.Dim;
import dev.millrace.policy.onnx.ElementType;
import dev.millrace.policy.onnx.GraphBuilder;
import dev.millrace.policy.onnx.GraphPart;
import dev.millrace.policy.onnx.Loop;
import dev.millrace.policy.onnx.Operators;
import dev.millrace.policy.onnx.Shape;
import dev.millrace.policy.onnx.Value;
import dev.millrace.policy.onnx.proto.ModelProto;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.UnaryOperator;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/**
 * The graph that scores whole sequences: log-prob, entropy and sum of squared probabilities per wanted token.
 * {@link LayerGradient} and {@link HeadGradient} compute the same layers forward and backward.
 *
 * <p>B sequences are padded on the right to length L; R tokens are wanted. Inputs in addition to the weights:
 * {@link #TOKENS} int64 [B, L]; {@link #POSITIONS} int64 [B, L]; {@link #COS} and {@link #SIN} [L, headSize/2];
 * {@link #MASK} [L, L] if a layer sees everything before a token; {@link #WINDOW_MASK} [L, L] if one sees a window;
 * {@link #ROWS} int64 [R] (for each wanted token the flat index in [B, L] of the token before it); {@link #TARGETS}
 * int64 [R]; {@link #INVERSE_TEMPERATURE} [R, 1]. Only wanted rows reach the head, so prompts and padding cost no
 * logits.
 *
 * <p>With a value head, {@link #VALUES} is an output, too.
 *
 * <p>With a mixture of experts, {@link RoutingPorts} are the inputs and outputs for the routing of each layer.
 *
 * <p>A graph that is {@link Vocabulary#CUT} takes the softmax only over the at most M tokens that each row was drawn
 * from: {@link #KEPT} int64 [R, M] and {@link #KEPT_MASK} [R, M] (0, or far below any logit where a row has fewer).
 * {@link #TARGETS} are indices into them. Only the logits span the whole vocabulary then: softmax, entropy and their
 * gradients are M wide.
 */
public final class SequenceGraph {
    public static final String TOKENS = "tokens";
    public static final String POSITIONS = "positions";
    public static final String COS = "cos";
    public static final String SIN = "sin";
    public static final String MASK = "mask";
    public static final String WINDOW_MASK = "window_mask";
    public static final String ROWS = "rows";
    public static final String TARGETS = "targets";
    public static final String INVERSE_TEMPERATURE = "inverse_temperature";
    public static final String KEPT = "kept";
    public static final String KEPT_MASK = "kept_mask";
    public static final String LOG_PROB_COEFFICIENTS = "log_prob_coefficients";
    public static final String ENTROPY_COEFFICIENTS = "entropy_coefficients";
    public static final String VALUE_COEFFICIENTS = "value_coefficients";
    public static final String LOG_PROBS = "log_probs";
    public static final String ENTROPIES = "entropies";
    public static final String SUM_SQUARED_PROBS = "sum_squared_probs";
    public static final String VALUES = "values";
    public static final String ENTRIES = "entries";
    public static final String ENTRY_LOG_PROBS = "entry_log_probs";
    public static final String ENTRY_REMAINDERS = "entry_remainders";

    /** Summands of each sequence's squared gradient norm, [B, summands]. */
    public static final String SQUARED_NORMS = "squared_norms";

    private static final Dim BATCH = Dim.symbol("B");
    private static final Dim LENGTH = Dim.symbol("L");

    /** Domain of a row's softmax. */
    public enum Vocabulary {
        WHOLE,
        CUT
    }

    /** How rows pass through the head. */
    public enum Rows {
        /** All at once: logits are [R, vocabulary]. */
        AT_ONCE,
        /**
         * One chunk after the other: {@link #ROWS} is [C, S], R is C*S elsewhere, and logits with all that is made of them are [S, vocabulary].
         */
        IN_CHUNKS
    }

    private static final Dim CHUNKS = Dim.symbol("C");
    private static final Dim OF_A_CHUNK = Dim.symbol("S");

    private final GraphBuilder graph;
    private final Transformer transformer;
    private final EmbeddingLookup embedded;
    private final Value hidden; // of the wanted rows
    private final RowSoftmax.Inputs inputs;

    /** @param rows the wanted tokens: {@code [R]} consecutive, or split into parts */
    private SequenceGraph(DecoderShape shape, String name, Shape rows, Vocabulary vocabulary, boolean onDevice) {
        this.graph = new GraphBuilder(name, onDevice);
        this.transformer = Transformer.declare(shape, graph);
        Operators ops = transformer.ops();
        Dim count = rows.product();
        Value tokens = graph.input(TOKENS, ElementType.INT64, Shape.of(BATCH, LENGTH));
        Value positions = graph.input(POSITIONS, ElementType.INT64, Shape.of(BATCH, LENGTH));
        Value cos = graph.input(COS, ElementType.FLOAT, Shape.of(LENGTH, Dim.of(shape.headSize() / 2)));
        Value sin = graph.input(SIN, ElementType.FLOAT, cos.shape());
        Attention.Rotation rotation = new Attention.Rotation(positions, cos, sin, UnaryOperator.identity());
        List<Value> masks = masks(shape);
        Value wanted = ops.reshape(graph.input(ROWS, ElementType.INT64, rows), Shape.of(count));
        this.inputs = RowSoftmax.Inputs.declare(graph, count, vocabulary);
        this.embedded = transformer.lookup(ops.reshape(tokens, Shape.of(BATCH.times(LENGTH))));
        RoutingPorts routing = new RoutingPorts(graph, shape.traits().experts(), BATCH, LENGTH);
        this.hidden = ops.gather(
                transformer.routed(routing).layers(embedded.rows(), new FullAttention(shape, ops, rotation, masks)),
                wanted);
        routing.addOutputs();
        if (shape.valueHead()) {
            graph.output(VALUES, transformer.values(hidden));
        }
    }

    private static SequenceGraph of(
            DecoderShape shape, String name, Vocabulary vocabulary, Rows rows, boolean onDevice) {
        Shape wanted = rows == Rows.AT_ONCE ? Shape.of(Dim.symbol("R")) : Shape.of(CHUNKS, OF_A_CHUNK);
        return new SequenceGraph(shape, name, wanted, vocabulary, onDevice);
    }

    /** Softmax figures of all rows at once, as outputs. */
    private RowSoftmax atOnce() {
        RowSoftmax softmax = RowSoftmax.append(transformer.ops(), transformer.logits(hidden), inputs);
        graph.output(LOG_PROBS, softmax.logProbs());
        graph.output(ENTROPIES, softmax.entropies());
        graph.output(SUM_SQUARED_PROBS, softmax.sumSquaredProbs());
        return softmax;
    }

    /** Computes additional values of a chunk. */
    @FunctionalInterface
    private interface ChunkBody {
        /** @return values per row, by name */
        Map<String, Value> write(Operators inside, Value number, RowSoftmax softmax);
    }

    /** The head over one chunk after the other, with its outputs. */
    private void inChunks(ChunkBody body) {
        Operators ops = transformer.ops();
        Value chunks = chunked(hidden);
        RowSoftmax.Inputs inputsOfChunks = inputs.map(this::chunked);
        List<String> names = new ArrayList<>();
        Loop loop = Loop.append(graph, ops.length(CHUNKS), CHUNKS, List.of(), (insideGraph, number, states) -> {
            Transformer inside = transformer.inside(insideGraph);
            Operators o = inside.ops();
            Value logits = inside.logits(o.gather(chunks, number));
            RowSoftmax softmax = RowSoftmax.append(o, logits, inputsOfChunks.map(input -> o.gather(input, number)));
            Map<String, Value> perRow = new LinkedHashMap<>();
            perRow.put(LOG_PROBS, softmax.logProbs());
            perRow.put(ENTROPIES, softmax.entropies());
            perRow.put(SUM_SQUARED_PROBS, softmax.sumSquaredProbs());
            perRow.putAll(body.write(o, number, softmax));
            names.addAll(perRow.keySet());
            return new Loop.Iteration(List.of(), List.copyOf(perRow.values()));
        });
        for (int i = 0; i < names.size(); i++) {
            Value stacked = loop.results().get(i);
            List<Dim> dims = new ArrayList<>(List.of(CHUNKS.times(OF_A_CHUNK)));
            dims.addAll(stacked.shape().dims().subList(2, stacked.shape().rank()));
            graph.output(names.get(i), ops.reshape(stacked, new Shape(dims)));
        }
    }

    /** {@code [C*S, ...]} as {@code [C, S, ...]}. */
    private Value chunked(Value perRow) {
        List<Dim> dims = new ArrayList<>(List.of(CHUNKS, OF_A_CHUNK));
        dims.addAll(perRow.shape().dims().subList(1, perRow.shape().rank()));
        return transformer.ops().reshape(perRow, new Shape(dims));
    }

    /** Returns whether the graphs take {@link #MASK}. */
    public static boolean hasFullLayers(DecoderShape shape) {
        return !shape.traits().isWindowed(0);
    }

    /** Returns whether the graphs take {@link #WINDOW_MASK}. */
    public static boolean hasWindowedLayers(DecoderShape shape) {
        return shape.traits().isWindowed(shape.layers() - 1);
    }

    private List<Value> masks(DecoderShape shape) {
        Map<Boolean, Value> inputs = new HashMap<>();
        return IntStream.range(0, shape.layers())
                .mapToObj(layer -> inputs.computeIfAbsent(
                        shape.traits().isWindowed(layer),
                        windowed -> graph.input(
                                windowed ? WINDOW_MASK : MASK, ElementType.FLOAT, Shape.of(LENGTH, LENGTH))))
                .toList();
    }

    /** The forward pass alone. */
    public static ModelProto scoring(DecoderShape shape, Vocabulary vocabulary, Rows rows) {
        SequenceGraph sequence = of(shape, "scoring", vocabulary, rows, false); // independent of the device
        if (rows == Rows.AT_ONCE) {
            sequence.atOnce();
        } else {
            sequence.inChunks((inside, number, softmax) -> Map.of());
        }
        return sequence.graph.model();
    }

    /**
     * The forward pass with the log-probs of k tokens at each position: additional input {@link #ENTRIES} int64 [R, k],
     * ids or places as {@link #TARGETS}, all of a row different; further outputs {@link #ENTRY_LOG_PROBS} [R, k] and
     * {@link #ENTRY_REMAINDERS} [R], the log of the probability of all others together.
     *
     * @param onDevice whether it is for a device other than the CPU
     */
    public static ModelProto scoringEntries(
            DecoderShape shape, Vocabulary vocabulary, Rows rows, int k, boolean onDevice) {
        SequenceGraph sequence = of(shape, "scoring-entries", vocabulary, rows, onDevice);
        GraphBuilder graph = sequence.graph;
        Value entries = graph.input(
                ENTRIES, ElementType.INT64, Shape.of(sequence.inputs.targets().dim(0), Dim.of(k)));
        if (rows == Rows.AT_ONCE) {
            entries(sequence.transformer.ops(), sequence.atOnce(), entries).forEach(graph::output);
        } else {
            Value chunks = sequence.chunked(entries);
            sequence.inChunks((inside, number, softmax) -> entries(inside, softmax, inside.gather(chunks, number)));
        }
        return graph.model();
    }

    private static Map<String, Value> entries(Operators ops, RowSoftmax softmax, Value entries) {
        Value taken = ops.neg(ops.gatherElements(softmax.probs(), entries, 1));
        Value rest = ops.scatterElementsAdd(softmax.probs(), entries, taken, 1); // p - p is exactly 0
        Map<String, Value> said = new LinkedHashMap<>();
        said.put(ENTRY_LOG_PROBS, ops.gatherElements(softmax.all(), entries, 1));
        said.put(ENTRY_REMAINDERS, ops.log(ops.reduceSum(rest, false, 1)));
        return said;
    }

    /**
     * The forward pass and, for every sequence, the squared norm of its own gradient {@code d(sum_t c_t log pi(y_t)) / dW} by
     * all weights: {@link #ROWS} is [B, P], each sequence's wanted tokens filled up to P with some of coefficient 0; R is B*P
     * elsewhere; further input {@link #LOG_PROB_COEFFICIENTS} [R], further output {@link #SQUARED_NORMS}.
     *
     * @param byGram of {@link #cheaperByGram}; decides the cost of the graph, and the last bits of its results
     */
    public static GraphPart gradientNorms(DecoderShape shape, Vocabulary vocabulary, Set<String> byGram) {
        if (shape.traits().experts().present()) {
            throw new UnsupportedOperationException(
                    "norms of single gradients are not found for a mixture of experts, whose"
                            + " rows are not one sequence's after the other; take another baseline than opob");
        }
        Dim scored = Dim.symbol("P");
        SequenceGraph sequence = new SequenceGraph(shape, "gradient-norms", Shape.of(BATCH, scored), vocabulary, false);
        Value logProbs = sequence.atOnce().logProbs();
        Value coefficients = sequence.graph.input(LOG_PROB_COEFFICIENTS, ElementType.FLOAT, logProbs.shape());
        sequence.graph.output(
                SQUARED_NORMS,
                ExampleNorms.append(
                        sequence.graph,
                        Map.of(logProbs, coefficients),
                        sequence.embedded.ofPieces(),
                        ofLogProbs(sequence.transformer.weights()),
                        new Examples(BATCH, List.of(LENGTH, scored)),
                        weight -> byGram.contains(weight.name())));
        return sequence.graph.whole();
    }

    /** Weights that log-probs depend on. */
    private static List<Value> ofLogProbs(Map<String, Value> weights) {
        Set<String> others = Set.of(TensorNames.VALUE_WEIGHT, TensorNames.VALUE_BIAS);
        return weights.values().stream()
                .filter(weight -> !others.contains(weight.name()))
                .toList();
    }

    /**
     * Returns the names of the matrices whose gradient norms are cheaper through Gram matrices:
     * {@code n (in + out) <= in out}, with n rows per sequence.
     *
     * @param scored wanted tokens of a sequence, the only ones that reach the head
     */
    public static Set<String> cheaperByGram(DecoderShape shape, int length, int scored) {
        String head = shape.head().name();
        return differentiated(shape).stream()
                .filter(spec -> spec.dims().size() == 2)
                .filter(spec -> {
                    long out = spec.dims().get(0);
                    long in = spec.dims().get(1);
                    return (WholeTensor.nameOf(spec.name()).equals(head) ? scored : length) * (in + out) <= in * out;
                })
                .map(TensorSpec::name)
                .collect(Collectors.toUnmodifiableSet());
    }

    /** The tensors that a product or a norm reads: all but an embedding that is only looked up. */
    static List<TensorSpec> differentiated(DecoderShape shape) {
        return shape.wholes().stream()
                .filter(whole -> shape.tiedHead() || !whole.name().equals(TensorNames.EMBEDDING))
                .flatMap(whole -> whole.pieces().stream())
                .toList();
    }
}
