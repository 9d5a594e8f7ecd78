package dev.millrace.audit.ledger;

import dev.millrace.log.scan.OffsetRange;
import java.util.HashMap;
import java.util.Map;
import java.util.Objects;

/**
 * One byte for each offset of a topic: an end (see {@link RolloutEnds}) and two marks.
 *
 * <p>Takes {@code 1 byte × (end − begin)} of each partition, in pieces of 64 KiB that are made where something is set.
 * Offsets that transactions use up count too. Not thread-safe.
 */
final class PlaceStates {
    private static final int PIECE_BITS = 16;
    private static final int END_MASK = RolloutEnds.COUNT - 1;
    /** A score of the record is on the log. */
    static final int SCORED = 0x40;
    /** The record itself is on the log. */
    static final int PRESENT = 0x80;

    /** Looks at one place. */
    interface Visitor {
        void visit(int partition, long offset, int end, boolean present);
    }

    private record Partition(OffsetRange range, byte[][] pieces) {}

    private final Map<Integer, Partition> partitions = new HashMap<>();

    PlaceStates(Map<Integer, OffsetRange> ranges) {
        ranges.forEach((partition, range) ->
                partitions.put(partition, new Partition(range, new byte[piece(range.end() - range.begin()) + 1][])));
    }

    private static int piece(long index) {
        return Math.toIntExact(index >> PIECE_BITS);
    }

    /** True if there is or was such a place; a record may name a partition that the topic never had, or lost when it was made again. */
    boolean isPlace(int partition, long offset) {
        return offset >= 0 && partitions.containsKey(partition);
    }

    boolean holds(int partition, long offset) {
        Partition found = partitions.get(partition);
        return found != null && found.range().holds(offset);
    }

    /** True if the place lies before what the log keeps. */
    boolean isDeleted(int partition, long offset) {
        Partition found = partitions.get(partition);
        return found != null && offset < found.range().begin();
    }

    int end(int partition, long offset) {
        return state(partition, offset) & END_MASK;
    }

    boolean has(int partition, long offset, int mark) {
        return (state(partition, offset) & mark) != 0;
    }

    void setEnd(int partition, long offset, int end) {
        put(partition, offset, state(partition, offset) & ~END_MASK | end);
    }

    void mark(int partition, long offset, int mark) {
        put(partition, offset, state(partition, offset) | mark);
    }

    /** Every place that has an end, in order. */
    void forEachEnd(Visitor visitor) {
        partitions.forEach((partition, stretch) -> {
            for (int p = 0; p < stretch.pieces().length; p++) {
                byte[] piece = stretch.pieces()[p];
                for (int i = 0; piece != null && i < piece.length; i++) {
                    if ((piece[i] & END_MASK) != 0) {
                        visitor.visit(
                                partition,
                                stretch.range().begin() + ((long) p << PIECE_BITS) + i,
                                piece[i] & END_MASK,
                                (piece[i] & PRESENT) != 0);
                    }
                }
            }
        });
    }

    private int state(int partition, long offset) {
        Partition found = Objects.requireNonNull(partitions.get(partition), "a partition of the topic");
        long index = offset - found.range().begin();
        byte[] piece = found.pieces()[piece(index)];
        return piece == null ? 0 : piece[(int) (index & (1 << PIECE_BITS) - 1)] & 0xff;
    }

    private void put(int partition, long offset, int state) {
        Partition found = Objects.requireNonNull(partitions.get(partition), "a partition of the topic");
        long index = offset - found.range().begin();
        int at = piece(index);
        if (found.pieces()[at] == null) {
            found.pieces()[at] = new byte[1 << PIECE_BITS];
        }
        found.pieces()[at][(int) (index & (1 << PIECE_BITS) - 1)] = (byte) state;
    }
}
