package dev.millrace.policy.session;

import dev.millrace.policy.decoder.WholeTensor;
import dev.millrace.policy.weights.Gradients;
import dev.millrace.policy.weights.MatrixRows;
import java.util.Map;
import java.util.TreeMap;

/**
 * What flows into the rows of the embedding that tokens looked up: of each row that was, a sum. An embedding that is the head as well receives from the head
 * at the same time; so these are apart from it until the end. Not thread-safe.
 */
final class EmbeddingRows {
    private final int width;
    private final Map<Integer, float[]> sums = new TreeMap<>();

    EmbeddingRows(int width) {
        this.width = width;
    }

    /**
     * Adds each input token's row, in the order of the tokens. Padding receives no gradient and is left out.
     *
     * @param rows [sequences * padded length, width]
     */
    void add(MicroBatch micro, float[] rows) {
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
    }

    /** Adds the sums to a gradient. */
    void addTo(Gradients into, WholeTensor embedding) {
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
