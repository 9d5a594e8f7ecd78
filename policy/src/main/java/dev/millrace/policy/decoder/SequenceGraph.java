package dev.millrace.policy.decoder;

import dev.millrace.policy.autodiff.ExampleNorms;
import dev.millrace.policy.autodiff.ExampleNorms.Examples;
import dev.millrace.policy.autodiff.ReverseMode;
import dev.millrace.policy.onnx.Dim;
import dev.millrace.policy.onnx.ElementType;
import dev.millrace.policy.onnx.GraphBuilder;
import dev.millrace.policy.onnx.Operators;
import dev.millrace.policy.onnx.Shape;
import dev.millrace.policy.onnx.Value;
import dev.millrace.policy.onnx.proto.ModelProto;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/**
 * The graph that reads whole sequences: log-prob, entropy and sum of squared probabilities per wanted token, and on request
 * the gradient of {@code sum c_t log pi(y_t) + sum e_t H_t}.
 *
 * <p>Inputs beside the weights, with B sequences padded on the right to length L and R wanted tokens: {@link #TOKENS} int64
 * [B, L], {@link #POSITIONS} int64 [B, L], {@link #COS} and {@link #SIN} [L, headSize/2], {@link #MASK} [L, L]
 * if a layer sees everything before a token, {@link #WINDOW_MASK} [L, L] if one sees a window, {@link #ROWS} int64 [R] (for each wanted token the flat index in [B, L] of the token before it), {@link #TARGETS} int64
 * [R], {@link #INVERSE_TEMPERATURE} [R, 1]. Only wanted rows reach the head, so prompts and padding cost no logits.
 *
 * <p>A graph that is {@link Vocabulary#CUT} takes the softmax over the tokens alone that each row was drawn from, M of them at
 * most: {@link #KEPT} int64 [R, M], {@link #KEPT_MASK} [R, M] (0, or far below any logit where a row has fewer), and
 * {@link #TARGETS} are places among them. Of the vocabulary only the logits are computed then: softmax, entropy and
 * their gradients are M wide.
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
    public static final String LOG_PROBS = "log_probs";
    public static final String ENTROPIES = "entropies";
    public static final String SUM_SQUARED_PROBS = "sum_squared_probs";
    public static final String ENTRIES = "entries";
    public static final String ENTRY_LOG_PROBS = "entry_log_probs";
    public static final String ENTRY_REMAINDERS = "entry_remainders";
    /** Gradient by the embedded tokens, [B*L, hidden]: the caller adds its rows to the embedding's, in a fixed order. */
    public static final String EMBEDDED_GRADIENT = "gradient.embedded";

    /** Summands of each sequence's squared gradient norm, [B, summands]. */
    public static final String SQUARED_NORMS = "squared_norms";

    private static final Dim BATCH = Dim.symbol("B");
    private static final Dim LENGTH = Dim.symbol("L");

    /** What a row's softmax is over. */
    public enum Vocabulary {
        WHOLE,
        CUT
    }

    private final GraphBuilder graph;
    private final Transformer transformer;
    private final Value embedded;
    private final Value logProbs;
    private final Value entropies;
    private final Value all;
    private final Value probs;

    /** @param rows the wanted tokens: {@code [R]} one after the other, or {@code [B, P]} as many for every sequence */
    private SequenceGraph(DecoderShape shape, String name, Shape rows, Vocabulary vocabulary) {
        this.graph = new GraphBuilder(name);
        this.transformer = Transformer.declare(shape, graph);
        Operators ops = transformer.ops();
        Dim batch = BATCH;
        Dim length = LENGTH;
        Dim count = rows.product();
        Value tokens = graph.input(TOKENS, ElementType.INT64, Shape.of(batch, length));
        Value positions = graph.input(POSITIONS, ElementType.INT64, Shape.of(batch, length));
        Value cos = graph.input(COS, ElementType.FLOAT, Shape.of(length, Dim.of(shape.headSize() / 2)));
        Value sin = graph.input(SIN, ElementType.FLOAT, cos.shape());
        List<Value> masks = masks(shape);
        Value wanted = ops.reshape(graph.input(ROWS, ElementType.INT64, rows), Shape.of(count));
        Value targets = graph.input(TARGETS, ElementType.INT64, Shape.of(count));
        Value inverseTemperature = graph.input(INVERSE_TEMPERATURE, ElementType.FLOAT, Shape.of(count, Dim.ONE));

        this.embedded = transformer.embed(ops.reshape(tokens, Shape.of(batch.times(length))));
        Value hidden = transformer.layers(embedded, new FullAttention(shape, ops, positions, cos, sin, masks));
        Value whole = transformer.logits(ops.gather(hidden, wanted));
        Value logits = vocabulary == Vocabulary.WHOLE
                ? ops.mul(whole, inverseTemperature)
                : keptLogits(whole, count, inverseTemperature);
        this.all = ops.logSoftmax(logits, -1);
        this.probs = ops.exp(all);
        this.logProbs = ops.squeeze(ops.gatherElements(all, ops.unsqueeze(targets, -1), 1), 1);
        this.entropies = ops.neg(rowDots(probs, all));
        graph.output(LOG_PROBS, logProbs);
        graph.output(ENTROPIES, entropies);
        graph.output(SUM_SQUARED_PROBS, rowDots(probs, probs));
    }

    /** Whether the graphs take {@link #MASK}. */
    public static boolean hasFullLayers(DecoderShape shape) {
        return !shape.traits().isWindowed(0);
    }

    /** Whether the graphs take {@link #WINDOW_MASK}. */
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

    private Value keptLogits(Value whole, Dim count, Value inverseTemperature) {
        Operators ops = transformer.ops();
        Value kept = graph.input(KEPT, ElementType.INT64, Shape.of(count, Dim.symbol("M")));
        Value mask = graph.input(KEPT_MASK, ElementType.FLOAT, kept.shape());
        return ops.add(ops.mul(ops.gatherElements(whole, kept, 1), inverseTemperature), mask);
    }

    /**
     * {@code sum_i a_i b_i} of each row, as products of single rows: the CPU's ReduceSum groups its terms by the memory
     * alignment of the row, which would let the place in the batch show in the last bit.
     */
    private Value rowDots(Value a, Value b) {
        Operators ops = transformer.ops();
        Value dots = ops.fusedMatMul(ops.unsqueeze(a, 1), ops.unsqueeze(b, 1), false, true, 1f);
        return ops.squeeze(ops.squeeze(dots, 2), 1);
    }

    /** The forward pass alone. */
    public static ModelProto scoring(DecoderShape shape, Vocabulary vocabulary) {
        return new SequenceGraph(shape, "scoring", Shape.of(Dim.symbol("R")), vocabulary).graph.model();
    }

    /**
     * The forward pass with what it says of k tokens at each position: further input {@link #ENTRIES} int64 [R, k], ids or places
     * as {@link #TARGETS}, all of a row different; further outputs {@link #ENTRY_LOG_PROBS} [R, k] and
     * {@link #ENTRY_REMAINDERS} [R], the log of the probability of all others together.
     */
    public static ModelProto scoringEntries(DecoderShape shape, Vocabulary vocabulary, int k) {
        SequenceGraph sequence = new SequenceGraph(shape, "scoring-entries", Shape.of(Dim.symbol("R")), vocabulary);
        Operators ops = sequence.transformer.ops();
        Value entries = sequence.graph.input(ENTRIES, ElementType.INT64, Shape.of(Dim.symbol("R"), Dim.of(k)));
        Value taken = ops.neg(ops.gatherElements(sequence.probs, entries, 1));
        Value rest = ops.scatterElementsAdd(sequence.probs, entries, taken, 1); // p - p is exactly 0
        sequence.graph.output(ENTRY_LOG_PROBS, ops.gatherElements(sequence.all, entries, 1));
        sequence.graph.output(ENTRY_REMAINDERS, ops.log(ops.reduceSum(rest, false, 1)));
        return sequence.graph.model();
    }

    /**
     * The forward pass and the gradient: further inputs {@link #LOG_PROB_COEFFICIENTS} and {@link #ENTROPY_COEFFICIENTS}
     * [R], further outputs {@link #EMBEDDED_GRADIENT} and, for every tensor of {@link #differentiated}, {@link #gradientOf}.
     */
    public static ModelProto gradient(DecoderShape shape, Vocabulary vocabulary) {
        SequenceGraph sequence = new SequenceGraph(shape, "gradient", Shape.of(Dim.symbol("R")), vocabulary);
        Map<Value, Value> seeds = new LinkedHashMap<>();
        Shape perToken = sequence.logProbs.shape();
        seeds.put(sequence.logProbs, sequence.graph.input(LOG_PROB_COEFFICIENTS, ElementType.FLOAT, perToken));
        seeds.put(sequence.entropies, sequence.graph.input(ENTROPY_COEFFICIENTS, ElementType.FLOAT, perToken));
        Map<String, Value> leaves = new LinkedHashMap<>();
        leaves.put(EMBEDDED_GRADIENT, sequence.embedded);
        differentiated(shape)
                .forEach(spec -> leaves.put(gradientOf(spec.name()), sequence.transformer.weight(spec.name())));
        Map<Value, Value> gradients = ReverseMode.append(sequence.graph, seeds, List.copyOf(leaves.values()));
        leaves.forEach((name, leaf) ->
                sequence.graph.output(name, Objects.requireNonNull(gradients.get(leaf), "every leaf was asked for")));
        return sequence.graph.model();
    }

    /**
     * The forward pass and, for every sequence, the squared norm of its own gradient {@code d(sum_t c_t log pi(y_t)) / dW} by
     * all weights: {@link #ROWS} is [B, P], each sequence's wanted tokens filled up to P with some of coefficient 0; R is B*P
     * elsewhere; further input {@link #LOG_PROB_COEFFICIENTS} [R], further output {@link #SQUARED_NORMS}.
     *
     * @param byGram of {@link #cheaperByGram}; decides what the graph costs, and the last bits of what it finds
     */
    public static ModelProto gradientNorms(DecoderShape shape, Vocabulary vocabulary, Set<String> byGram) {
        Dim scored = Dim.symbol("P");
        SequenceGraph sequence = new SequenceGraph(shape, "gradient-norms", Shape.of(BATCH, scored), vocabulary);
        Value coefficients = sequence.graph.input(LOG_PROB_COEFFICIENTS, ElementType.FLOAT, sequence.logProbs.shape());
        sequence.graph.output(
                SQUARED_NORMS,
                ExampleNorms.append(
                        sequence.graph,
                        Map.of(sequence.logProbs, coefficients),
                        sequence.embedded,
                        sequence.transformer.weights().values(),
                        new Examples(BATCH, List.of(LENGTH, scored)),
                        weight -> byGram.contains(weight.name())));
        return sequence.graph.model();
    }

    /**
     * Names of the matrices whose gradients' norms are cheaper to have through Gram matrices, at so many rows a sequence:
     * {@code n (in + out) <= in out}.
     *
     * @param length padded tokens of a sequence
     * @param scored wanted tokens of a sequence, which alone reach the head
     */
    public static Set<String> cheaperByGram(DecoderShape shape, int length, int scored) {
        String head = shape.tiedHead() ? TensorNames.EMBEDDING : TensorNames.HEAD;
        return differentiated(shape).stream()
                .filter(spec -> spec.dims().size() == 2)
                .filter(spec -> {
                    long out = spec.dims().get(0);
                    long in = spec.dims().get(1);
                    return (spec.name().equals(head) ? scored : length) * (in + out) <= in * out;
                })
                .map(TensorSpec::name)
                .collect(Collectors.toUnmodifiableSet());
    }

    /**
     * The tensors whose gradient the graph returns whole. An untied embedding is not among them: all of its gradient comes
     * through {@link #EMBEDDED_GRADIENT}, while a tied one gets that and what its use as head contributes.
     */
    public static List<TensorSpec> differentiated(DecoderShape shape) {
        return shape.tensors().stream()
                .filter(spec -> shape.tiedHead() || !spec.name().equals(TensorNames.EMBEDDING))
                .toList();
    }

    /** Name of the tensor that {@link #EMBEDDED_GRADIENT} belongs to. */
    public static String embedding() {
        return TensorNames.EMBEDDING;
    }

    public static String gradientOf(String tensor) {
        return "gradient." + tensor;
    }
}
