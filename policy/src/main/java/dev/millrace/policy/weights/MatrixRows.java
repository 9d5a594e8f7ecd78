package dev.millrace.policy.weights;

import dev.millrace.policy.decoder.TensorSpec;
import dev.millrace.policy.decoder.WholeTensor;
import java.nio.FloatBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;
import java.util.stream.IntStream;

/** A live view of a matrix's rows by index, across the pieces of a set. As thread-safe as the set. */
public final class MatrixRows {
    private final List<FloatBuffer> pieces = new ArrayList<>();
    private final long[] firstRows;
    private final int width;

    /**
     * @param tensors by their names: {@link TensorSet#tensor}, or {@link TensorSet#values} for reading only
     * @param matrix of two axes, whose tensors are among these
     */
    public MatrixRows(Function<String, FloatBuffer> tensors, WholeTensor matrix) {
        for (TensorSpec piece : matrix.pieces()) {
            pieces.add(tensors.apply(piece.name()));
        }
        this.firstRows =
                IntStream.range(0, pieces.size()).mapToLong(matrix::firstRow).toArray();
        this.width = Math.toIntExact(matrix.dims().get(1));
    }

    public void get(int row, float[] into) {
        int piece = pieceOf(row);
        pieces.get(piece).get(place(row, piece), into, 0, width);
    }

    public void put(int row, float[] from) {
        int piece = pieceOf(row);
        pieces.get(piece).put(place(row, piece), from, 0, width);
    }

    private int place(int row, int piece) {
        return Math.multiplyExact((int) (row - firstRows[piece]), width);
    }

    private int pieceOf(int row) {
        int piece = firstRows.length - 1;
        while (firstRows[piece] > row) {
            piece--;
        }
        return piece;
    }
}
