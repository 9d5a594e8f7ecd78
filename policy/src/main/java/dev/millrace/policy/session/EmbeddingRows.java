package dev.millrace.policy.session;

import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.decoder.EmbeddingGradient;
import dev.millrace.policy.decoder.LayerGradient;
import dev.millrace.policy.decoder.WholeTensor;
import dev.millrace.policy.ort.Place;
import dev.millrace.policy.ort.Session;
import dev.millrace.policy.ort.Tensor;
import dev.millrace.policy.weights.Gradients;
import dev.millrace.policy.weights.MatrixRows;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import java.util.stream.LongStream;

/**
 * Gradients of the embedding rows that tokens looked up. Kept separate until the end, because a tied embedding also
 * receives the head's gradient at the same time. Padding is left out. Not thread-safe.
 */
interface EmbeddingRows extends AutoCloseable {
    /**
     * Takes the gradient of the first layer's input, in the order of the micro-batches.
     *
     * @param flows {@link LayerGradient#INPUT_GRADIENT} [sequences * padded length, width]
     * @return whether the result is kept, and closed here
     */
    boolean add(MicroBatch micro, Session.Result flows);

    void addToGradient();

    @Override
    default void close() {}

    /** The sum of each row, on the host. */
    final class OnHost implements EmbeddingRows {
        private final int width;
        private final Gradients into;
        private final WholeTensor embedding;
        private final Map<Integer, float[]> sums = new TreeMap<>();

        OnHost(DecoderShape shape, Gradients into) {
            this.width = shape.hiddenSize();
            this.into = into;
            this.embedding = shape.embedding();
        }

        @Override
        public boolean add(MicroBatch micro, Session.Result flows) {
            float[] rows = flows.floats(LayerGradient.INPUT_GRADIENT);
            SequenceBatch batch = micro.batch();
            for (int row = 0; row < micro.sequences().length; row++) {
                int sequence = micro.sequences()[row];
                for (int t = 0; t < batch.length(sequence) - 1; t++) {
                    int from = (row * micro.length() + t) * width;
                    float[] sum = sums.computeIfAbsent(batch.token(sequence, t), absent -> new float[width]);
                    for (int i = 0; i < width; i++) {
                        sum[i] += rows[from + i];
                    }
                }
            }
            return false;
        }

        @Override
        public void addToGradient() {
            MatrixRows rows = new MatrixRows(into::tensor, embedding);
            float[] row = new float[width];
            sums.forEach((token, sum) -> {
                rows.get(token, row);
                for (int i = 0; i < width; i++) {
                    row[i] += sum[i];
                }
                rows.put(token, row);
            });
        }
    }

    /** Gradients on the device until they are summed there. */
    final class OnDevice implements EmbeddingRows {
        /** Tokens summed at once: bounds the memory of their sums. */
        private static final int AT_ONCE = 4096;

        private final WholeTensor embedding;
        private final Session graph;
        private final Place place;
        private final Map<String, Tensor> gradient;
        private final List<Flow> flows = new ArrayList<>();

        private record Flow(MicroBatch micro, Session.Result result) {}

        /** @param gradient of each tensor, by its name */
        OnDevice(DecoderShape shape, Session graph, Place place, Map<String, Tensor> gradient) {
            this.embedding = shape.embedding();
            this.graph = graph;
            this.place = place;
            this.gradient = gradient;
        }

        @Override
        public boolean add(MicroBatch micro, Session.Result result) {
            flows.add(new Flow(micro, result));
            return true;
        }

        @Override
        public void addToGradient() {
            for (Flow flow : flows) {
                Map<Integer, Chunk> open = new HashMap<>();
                SequenceBatch batch = flow.micro().batch();
                for (int row = 0; row < flow.micro().sequences().length; row++) {
                    int sequence = flow.micro().sequences()[row];
                    for (int t = 0; t < batch.length(sequence) - 1; t++) {
                        int token = batch.token(sequence, t);
                        int piece = pieceOf(token);
                        Chunk chunk = open.computeIfAbsent(piece, Chunk::new);
                        chunk.add(row * flow.micro().length() + t, token - embedding.firstRow(piece));
                        if (chunk.places.size() == AT_ONCE) {
                            add(flow, chunk);
                            open.remove(piece);
                        }
                    }
                }
                open.values().forEach(chunk -> add(flow, chunk));
            }
        }

        private int pieceOf(int token) {
            int piece = embedding.pieces().size() - 1;
            while (embedding.firstRow(piece) > token) {
                piece--;
            }
            return piece;
        }

        private void add(Flow flow, Chunk chunk) {
            Tensor sum = Objects.requireNonNull(
                    gradient.get(embedding.pieces().get(chunk.piece).name()));
            int tokens = chunk.places.size();
            int sums = chunk.rows.size();
            try (Feeds feeds = new Feeds()
                    .longs(EmbeddingGradient.PLACES, longs(chunk.places), tokens)
                    .longs(EmbeddingGradient.PARTS, longs(chunk.parts), tokens)
                    .longs(EmbeddingGradient.SUMS, LongStream.range(0, sums).toArray(), sums)
                    .longs(EmbeddingGradient.ROWS, longs(List.copyOf(chunk.rows.keySet())), sums)) {
                Map<String, Tensor> all = new HashMap<>(feeds.map());
                all.put(EmbeddingGradient.FLOWS, flow.result().tensor(LayerGradient.INPUT_GRADIENT));
                all.put(EmbeddingGradient.GRADIENT, sum);
                graph.run(all, List.of(), Map.of(EmbeddingGradient.NEXT, sum), place)
                        .close();
            }
        }

        private static long[] longs(List<Long> values) {
            return values.stream().mapToLong(Long::longValue).toArray();
        }

        @Override
        public void close() {
            flows.forEach(flow -> flow.result().close());
        }

        /** Tokens of one piece, in their order. */
        private static final class Chunk {
            private final int piece;
            private final List<Long> places = new ArrayList<>();
            private final List<Long> parts = new ArrayList<>();
            private final Map<Long, Long> rows = new LinkedHashMap<>();

            Chunk(int piece) {
                this.piece = piece;
            }

            void add(long place, long row) {
                places.add(place);
                long next = rows.size();
                parts.add(rows.computeIfAbsent(row, absent -> next));
            }
        }
    }
}
