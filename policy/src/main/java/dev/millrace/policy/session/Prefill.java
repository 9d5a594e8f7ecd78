package dev.millrace.policy.session;

import dev.millrace.policy.decoder.DecodeGraph;
import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.decoder.PrefillGraph;
import dev.millrace.policy.decoder.SequenceGraph;
import dev.millrace.policy.ort.OrtException;
import dev.millrace.policy.ort.Session;
import dev.millrace.policy.weights.Weights;
import java.nio.FloatBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.TreeMap;
import java.util.stream.LongStream;
import org.jspecify.annotations.Nullable;

/**
 * Computes keys and values of known tokens, many at once, and puts them into the cache.
 *
 * <p>Pieces go through the graph in rectangles of one padded length and one padded past, both functions of the piece alone:
 * a piece's cache entries are bit-identical in any batch.
 */
final class Prefill {
    private final Engine engine;
    private final DecoderShape shape;
    private final Graph graph;
    private final KeyValueCache cache;
    private final HeldRouting routing;
    private final PositionTables positions;
    private final int tokenBudget;

    /**
     * The graph for all slots of a shape, shared by its users and compiled on first use: a session that only forces
     * tokens has none. Thread-safe.
     */
    static final class Graph implements AutoCloseable {
        private final Engine engine;
        private final DecoderShape shape;
        private final PreparedWeights prepared;
        private @Nullable WeightedGraph beginning;
        private @Nullable WeightedGraph extending;

        Graph(Engine engine, DecoderShape shape, PreparedWeights prepared) {
            this.engine = engine;
            this.shape = shape;
            this.prepared = prepared;
        }

        /** @param hasPast whether there are tokens before those that are fed */
        synchronized WeightedGraph get(boolean hasPast) {
            WeightedGraph known = hasPast ? extending : beginning;
            if (known != null) {
                return known;
            }
            WeightedGraph made = prepared.graph(
                    engine, PrefillGraph.model(shape, prepared.precision(), !engine.isInPlace(), hasPast), false);
            if (hasPast) {
                extending = made;
            } else {
                beginning = made;
            }
            return made;
        }

        @Override
        public synchronized void close() {
            if (beginning != null) {
                beginning.close();
            }
            if (extending != null) {
                extending.close();
            }
        }
    }

    /**
     * Tokens to feed.
     *
     * @param past rows that the slot's cache holds in front of them
     */
    record Piece(int slot, int past, int[] tokens) {}

    private record Size(int past, int length) {}

    /**
     * @param graph      stays the caller's
     * @param tokenBudget most padded tokens in a rectangle, unless a piece alone has more
     */
    Prefill(
            Engine engine,
            DecoderShape shape,
            Graph graph,
            KeyValueCache cache,
            HeldRouting routing,
            PositionTables positions,
            int tokenBudget) {
        this.engine = engine;
        this.shape = shape;
        this.graph = graph;
        this.cache = cache;
        this.routing = routing;
        this.positions = positions;
        this.tokenBudget = tokenBudget;
    }

    void feed(Weights weights, List<Piece> pieces) {
        TreeMap<Size, List<Piece>> bySize =
                new TreeMap<>(Comparator.comparingInt(Size::past).thenComparingInt(Size::length));
        for (Piece piece : pieces) {
            Size size = new Size(
                    piece.past() == 0 ? 0 : MicroBatch.paddedLength(piece.past()),
                    MicroBatch.paddedLength(piece.tokens().length));
            bySize.computeIfAbsent(size, absent -> new ArrayList<>()).add(piece);
        }
        bySize.forEach((size, same) -> {
            int height = Math.max(1, tokenBudget / size.length());
            for (int from = 0; from < same.size(); from += height) {
                run(weights, size, same.subList(from, Math.min(same.size(), from + height)));
            }
        });
    }

    private void run(Weights weights, Size size, List<Piece> pieces) {
        int height = pieces.size();
        int length = size.length();
        int reach = size.past() + length;
        long[] tokens = new long[height * length];
        long[] places = new long[height * length];
        long[] rows = new long[height * length];
        Arrays.fill(rows, cache.capacity() - 1L); // of padding
        for (int row = 0; row < height; row++) {
            Piece piece = pieces.get(row);
            for (int t = 0; t < piece.tokens().length; t++) {
                tokens[row * length + t] = piece.tokens()[t];
                places[row * length + t] = (long) piece.past() + t;
                rows[row * length + t] = (long) piece.past() + t;
            }
        }
        int tableRows = positions.rows();
        int half = shape.headSize() / 2;
        int[] slots = pieces.stream().mapToInt(Piece::slot).toArray();
        WeightedGraph compiled = graph.get(size.past() > 0);
        try (Feeds feeds = new Feeds();
                WeightedGraph.Weighted weighted = compiled.with(weights);
                Session.Binding binding = weighted.session().bind()) {
            feeds.longs(PrefillGraph.TOKENS, tokens, height, length)
                    .longs(PrefillGraph.POSITIONS, places, height, length)
                    .longs(PrefillGraph.ROWS, rows, height, length)
                    .longs(
                            DecodeGraph.SLOTS,
                            Arrays.stream(slots).asLongStream().toArray(),
                            height)
                    .floats(PrefillGraph.COS, positions.cos(), tableRows, half)
                    .floats(PrefillGraph.SIN, positions.sin(), tableRows, half);
            if (size.past() > 0) {
                feeds.longs(
                        PrefillGraph.PAST_ROWS, LongStream.range(0, size.past()).toArray(), size.past());
            }
            if (SequenceGraph.hasFullLayers(shape)) {
                feeds.floats(PrefillGraph.MASK, mask(size, pieces, tableRows), height, 1, length, reach);
            }
            if (SequenceGraph.hasWindowedLayers(shape)) {
                FloatBuffer mask = mask(size, pieces, shape.traits().slidingWindow());
                feeds.floats(PrefillGraph.WINDOW_MASK, mask, height, 1, length, reach);
            }
            weighted.tensors().forEach(binding::input);
            feeds.map().forEach(binding::input);
            cache.bind(binding);
            routing.bindKnown(binding);
            try (Session.Result result = binding.run()) {
                for (int row = 0; row < height; row++) {
                    Piece piece = pieces.get(row);
                    routing.takeKnown(result, row, length, piece.slot(), piece.past(), piece.tokens().length);
                }
            }
        } catch (OrtException e) {
            throw new InferenceException(
                    "ONNX Runtime failed to take in " + height + " sequences of " + length + " tokens on device "
                            + engine.device() + ": " + e.getMessage(),
                    e);
        }
    }

    /** [height, 1, length, past + length]: 0 where a token sees another one, past ones first. */
    private static FloatBuffer mask(Size size, List<Piece> pieces, int window) {
        int reach = size.past() + size.length();
        float[] row = new float[reach];
        FloatBuffer mask = PositionTables.direct(Math.multiplyExact(pieces.size() * size.length(), reach));
        for (Piece piece : pieces) {
            for (int query = 0; query < size.length(); query++) {
                for (int key = 0; key < reach; key++) {
                    boolean isPast = key < size.past();
                    int back = isPast ? piece.past() + query - key : query - (key - size.past());
                    boolean held = !isPast || key < piece.past();
                    row[key] = held && back >= 0 && back < window ? 0 : PositionTables.MASKED;
                }
                mask.put(row);
            }
        }
        return mask.flip();
    }
}
