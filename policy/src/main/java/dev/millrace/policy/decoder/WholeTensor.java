package dev.millrace.policy.decoder;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.stream.IntStream;

/**
 * A tensor as in equations and files, and the pieces that hold it. A matrix with more elements than one piece may
 * have is split into ranges of its rows. There are as few ranges as possible, of nearly equal length. Ranges are named
 * {@code name[0]}, {@code name[1]} and so on, padded to the digits of the last one, so that their names sort in row
 * order. Concatenated they are the whole tensor, byte for byte.
 *
 * @param name   as in a Hugging Face checkpoint
 * @param dims   axis lengths, outermost first
 * @param pieces in the order of their rows; a single piece of the same name if the tensor is not split
 */
public record WholeTensor(String name, List<Long> dims, List<TensorSpec> pieces) {
    /** Far more than any model needs, and few enough to bound the piece count of a shape that no real model has. */
    private static final int MOST_PIECES = 64;

    public WholeTensor {
        dims = List.copyOf(dims);
        pieces = List.copyOf(pieces);
    }

    /**
     * Returns the tensor, split into as few pieces as possible.
     *
     * @param most largest element count of a piece
     * @throws IllegalArgumentException if a row alone has more, or there would be too many pieces
     */
    static WholeTensor of(int most, String name, long... dims) {
        List<Long> lengths = Arrays.stream(dims).boxed().toList();
        long rows = dims[0];
        long width = Arrays.stream(dims).skip(1).reduce(1, Math::multiplyExact);
        if (Math.multiplyExact(rows, width) <= most) {
            return new WholeTensor(name, lengths, List.of(TensorSpec.of(name, dims)));
        }
        if (dims.length < 2 || width > most) {
            throw new IllegalArgumentException(String.format(
                    Locale.ROOT,
                    "%s has %s of %,d numbers, and a tensor may have %,d: matrices are cut between their rows, and not within one;"
                            + " take a model with narrower layers, or raise the limit (model.max_tensor_elements) where it is below %,d",
                    name,
                    dims.length < 2 ? "a row" : "rows",
                    dims.length < 2 ? rows : width,
                    most,
                    TensorSpec.MOST_ELEMENTS));
        }
        long rowsOfAPiece = most / width;
        long count = (rows + rowsOfAPiece - 1) / rowsOfAPiece;
        if (count > MOST_PIECES) {
            throw new IllegalArgumentException(String.format(
                    Locale.ROOT,
                    "%s has %,d numbers and would lie in %,d tensors of at most %,d, and a matrix may lie in %d; take a model with narrower"
                            + " layers, or raise the limit (model.max_tensor_elements) where it is below %,d",
                    name,
                    rows * width,
                    count,
                    most,
                    MOST_PIECES,
                    TensorSpec.MOST_ELEMENTS));
        }
        String number = "%s[%0" + Long.toString(count - 1).length() + "d]";
        List<TensorSpec> pieces = new ArrayList<>();
        for (long i = 0; i < count; i++) {
            long[] piece = dims.clone();
            piece[0] = (i + 1) * rows / count - i * rows / count;
            pieces.add(TensorSpec.of(String.format(Locale.ROOT, number, name, i), piece));
        }
        return new WholeTensor(name, lengths, pieces);
    }

    public static String nameOf(String tensor) {
        int bracket = tensor.endsWith("]") ? tensor.lastIndexOf('[') : -1;
        return bracket < 0 ? tensor : tensor.substring(0, bracket);
    }

    public boolean isCut() {
        return pieces.size() > 1;
    }

    /** Product of the axis lengths. */
    public long elementCount() {
        return pieces.stream().mapToLong(TensorSpec::elementCount).sum();
    }

    /** First row of a piece in the whole; the number of rows for the index after the last piece. */
    public long firstRow(int piece) {
        return IntStream.range(0, piece)
                .mapToLong(i -> pieces.get(i).dims().get(0))
                .sum();
    }

    /** First element of a piece in the whole. */
    public long firstElement(int piece) {
        return pieces.subList(0, piece).stream()
                .mapToLong(TensorSpec::elementCount)
                .sum();
    }
}
