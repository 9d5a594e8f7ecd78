package dev.millrace.policy.decoder;

import dev.millrace.policy.onnx.Dim;
import dev.millrace.policy.onnx.ElementType;
import dev.millrace.policy.onnx.GraphBuilder;
import dev.millrace.policy.onnx.Loop;
import dev.millrace.policy.onnx.Operators;
import dev.millrace.policy.onnx.Shape;
import dev.millrace.policy.onnx.Value;
import dev.millrace.policy.onnx.proto.ModelProto;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.stream.IntStream;
import java.util.stream.LongStream;

/**
 * The graph that generates: a loop over token steps with the choice of the token inside, over slots that hold a sequence
 * each.
 *
 * <p>Every step feeds each slot's last token, at position {@code past}, and chooses the next: the forced one, or one sampled
 * by inverse CDF from one uniform number. Inputs beside the weights, with N slots, T steps and capacity C:
 * {@link #STEPS} int64 scalar T (at most the sliding window, if the decoder has one), {@link #LAST_TOKEN} and {@link #PAST} int64 [N], {@link #FORCED} int64 [T, N] (negative:
 * sample), {@link #UNIFORMS} [T, N] in [0, 1), {@link #INVERSE_TEMPERATURE} [N, 1], {@link #COS} and {@link #SIN} [C + T or
 * more, headSize/2], {@link #cache} [N, kvHeads, C, headSize] of which a slot's first {@code past} rows are read; with
 * truncation also {@link #TOP_K}, {@link #TOP_P} and {@link #MIN_P} [N, 1], and {@link #RECORDS_KEPT} [N, 1] where kept tokens are recorded (1
 * for a slot that does). Outputs: {@link #TOKENS}, {@link #LOG_PROBS},
 * {@link #TEMPERATURE_LOG_PROBS}, {@link #ENTROPIES} [T, N], and {@link #window} [N, kvHeads, T, headSize], the keys and
 * values of this call, which the caller appends to the cache. On request also {@link #KEPT_COUNTS} [T, N] and
 * {@link #KEPT_IDS}, the tokens that each draw was made from, step after step and slot after slot; {@link #TOP_IDS},
 * {@link #TOP_LOG_PROBS} [T, N, k] and {@link #TOP_REMAINDERS} [T, N], the likeliest tokens and all others together.
 * Of a mixture of experts, for each layer {@link RoutingPorts#experts} int64 and {@link RoutingPorts#weights} [T, N, experts of a
 * token]: the routing of the token that each step fed.
 */
public final class DecodeGraph {
    public static final String STEPS = "steps";
    public static final String LAST_TOKEN = "last_token";
    public static final String PAST = "past";
    public static final String FORCED = "forced";
    public static final String UNIFORMS = "uniforms";
    public static final String INVERSE_TEMPERATURE = "inverse_temperature";
    public static final String COS = "cos";
    public static final String SIN = "sin";
    public static final String TOP_K = "top_k";
    public static final String TOP_P = "top_p";
    public static final String MIN_P = "min_p";
    public static final String TOKENS = "tokens";
    public static final String LOG_PROBS = "log_probs";
    public static final String TEMPERATURE_LOG_PROBS = "temperature_log_probs";
    public static final String ENTROPIES = "entropies";
    public static final String RECORDS_KEPT = "records_kept";
    public static final String KEPT_COUNTS = "kept_counts";
    public static final String KEPT_IDS = "kept_ids";
    public static final String TOP_IDS = "top_ids";
    public static final String TOP_LOG_PROBS = "top_log_probs";
    public static final String TOP_REMAINDERS = "top_remainders";
    private static final float MASKED = -1e9f;
    private static final Dim SLOTS = Dim.symbol("N");
    private static final Dim TRIPS = Dim.symbol("T");

    private final DecoderShape shape;
    private final int capacity;
    private final Features features;
    private final Precision precision;
    private final GraphBuilder graph = new GraphBuilder("decode");
    private final Operators ops = new Operators(graph);

    /**
     * What a graph can do beyond sampling from the whole distribution; what is not asked for costs nothing.
     *
     * @param truncating  whether top-k, top-p and min-p can be asked for; costs a sort of the vocabulary per step
     * @param recordsKept whether draws can say what truncation left; needs {@code truncating}
     * @param topLogProbs how many of the likeliest tokens each step names; 0 names none
     */
    public record Features(boolean truncating, boolean recordsKept, int topLogProbs) {
        public static final Features NONE = new Features(false, false, 0);

        public Features {
            if (recordsKept && !truncating) {
                throw new IllegalArgumentException("recordsKept needs truncating: nothing is left out otherwise");
            }
        }
    }

    private DecodeGraph(DecoderShape shape, int capacity, Features features, Precision precision) {
        this.shape = shape;
        this.capacity = capacity;
        this.features = features;
        this.precision = precision;
    }

    public static ModelProto model(DecoderShape shape, int capacity, Features features, Precision precision) {
        return new DecodeGraph(shape, capacity, features, precision).write();
    }

    /** Name of the cache of a layer's keys ({@code part} 0) or values ({@code part} 1). */
    public static String cache(int layer, int part) {
        return (part == 0 ? "past_keys." : "past_values.") + layer;
    }

    /** Name of the output that holds what the call adds to a cache. */
    public static String window(int layer, int part) {
        return (part == 0 ? "new_keys." : "new_values.") + layer;
    }

    private ModelProto write() {
        Transformer transformer = Transformer.declare(shape, graph, precision);
        Value steps = graph.input(STEPS, ElementType.INT64, Shape.SCALAR);
        Value lastToken = graph.input(LAST_TOKEN, ElementType.INT64, Shape.of(SLOTS));
        Value past = graph.input(PAST, ElementType.INT64, Shape.of(SLOTS));
        Value forced = graph.input(FORCED, ElementType.INT64, Shape.of(TRIPS, SLOTS));
        Value uniforms = graph.input(UNIFORMS, ElementType.FLOAT, Shape.of(TRIPS, SLOTS));
        Value inverseTemperature = graph.input(INVERSE_TEMPERATURE, ElementType.FLOAT, Shape.of(SLOTS, Dim.ONE));
        Value cos = graph.input(COS, ElementType.FLOAT, Shape.of(Dim.symbol("P"), Dim.of(shape.headSize() / 2)));
        Value sin = graph.input(SIN, ElementType.FLOAT, cos.shape());
        List<Value> caches = caches();
        TokenChoice choice = choice();
        Value pastMask = pastMask(past);

        Shape within = Shape.of(SLOTS, Dim.of(shape.kvHeads()), Dim.symbol("W"), Dim.of(shape.headSize()));
        List<Loop.State> states = new ArrayList<>(List.of(Loop.State.of(lastToken)));
        Value empty = ops.zeros(within.with(2, Dim.of(0)));
        caches.forEach(cache -> states.add(new Loop.State(empty, within, within.with(2, TRIPS))));
        if (features.recordsKept()) {
            states.add(new Loop.State(
                    graph.constant(),
                    Shape.of(Dim.symbol("K_before")),
                    Shape.of(Dim.symbol("K")))); // grows as it is filled
        }

        Loop loop = Loop.append(graph, steps, TRIPS, states, (body, number, entering) -> {
            RoutingNotes routing = new RoutingNotes();
            Transformer inside = transformer.inside(body).routed(routing);
            Operators o = inside.ops();
            Value positions = o.unsqueeze(o.add(past, number), 1);
            List<Value> pastMasks = pastMasks(o, pastMask, positions);
            CachedAttention attention = new CachedAttention(
                    shape,
                    o,
                    positions,
                    cos,
                    sin,
                    pastMasks,
                    caches,
                    entering.subList(1, 1 + caches.size()),
                    Dim.symbol("W_and_1"),
                    inside::rounded);
            Value hidden = inside.layers(inside.embed(entering.get(0)), attention);
            Value logits = o.mul(inside.logits(hidden), inverseTemperature);
            TokenChoice.Chosen chosen = choice.choose(o, logits, o.gather(forced, number), o.gather(uniforms, number));
            List<Value> leaving = new ArrayList<>(List.of(chosen.token()));
            leaving.addAll(attention.grownWindow());
            List<Value> results = new ArrayList<>(
                    List.of(chosen.token(), chosen.logProb(), chosen.temperatureLogProb(), chosen.entropy()));
            TokenChoice.Kept kept = chosen.notes().kept();
            if (kept != null) {
                Value before = entering.get(entering.size() - 1);
                leaving.add(o.concat(0, Dim.symbol("K_after"), before, kept.ids()));
                results.add(kept.counts());
            }
            TokenChoice.Top top = chosen.notes().top();
            if (top != null) {
                results.addAll(List.of(top.ids(), top.logProbs(), top.remainder()));
            }
            results.addAll(routing.experts());
            results.addAll(routing.weights());
            return new Loop.Iteration(leaving, results);
        });

        List<String> results = results();
        for (int i = 0; i < results.size(); i++) {
            graph.output(results.get(i), loop.results().get(i));
        }
        if (features.recordsKept()) {
            graph.output(KEPT_IDS, loop.states().get(1 + caches.size()));
        }
        for (int i = 0; i < caches.size(); i++) {
            graph.output(window(i / 2, i % 2), loop.states().get(i + 1));
        }
        return graph.model();
    }

    /** What every iteration leaves, in the order in which it does. */
    private List<String> results() {
        List<String> results = new ArrayList<>(List.of(TOKENS, LOG_PROBS, TEMPERATURE_LOG_PROBS, ENTROPIES));
        if (features.recordsKept()) {
            results.add(KEPT_COUNTS);
        }
        if (features.topLogProbs() > 0) {
            results.addAll(List.of(TOP_IDS, TOP_LOG_PROBS, TOP_REMAINDERS));
        }
        if (shape.traits().experts().present()) {
            IntStream.range(0, shape.layers()).mapToObj(RoutingPorts::experts).forEach(results::add);
            IntStream.range(0, shape.layers()).mapToObj(RoutingPorts::weights).forEach(results::add);
        }
        return results;
    }

    private List<Value> caches() {
        Shape cache = Shape.of(SLOTS, Dim.of(shape.kvHeads()), Dim.of(capacity), Dim.of(shape.headSize()));
        List<Value> caches = new ArrayList<>();
        for (int i = 0; i < 2 * shape.layers(); i++) {
            caches.add(graph.input(cache(i / 2, i % 2), ElementType.FLOAT, cache));
        }
        return caches;
    }

    private TokenChoice choice() {
        if (!features.truncating()) {
            return new PlainChoice(features.topLogProbs());
        }
        Shape perSlot = Shape.of(SLOTS, Dim.ONE);
        return new TruncatedChoice(
                graph.input(TOP_K, ElementType.FLOAT, perSlot),
                graph.input(TOP_P, ElementType.FLOAT, perSlot),
                graph.input(MIN_P, ElementType.FLOAT, perSlot),
                features.recordsKept() ? graph.input(RECORDS_KEPT, ElementType.FLOAT, perSlot) : null,
                features.topLogProbs());
    }

    /** [slots, 1, 1, capacity]: 0 for the rows of the cache that hold a key, far below any score for the rest. */
    private Value pastMask(Value past) {
        Value rows = graph.constant(LongStream.range(0, capacity).toArray());
        Value held = ops.less(rows, ops.unsqueeze(ops.unsqueeze(ops.unsqueeze(past, 1), 2), 3));
        return ops.where(held, graph.scalar(0f), graph.scalar(MASKED));
    }

    /** Of each layer: a windowed one also leaves out what lies too far back of the step's own position, int64 [slots, 1]. */
    private List<Value> pastMasks(Operators o, Value pastMask, Value positions) {
        if (!SequenceGraph.hasWindowedLayers(shape)) {
            return Collections.nCopies(shape.layers(), pastMask);
        }
        long window = shape.traits().slidingWindow();
        Value lastReader =
                graph.constant(LongStream.range(window, window + capacity).toArray());
        Value seen = o.less(o.unsqueeze(o.unsqueeze(positions, 2), 3), lastReader);
        Value windowed = o.where(seen, pastMask, graph.scalar(MASKED));
        return IntStream.range(0, shape.layers())
                .mapToObj(layer -> shape.traits().isWindowed(layer) ? windowed : pastMask)
                .toList();
    }
}
