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
import org.jspecify.annotations.Nullable;

/**
 * The generating graph: a loop over token steps that also samples the tokens, for slots that hold one sequence each.
 *
 * <p>Every step feeds each slot's last token, at position {@code past}, and chooses the next: the forced one, or one
 * sampled by inverse CDF from one uniform number. N is the number of slots, T of steps, C the capacity. Inputs in
 * addition to the weights: {@link #STEPS} int64 scalar T (at most the sliding window, if the decoder has one);
 * {@link #LAST_TOKEN} and {@link #PAST} int64 [N]; {@link #FORCED} int64 [T, N] (negative: sample); {@link #UNIFORMS}
 * [T, N] in [0, 1); {@link #INVERSE_TEMPERATURE} [N, 1]; {@link #COS} and {@link #SIN} [C + T or more, headSize/2];
 * {@link #cache} [N, kvHeads, C, headSize], where a slot's first {@code past} rows are read; {@link #SLOTS}, int64 [N], their
 * numbers from 0; {@link #NUMBERS}, int64 [T], likewise of the steps; {@link #WRITTEN_FROM}, int64 [N], the cache row of
 * the first step's key. Keys beyond the last row go to the last row. Inputs with truncation:
 * {@link #TOP_K}, {@link #TOP_P} and {@link #MIN_P} [N, 1], and {@link #RECORDS_KEPT} [N, 1] if kept tokens are
 * recorded (1 for a slot that records). Outputs: {@link #TOKENS}, {@link #LOG_PROBS}, {@link #TEMPERATURE_LOG_PROBS},
 * {@link #ENTROPIES} [T, N]; {@link #grown}, the caches with the keys and values of this call, to be bound to the memory of
 * {@link #cache}. Optional outputs: {@link #KEPT_COUNTS} [T, N] and {@link #KEPT_IDS}, the tokens that
 * each draw was made from, step after step and slot after slot; {@link #TOP_IDS}, {@link #TOP_LOG_PROBS} [T, N, k] and
 * {@link #TOP_REMAINDERS} [T, N], the likeliest tokens and all others together. Outputs of a mixture of experts, for
 * each layer: {@link RoutingPorts#experts} int64 and {@link RoutingPorts#weights} [T, N, experts of a token], the
 * routing of the token that each step fed.
 */
public final class DecodeGraph {
    public static final String STEPS = "steps";
    public static final String LAST_TOKEN = "last_token";
    public static final String PAST = "past";
    public static final String SLOTS = "slots";
    public static final String NUMBERS = "numbers";
    public static final String WRITTEN_FROM = "written_from";
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
    private static final Dim ROWS = Dim.symbol("N");
    private static final Dim TRIPS = Dim.symbol("T");

    private final DecoderShape shape;
    private final int capacity;
    private final Features features;
    private final Precision precision;
    private final GraphBuilder graph;
    private final Operators ops;

    /**
     * Features of a graph beyond sampling from the whole distribution; unused ones cost nothing.
     *
     * @param truncating  whether top-k, top-p and min-p are supported; costs a sort of the vocabulary per step
     * @param recordsKept whether draws record the tokens that truncation kept; needs {@code truncating}
     * @param topLogProbs number of top tokens recorded per step; 0 for none
     */
    public record Features(boolean truncating, boolean recordsKept, int topLogProbs) {
        public static final Features NONE = new Features(false, false, 0);

        public Features {
            if (recordsKept && !truncating) {
                throw new IllegalArgumentException("recordsKept needs truncating: nothing is left out otherwise");
            }
        }
    }

    private DecodeGraph(DecoderShape shape, int capacity, Features features, Precision precision, boolean onDevice) {
        this.graph = new GraphBuilder("decode", onDevice);
        this.ops = new Operators(graph);
        this.shape = shape;
        this.capacity = capacity;
        this.features = features;
        this.precision = precision;
    }

    /** @param onDevice whether to replace operators that are slow on a device other than the CPU */
    public static ModelProto model(
            DecoderShape shape, int capacity, Features features, Precision precision, boolean onDevice) {
        return new DecodeGraph(shape, capacity, features, precision, onDevice).write();
    }

    /** Name of the cache of a layer's keys ({@code part} 0) or values ({@code part} 1). */
    public static String cache(int layer, int part) {
        return (part == 0 ? "past_keys." : "past_values.") + layer;
    }

    /** Name of the output that is a cache after the call. */
    public static String grown(int layer, int part) {
        return (part == 0 ? "keys." : "values.") + layer;
    }

    private ModelProto write() {
        Transformer transformer = Transformer.declare(shape, graph, precision);
        Value steps = graph.input(STEPS, ElementType.INT64, Shape.SCALAR);
        Value lastToken = graph.input(LAST_TOKEN, ElementType.INT64, Shape.of(ROWS));
        Value past = graph.input(PAST, ElementType.INT64, Shape.of(ROWS));
        Value forced = graph.input(FORCED, ElementType.INT64, Shape.of(TRIPS, ROWS));
        Value uniforms = graph.input(UNIFORMS, ElementType.FLOAT, Shape.of(TRIPS, ROWS));
        Value inverseTemperature = graph.input(INVERSE_TEMPERATURE, ElementType.FLOAT, Shape.of(ROWS, Dim.ONE));
        Value cos = graph.input(COS, ElementType.FLOAT, Shape.of(Dim.symbol("P"), Dim.of(shape.headSize() / 2)));
        Value sin = graph.input(SIN, ElementType.FLOAT, cos.shape());
        List<Value> caches = caches();
        TokenChoice choice = choice();
        Value pastMask = pastMask(past);

        Shape within = Shape.of(ROWS, Dim.of(shape.kvHeads()), Dim.symbol("W"), Dim.of(shape.headSize()));
        List<Loop.State> states = new ArrayList<>(List.of(Loop.State.of(lastToken)));
        Value empty = ops.zeros(within.with(2, Dim.of(0)));
        caches.forEach(cache -> states.add(new Loop.State(empty, within, within.with(2, TRIPS))));
        if (features.recordsKept()) {
            states.add(new Loop.State(
                    graph.constant(),
                    Shape.of(Dim.symbol("K_before")),
                    Shape.of(Dim.symbol("K")))); // grows with every step
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
                    new Attention.Rotation(positions, cos, sin, inside::rounded),
                    pastMasks,
                    caches,
                    entering.subList(1, 1 + caches.size()),
                    Dim.symbol("W_and_1"));
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
        Value slots = graph.input(SLOTS, ElementType.INT64, Shape.of(ROWS));
        Value numbers = graph.input(NUMBERS, ElementType.INT64, Shape.of(TRIPS));
        Value from = graph.input(WRITTEN_FROM, ElementType.INT64, Shape.of(ROWS));
        Value last = graph.scalar(capacity - 1L);
        Value rows = ops.add(ops.unsqueeze(from, 1), ops.unsqueeze(numbers, 0));
        Value places = CacheGraph.places(ops, slots, ops.where(ops.less(rows, last), rows, last), shape);
        for (int i = 0; i < caches.size(); i++) {
            graph.output(
                    grown(i / 2, i % 2),
                    ops.scatterRows(caches.get(i), places, loop.states().get(i + 1)));
        }
        return graph.model();
    }

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
        Shape cache = Shape.of(ROWS, Dim.of(shape.kvHeads()), Dim.of(capacity), Dim.of(shape.headSize()));
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
        Shape perSlot = Shape.of(ROWS, Dim.ONE);
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

    /**
     * Mask of each layer: a windowed one also masks rows outside the window before the step's position, int64 [slots,
     * 1].
     */
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

    /**
     * Attention of one new token per slot to its slot's past.
     *
     * <p>The past has two parts: the cache, which does not change during a call, and a window that grows by one key and
     * value per step of the call. So a step copies the window, which is as long as the call, and never the cache, which is as
     * long as the sequences.
     */
    static final class CachedAttention implements Attention {
        private final DecoderShape shape;
        private final Operators ops;
        private final Attention.Rotation rotation;
        private final List<Value> pastMasks;
        private final List<Value> past;
        private final List<Value> window;
        private final Dim grown;
        private final List<Value> grownWindow = new ArrayList<>();

        /**
         * @param rotation  of positions int64 [slots, 1], the position of the new token
         * @param pastMasks of each layer, [slots, 1, 1, capacity], added to the scores of the cache
         * @param past      keys and values of each layer, alternating, [slots, kvHeads, capacity, headSize]
         * @param window    likewise, [slots, kvHeads, steps so far, headSize]
         * @param grown     length of the window with the new token in it
         */
        CachedAttention(
                DecoderShape shape,
                Operators ops,
                Attention.Rotation rotation,
                List<Value> pastMasks,
                List<Value> past,
                List<Value> window,
                Dim grown) {
            this.shape = shape;
            this.ops = ops;
            this.rotation = rotation;
            this.pastMasks = pastMasks;
            this.past = past;
            this.window = window;
            this.grown = grown;
        }

        @Override
        public Value attend(int layer, Value query, Value key, Value value) {
            Dim slots = rotation.positions().dim(0);
            Dim kvHeads = Dim.of(shape.kvHeads());
            Dim headSize = Dim.of(shape.headSize());
            Shape grouped = Shape.of(slots, kvHeads, Dim.of(shape.headsPerKvHead()), headSize);
            Shape single = Shape.of(slots, kvHeads, Dim.ONE, headSize);
            float scale = (float) (1 / Math.sqrt(shape.headSize()));

            Value q = ops.reshape(rotation.turned(ops, query, shape.heads()), grouped);
            Value keys = ops.concat(
                    2, grown, window.get(2 * layer), ops.reshape(rotation.turned(ops, key, shape.kvHeads()), single));
            Value values = ops.concat(2, grown, window.get(2 * layer + 1), ops.reshape(value, single));
            grownWindow.add(keys);
            grownWindow.add(values);

            Value pastKeys = past.get(2 * layer);
            long capacity = pastKeys.dim(2).length();
            Value pastScores = ops.add(ops.fusedMatMul(q, pastKeys, false, true, scale), pastMasks.get(layer));
            Value newScores = ops.fusedMatMul(q, keys, false, true, scale);
            Value weights = ops.softmax(ops.concat(3, Dim.symbol("reach"), pastScores, newScores), -1);
            Value mixed = ops.add(
                    ops.matMul(ops.slice(weights, 3, 0, capacity), past.get(2 * layer + 1)),
                    ops.matMul(ops.sliceFrom(weights, 3, capacity, grown), values));
            return ops.reshape(mixed, query.shape());
        }

        /** The windows with the new token in them, once every layer has attended. */
        List<Value> grownWindow() {
            return grownWindow;
        }
    }

    /** Samples from {@code softmax(logits / temperature)} itself. */
    static final class PlainChoice implements TokenChoice {
        private final int top;

        /**
         * @param top      how many of the likeliest tokens are recorded; 0 records none
         */
        PlainChoice(int top) {
            this.top = top;
        }

        @Override
        public Chosen choose(Operators ops, Value logits, Value forced, Value uniform) {
            Value logProbs = ops.logSoftmax(logits, -1);
            Value probs = ops.exp(logProbs);
            Value wanted = ops.unsqueeze(forced, 1);
            Value sampled = TokenChoice.inverseCdf(ops, probs, uniform);
            Value token = ops.where(ops.less(wanted, ops.graph().scalar(0L)), sampled, wanted);
            Value logProb = TokenChoice.pick(ops, logProbs, token);
            return new Chosen(
                    ops.squeeze(token, 1),
                    logProb,
                    ops.identity(logProb),
                    TokenChoice.entropy(ops, probs, logProbs),
                    new Notes(null, top(ops, logProbs, probs)));
        }

        /** Sums the remaining probabilities: a difference to 1 would be pure rounding error if little remains. */
        private @Nullable Top top(Operators ops, Value logProbs, Value probs) {
            if (top == 0) {
                return null;
            }
            List<Value> largest = ops.top(logProbs, top);
            Value ids = largest.get(1);
            Value taken = ops.neg(ops.gatherElements(probs, ids, 1));
            Value rest = ops.scatterElementsAdd(probs, ids, taken, 1); // p - p is exactly 0
            return new Top(ids, largest.get(0), ops.log(ops.reduceSum(rest, false, 1)));
        }
    }

    /**
     * Samples from the likeliest tokens only. First it keeps the {@code k} likeliest (top-k). Of these, renormalised,
     * it keeps the fewest whose probabilities reach {@code p} (top-p, Holtzman et al., 2020). Of these it keeps tokens
     * with at least {@code m} times the probability of the likeliest (min-p, Nguyen et al., 2024). The kept tokens are
     * renormalised again; ties go to the smaller id.
     *
     * <p>A forced token that was not kept has a log-prob of minus infinity, its true value.
     */
    static final class TruncatedChoice implements TokenChoice {
        static final Dim KEPT_OF_A_STEP = Dim.symbol("K_of_a_step");

        private final Value topK;
        private final Value topP;
        private final Value minP;
        private final @Nullable Value records;
        private final int top;

        /**
         * @param topK    [slots, 1], the vocabulary's size or more to keep all
         * @param topP    [slots, 1], above 1 to keep all: at exactly 1 the running sum's rounding would cut a tail
         * @param minP    [slots, 1], 0 to keep all
         * @param records [slots, 1], 1 for a slot whose kept tokens are recorded, else 0; null if there is none
         * @param top     how many of the likeliest tokens are recorded; 0 records none
         */
        TruncatedChoice(Value topK, Value topP, Value minP, @Nullable Value records, int top) {
            this.topK = topK;
            this.topP = topP;
            this.minP = minP;
            this.records = records;
            this.top = top;
        }

        @Override
        public Chosen choose(Operators ops, Value logits, Value forced, Value uniform) {
            Value zero = ops.graph().scalar(0f);
            Value logProbs = ops.logSoftmax(logits, -1);
            Value entropy = TokenChoice.entropy(ops, ops.exp(logProbs), logProbs);
            List<Value> sorted = ops.sortDescending(logProbs);
            Value sortedProbs = ops.exp(sorted.get(0));
            long vocab = logits.dim(1).length();
            Value ranks = ops.cast(
                    ops.reshape(ops.graph().constant(LongStream.range(0, vocab).toArray()), Shape.of(1, vocab)),
                    ElementType.FLOAT);

            Value amongK = ops.where(ops.less(ranks, topK), sortedProbs, zero);
            Value reached = TokenChoice.sumsBefore(ops, amongK);
            Value enough = ops.mul(topP, ops.reduceSum(amongK, true, 1));
            Value nucleus = ops.where(ops.less(reached, enough), amongK, zero);
            Value least = ops.mul(minP, ops.slice(sortedProbs, 1, 0, 1));
            Value kept = ops.where(ops.lessOrEqual(least, nucleus), nucleus, zero);

            Value wanted = ops.unsqueeze(forced, 1);
            Value wantedRank = ops.cast(
                    ops.reduceSum(ops.where(ops.equal(sorted.get(1), wanted), ranks, zero), true, 1),
                    ElementType.INT64);
            Value rank = ops.where(
                    ops.less(wanted, ops.graph().scalar(0L)), TokenChoice.inverseCdf(ops, kept, uniform), wantedRank);
            Value total = ops.reduceSum(kept, false, 1);
            return new Chosen(
                    TokenChoice.pick(ops, sorted.get(1), rank),
                    ops.log(ops.div(TokenChoice.pick(ops, kept, rank), total)),
                    TokenChoice.pick(ops, sorted.get(0), rank),
                    entropy,
                    new Notes(
                            kept(ops, sorted.get(1), kept, wanted), top(ops, sorted, sortedProbs, kept, total, ranks)));
        }

        /** For slots that sample in this step; forced tokens have no kept set. */
        private @Nullable Kept kept(Operators ops, Value sortedIds, Value kept, Value wanted) {
            if (records == null) {
                return null;
            }
            Value zero = ops.graph().scalar(0f);
            Value drawn = ops.where(ops.less(wanted, ops.graph().scalar(0L)), ops.mul(kept, records), zero);
            Value isKept = ops.less(zero, drawn);
            Value counts = ops.cast(ops.reduceSum(ops.cast(isKept, ElementType.FLOAT), false, 1), ElementType.INT64);
            return new Kept(ops.compress(sortedIds, isKept, KEPT_OF_A_STEP), counts);
        }

        /**
         * Of the compared distribution: the truncated one if kept tokens are recorded, otherwise the one before
         * truncation.
         */
        private @Nullable Top top(
                Operators ops, List<Value> sorted, Value sortedProbs, Value kept, Value total, Value ranks) {
            if (top == 0) {
                return null;
            }
            Value probs = sortedProbs;
            Value logProbs = sorted.get(0);
            if (records != null) {
                Value cut = ops.less(ops.graph().scalar(0f), records);
                Value renormalised = ops.div(kept, ops.unsqueeze(total, 1));
                probs = ops.where(cut, renormalised, probs);
                logProbs = ops.where(cut, ops.log(renormalised), logProbs);
            }
            Value zero = ops.graph().scalar(0f);
            Value rest = ops.where(ops.less(ranks, ops.graph().scalar((float) top)), zero, probs);
            return new Top(
                    ops.slice(sorted.get(1), 1, 0, top),
                    ops.slice(logProbs, 1, 0, top),
                    ops.log(ops.reduceSum(rest, false, 1)));
        }
    }

    /** Chooses the token of a decode step: forced, or sampled by inverse CDF from one uniform number. */
    interface TokenChoice {
        /** Vocabulary entries per block. */
        long BLOCK = 64;

        /**
         * Result of one step per slot, all [slots].
         *
         * @param token              int64, the forced or the sampled one
         * @param logProb            of the token under the sampled distribution
         * @param temperatureLogProb of the token after temperature, before truncation
         * @param entropy            of the distribution after temperature, before truncation
         * @param notes              other recorded values of the step
         */
        record Chosen(Value token, Value logProb, Value temperatureLogProb, Value entropy, Notes notes) {}

        /**
         * Recorded values of a step in addition to its token.
         *
         * @param kept null where it is not recorded
         * @param top  null where it is not recorded
         */
        record Notes(@Nullable Kept kept, @Nullable Top top) {
            static final Notes NONE = new Notes(null, null);
        }

        /**
         * Kept tokens of the slots that sample and record them.
         *
         * @param ids    int64 [count], slot after slot, the likeliest of a slot first
         * @param counts int64 [slots]
         */
        record Kept(Value ids, Value counts) {}

        /**
         * The likeliest tokens.
         *
         * @param ids       int64 [slots, k]
         * @param logProbs  [slots, k]
         * @param remainder [slots], the log of the probability of all others together
         */
        record Top(Value ids, Value logProbs, Value remainder) {}

        /**
         * @param logits  after temperature, [slots, vocab]
         * @param forced  int64 [slots]; negative to sample
         * @param uniform [slots], in [0, 1)
         */
        Chosen choose(Operators ops, Value logits, Value forced, Value uniform);

        /**
         * Index in the vocabulary at which the running sum of the probabilities first exceeds
         * {@code uniform * total}: int64 [slots, 1].
         *
         * <p>An entry with probability 0 is never chosen, not even by a uniform of 0, because the running sum does not
         * rise there; {@code uniform * total} stays below the total in float arithmetic for every uniform below 1, so
         * an entry always exists.
         */
        static Value inverseCdf(Operators ops, Value probs, Value uniform) {
            long vocab = probs.dim(1).length();
            if (vocab > 4 * BLOCK) {
                return inverseCdfInBlocks(ops, probs, uniform);
            }
            Value running = ops.cumSum(probs, 1, false);
            Value threshold = ops.mul(ops.unsqueeze(uniform, 1), ops.slice(running, 1, vocab - 1, vocab));
            return ops.cast(countUpTo(ops, running, threshold), ElementType.INT64);
        }

        /**
         * Finds the block by the sums of the blocks, then the entry by the running sums within the block; each as
         * above.
         */
        private static Value inverseCdfInBlocks(Operators ops, Value probs, Value uniform) {
            Value cut = cut(ops, probs);
            Dim slots = cut.dim(0);
            long blocks = cut.dim(1).length();
            Value sums = ops.reduceSum(cut, false, 2);
            Value running = ops.cumSum(sums, 1, false);
            Value threshold = ops.mul(ops.unsqueeze(uniform, 1), ops.slice(running, 1, blocks - 1, blocks));
            Value block = ops.cast(countUpTo(ops, running, threshold), ElementType.INT64);
            Value before = ops.gatherElements(ops.cumSum(sums, 1, true), block, 1);
            Value inBlock = ops.expand(ops.unsqueeze(block, 2), Shape.of(slots, Dim.ONE, Dim.of(BLOCK)));
            Value within = ops.cumSum(
                    ops.reshape(ops.gatherElements(cut, inBlock, 1), Shape.of(slots, Dim.of(BLOCK))), 1, false);
            // below the block's sum despite rounding: the chosen block has a sum above 0
            Value most = ops.mul(ops.slice(within, 1, BLOCK - 1, BLOCK), Math.nextDown(1f));
            Value left = ops.sub(threshold, before);
            Value place = countUpTo(ops, within, ops.where(ops.less(left, most), left, most));
            return ops.add(ops.mul(block, ops.graph().scalar(BLOCK)), ops.cast(place, ElementType.INT64));
        }

        private static Value countUpTo(Operators ops, Value running, Value threshold) {
            return ops.reduceSum(ops.cast(ops.lessOrEqual(running, threshold), ElementType.FLOAT), true, 1);
        }

        /**
         * Exclusive running sums along axis 1. On a device they are built from sums within a block and of the blocks
         * before it, because its kernel adds every sum from the start, in quadratic time.
         */
        static Value sumsBefore(Operators ops, Value x) {
            long length = x.dim(1).length();
            if (!ops.graph().onDevice() || length <= 4 * BLOCK) {
                return ops.cumSum(x, 1, true);
            }
            Value cut = cut(ops, x);
            Value within = ops.cumSum(cut, 2, true);
            Value sums = ops.squeeze(
                    ops.add(ops.slice(within, 2, BLOCK - 1, BLOCK), ops.slice(cut, 2, BLOCK - 1, BLOCK)), 2);
            Value all = ops.add(within, ops.unsqueeze(ops.cumSum(sums, 1, true), 2));
            Value flat = ops.reshape(all, Shape.of(x.dim(0), Dim.of(cut.dim(1).length() * BLOCK)));
            return flat.dim(1).length() == length ? flat : ops.slice(flat, 1, 0, length);
        }

        private static Value cut(Operators ops, Value x) {
            long length = x.dim(1).length();
            long blocks = (length + BLOCK - 1) / BLOCK;
            Value padded = length == blocks * BLOCK ? x : ops.pad(x, 1, 0, blocks * BLOCK - length);
            return ops.reshape(padded, Shape.of(x.dim(0), Dim.of(blocks), Dim.of(BLOCK)));
        }

        static Value entropy(Operators ops, Value probs, Value logProbs) {
            return ops.neg(ops.reduceSum(ops.mul(probs, logProbs), false, 1));
        }

        static Value pick(Operators ops, Value perToken, Value index) {
            return ops.squeeze(ops.gatherElements(perToken, index, 1), 1);
        }
    }
}
