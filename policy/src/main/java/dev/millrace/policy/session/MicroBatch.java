package dev.millrace.policy.session;

import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.decoder.RoutingPorts;
import dev.millrace.policy.decoder.SequenceGraph.Rows;
import dev.millrace.policy.decoder.SequenceGraph.Vocabulary;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Objects;
import java.util.TreeMap;

/**
 * A rectangle of sequences that go through a graph together, padded on the right to one length.
 *
 * <p>The padded length is a function of the sequence's own length alone, and a rectangle holds one padded length: how a
 * row's sums are grouped inside the kernels then depends on the sequence only, which keeps its results bit-identical in
 * any batch. The same holds for the padded number of kept tokens.
 *
 * @param sequences indices into the batch, ascending
 * @param length    padded number of input tokens (a sequence of n tokens feeds n-1)
 * @param width     padded number of tokens that a row was drawn from; 0 is the whole vocabulary
 * @param aligned   rows of every sequence, its scored tokens first; 0 if scored tokens follow each other without gaps
 * @param chunks    parts of as many rows that go through the head one after the other; 1 if all rows do at once
 */
record MicroBatch(SequenceBatch batch, int[] sequences, int length, int width, int aligned, int chunks) {
    /** Kernels use another code path, with other rounding, for a product with a single row: avoid it. */
    private static final int SMALLEST_LENGTH = 4;

    private static final int SMALLEST_WIDTH = 4;

    /** Common properties of the sequences of a rectangle. */
    private record Size(int width, int length) {}

    /**
     * Cuts a batch into rectangles, those over the whole vocabulary first, then by width; shortest padded length first, in
     * batch order within a length.
     *
     * @param limit how many sequences may be in a rectangle
     */
    static List<MicroBatch> plan(SequenceBatch batch, RowLimit limit, DecoderShape shape) {
        TreeMap<Size, List<Integer>> bySize =
                new TreeMap<>(Comparator.comparingInt(Size::width).thenComparingInt(Size::length));
        batch.requireFits(shape);
        for (int s = 0; s < batch.sequenceCount(); s++) {
            if (batch.firstScored(s) < batch.length(s)) {
                SampledSupport kept = batch.kept(s);
                Size size = new Size(kept == null ? 0 : paddedWidth(kept.widest()), paddedLength(batch.length(s) - 1));
                bySize.computeIfAbsent(size, absent -> new ArrayList<>()).add(s);
            }
        }
        List<MicroBatch> plan = new ArrayList<>();
        bySize.forEach((size, sequences) -> {
            int height = limit.sequences(size.length());
            for (int from = 0; from < sequences.size(); from += height) {
                int[] part = sequences.subList(from, Math.min(sequences.size(), from + height)).stream()
                        .mapToInt(Integer::intValue)
                        .toArray();
                plan.add(new MicroBatch(batch, part, size.length(), size.width(), 0, 1));
            }
        });
        return plan;
    }

    /**
     * The next power of two: always leaves padding, which stands for tokens that were not kept; at most half is
     * padding.
     */
    private static int paddedWidth(int widest) {
        return Math.max(SMALLEST_WIDTH, 2 * Integer.highestOneBit(widest));
    }

    /** The next length in quarter-octave steps (4, 8, 12, 16, 20, 24, 28, 32, 40, 48, ...): at most a quarter is padding. */
    static int paddedLength(int length) {
        int step = Math.max(SMALLEST_LENGTH, Integer.highestOneBit(Math.max(1, length - 1)) / 4);
        return (length + step - 1) / step * step;
    }

    /** The same rectangle with as many rows for every sequence: what its own most scored sequence needs, in steps of four. */
    MicroBatch alignedRows() {
        int most = Arrays.stream(sequences)
                .map(s -> batch.length(s) - batch.firstScored(s))
                .max()
                .orElse(0);
        return new MicroBatch(
                batch, sequences, length, width, (most + SMALLEST_LENGTH - 1) / SMALLEST_LENGTH * SMALLEST_LENGTH, 1);
    }

    /** Returns the same rectangle with its rows split into equal chunks of at most {@code mostRows}. */
    MicroBatch inChunks(int mostRows) {
        int scored = scoredCount();
        return new MicroBatch(
                batch, sequences, length, width, aligned, Math.max(1, (scored + mostRows - 1) / mostRows));
    }

    long[] dims() {
        return new long[] {sequences.length, length};
    }

    /** Input tokens, [sequences, length]; padding is token 0, which no wanted row attends to. */
    long[] tokens() {
        long[] padded = new long[sequences.length * length];
        for (int row = 0; row < sequences.length; row++) {
            for (int t = 0; t < batch.length(sequences[row]) - 1; t++) {
                padded[row * length + t] = batch.token(sequences[row], t);
            }
        }
        return padded;
    }

    long[] positions() {
        long[] positions = new long[sequences.length * length];
        for (int i = 0; i < positions.length; i++) {
            positions[i] = i % length;
        }
        return positions;
    }

    /** Feeds the experts that each layer's tokens are to go through, of a model that has some. */
    void feedReplayed(DecoderShape shape, Feeds feeds) {
        int perToken = shape.traits().experts().perToken();
        for (int layer = 0; perToken > 0 && layer < shape.layers(); layer++) {
            feeds.longs(RoutingPorts.replayed(layer), replayed(layer, perToken), sequences.length, length, perToken);
        }
    }

    /** [sequences, length, perToken]: the experts that a layer's tokens are to go through, or that the router decides. */
    private long[] replayed(int layer, int perToken) {
        long[] ids = new long[Math.multiplyExact(sequences.length * length, perToken)];
        Arrays.fill(ids, RoutingPorts.OWN_CHOICE);
        for (int row = 0; row < sequences.length; row++) {
            RoutedExperts routing = batch.routing(sequences[row]);
            if (routing == null) {
                continue;
            }
            int fed = Math.min(routing.tokens(), batch.length(sequences[row]) - 1);
            for (int t = 0; t < fed; t++) {
                for (int i = 0; i < perToken; i++) {
                    ids[(row * length + t) * perToken + i] = routing.ids()[routing.at(t, layer) + i];
                }
            }
        }
        return ids;
    }

    int scoredCount() {
        int count = 0;
        for (int s : sequences) {
            count += batch.length(s) - batch.firstScored(s);
        }
        return count;
    }

    /** Rows that reach the head, at least two; unused ones repeat the first input and are ignored. */
    int rowCount() {
        if (aligned > 0) {
            return sequences.length * aligned;
        }
        return chunks == 1 ? Math.max(2, scoredCount()) : chunks * chunkRows();
    }

    /** Rows of each chunk; all where there is one. */
    int rowsAtOnce() {
        return chunks == 1 ? rowCount() : chunkRows();
    }

    private int chunkRows() {
        int rows = (scoredCount() + chunks - 1) / chunks;
        return (rows + SMALLEST_LENGTH - 1) / SMALLEST_LENGTH * SMALLEST_LENGTH;
    }

    /** {@code [rows]}, {@code [sequences, rows of each]}, or {@code [chunks, rows of each]}. */
    long[] rowDims() {
        if (aligned > 0) {
            return new long[] {sequences.length, aligned};
        }
        return chunks == 1 ? new long[] {rowCount()} : new long[] {chunks, chunkRows()};
    }

    Rows rowsInGraph() {
        return chunks == 1 ? Rows.AT_ONCE : Rows.IN_CHUNKS;
    }

    /** For each wanted token the flat index of the token before it. */
    long[] rows() {
        long[] rows = new long[rowCount()];
        forEachScored((index, row, t, packed) -> rows[index] = (long) row * length + t - 1);
        return rows;
    }

    /** For each wanted token its id, or its place among those that it was drawn from. */
    long[] targets() {
        long[] targets = new long[rowCount()];
        forEachScored((index, row, t, packed) -> {
            int s = sequences[row];
            int id = batch.token(s, t);
            targets[index] = width == 0 ? id : Math.max(0, kept(row).place(t - batch.firstScored(s), id));
        });
        return targets;
    }

    /** [rows, k]: ids, or places among those that a row was drawn from; the padding's last place for what was not kept. */
    long[] entries(int[][] ids, int k) {
        long[] entries = new long[Math.multiplyExact(rowCount(), k)];
        forEachScored((index, row, t, packed) -> {
            int token = t - batch.firstScored(sequences[row]);
            for (int i = 0; i < k; i++) {
                int id = ids[sequences[row]][token * k + i];
                int place = width == 0 ? id : place(row, token, id);
                entries[index * k + i] = place < 0 ? width - 1 : place;
            }
        });
        return entries;
    }

    /** A token that was not sampled is alone, at index 0. */
    private int place(int row, int token, int id) {
        SampledSupport kept = kept(row);
        int s = sequences[row];
        return kept.count(token) > 0
                ? kept.place(token, id)
                : batch.token(s, batch.firstScored(s) + token) == id ? 0 : -1;
    }

    /** Scatters k values per row into a packed array. */
    void putRows(float[] values, int k, float[] packedValues) {
        forEachScored((index, row, t, packed) -> System.arraycopy(values, index * k, packedValues, packed * k, k));
    }

    /** Returns whether rows were drawn from the whole vocabulary. */
    Vocabulary vocabulary() {
        return width == 0 ? Vocabulary.WHOLE : Vocabulary.CUT;
    }

    /** [rows, width]: the ids that each row was drawn from, then padding; a token that was not drawn is alone. */
    long[] keptIds() {
        long[] ids = new long[Math.multiplyExact(rowCount(), width)];
        forEachScored((index, row, t, packed) -> {
            int token = t - batch.firstScored(sequences[row]);
            SampledSupport kept = kept(row);
            ids[index * width] = batch.token(sequences[row], t); // where nothing was drawn
            for (int i = 0; i < kept.count(token); i++) {
                ids[index * width + i] = kept.id(token, i);
            }
        });
        return ids;
    }

    /** [rows, width]: 0 for what a row was drawn from, far below any logit for its padding. */
    float[] keptMask() {
        float[] mask = new float[Math.multiplyExact(rowCount(), width)];
        forEachScored((index, row, t, packed) -> {
            int count = Math.max(1, kept(row).count(t - batch.firstScored(sequences[row])));
            Arrays.fill(mask, index * width + count, (index + 1) * width, PositionTables.MASKED);
        });
        return mask;
    }

    private SampledSupport kept(int row) {
        return Objects.requireNonNull(batch.kept(sequences[row]), "a rectangle with a width has kept tokens");
    }

    /** One value per row, the inverse of its sequence's temperature. */
    float[] inverseTemperatures(float[] temperatures) {
        float[] inverse = new float[rowCount()];
        Arrays.fill(inverse, 1f);
        forEachScored((index, row, t, packed) -> inverse[index] = 1f / temperatures[sequences[row]]);
        return inverse;
    }

    /** Gathers this rectangle's values from a packed array; 0 for unused rows. */
    float[] pick(float[] packedValues) {
        float[] picked = new float[rowCount()];
        forEachScored((index, row, t, packed) -> picked[index] = packedValues[packed]);
        return picked;
    }

    /** Scatters this rectangle's values into a packed array. */
    void put(float[] values, float[] packedValues) {
        forEachScored((index, row, t, packed) -> packedValues[packed] = values[index]);
    }

    void refuseNonFinite(TokenScores scores) {
        forEachScored((index, row, t, packed) -> {
            if (!Float.isFinite(scores.logProbs()[packed]) || !Float.isFinite(scores.entropies()[packed])) {
                throw new NonFiniteScoreException(
                        sequences[row],
                        "sequence " + sequences[row] + ", token " + t + ": logProb=" + scores.logProbs()[packed]
                                + ", entropy=" + scores.entropies()[packed]
                                + "; the weights hold values no softmax survives");
            }
            if (scores.values().length > 0 && !Float.isFinite(scores.values()[packed])) {
                throw new NonFiniteScoreException(
                        sequences[row],
                        "sequence " + sequences[row] + ", token " + t + ": value=" + scores.values()[packed]
                                + "; the weights of the value head hold numbers that are not finite");
            }
        });
    }

    private void forEachScored(ScoredToken visitor) {
        int index = 0;
        for (int row = 0; row < sequences.length; row++) {
            int s = sequences[row];
            index = aligned > 0 ? row * aligned : index;
            for (int t = batch.firstScored(s); t < batch.length(s); t++) {
                visitor.visit(index++, row, t, batch.offset(s) + t - batch.firstScored(s));
            }
        }
    }

    @FunctionalInterface
    private interface ScoredToken {
        void visit(int index, int row, int position, int packed);
    }
}
