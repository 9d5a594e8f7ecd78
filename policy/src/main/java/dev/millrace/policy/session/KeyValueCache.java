package dev.millrace.policy.session;

import dev.millrace.policy.decoder.DecodeGraph;
import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.ort.Session;
import java.nio.FloatBuffer;
import java.util.ArrayList;
import java.util.List;

/**
 * Keys and values of every token fed so far: per layer two direct buffers {@code [slots, kvHeads, capacity, headSize]}.
 *
 * <p>The graph reads them in place and returns only what a call adds; the rows a slot really took are then written here.
 */
final class KeyValueCache implements AutoCloseable {
    private final DecoderShape shape;
    private final int slots;
    private final int capacity;
    private final List<FloatBuffer> buffers = new ArrayList<>();
    private final Feeds feeds;
    private final FloatBuffer[] gathered; // of each buffer, room for rows of some slots one behind the other
    private final FloatBuffer empty = PositionTables.direct(0);

    KeyValueCache(DecoderShape shape, int slots, int capacity) {
        this.shape = shape;
        this.slots = slots;
        this.capacity = capacity;
        long floats = (long) slots * shape.kvHeads() * capacity * shape.headSize();
        if (floats > Integer.MAX_VALUE / Float.BYTES) {
            throw new IllegalArgumentException("the cache of one layer would hold " + floats
                    + " floats, more than one buffer's "
                    + Integer.MAX_VALUE / Float.BYTES + ": slots=" + slots + ", capacityTokens=" + capacity
                    + "; take fewer slots per session");
        }
        this.gathered = new FloatBuffer[2 * shape.layers()];
        this.feeds = new Feeds();
        for (int i = 0; i < 2 * shape.layers(); i++) {
            FloatBuffer buffer = PositionTables.direct((int) floats);
            buffers.add(buffer);
            feeds.floats(DecodeGraph.cache(i / 2, i % 2), buffer, slots, shape.kvHeads(), capacity, shape.headSize());
        }
    }

    /** The caches of the first slots; what is not of all of them is to be closed. */
    Feeds tensors(int first) {
        if (first == slots) {
            return new Feeds(feeds.map());
        }
        Feeds some = new Feeds();
        for (int i = 0; i < buffers.size(); i++) {
            FloatBuffer part = buffers.get(i).slice(0, first * shape.kvHeads() * capacity * shape.headSize());
            some.floats(DecodeGraph.cache(i / 2, i % 2), part, first, shape.kvHeads(), capacity, shape.headSize());
        }
        return some;
    }

    /**
     * Gathers the first rows of some slots, slot after slot: [slots, kvHeads, padded, headSize] in a buffer that the
     * next call for the same part reuses. Rows beyond a slot's own hold stale values.
     *
     * @param part 2 * layer, or 2 * layer + 1 for the values
     * @param held rows of each slot
     */
    FloatBuffer rows(int part, int[] ofSlots, int[] held, int padded) {
        if (padded == 0) {
            return empty.duplicate();
        }
        int headSize = shape.headSize();
        int floats = Math.multiplyExact(ofSlots.length * shape.kvHeads() * headSize, padded);
        FloatBuffer room = gathered[part];
        if (room == null || room.capacity() < floats) {
            room = PositionTables.direct(floats);
            gathered[part] = room;
        }
        for (int i = 0; i < ofSlots.length; i++) {
            for (int head = 0; head < shape.kvHeads(); head++) {
                room.put(
                        (i * shape.kvHeads() + head) * padded * headSize,
                        buffers.get(part),
                        row(ofSlots[i], head, 0),
                        held[i] * headSize);
            }
        }
        return room.slice(0, floats);
    }

    /**
     * Writes rows of a slot.
     *
     * @param at     first of them
     * @param values [any, kvHeads, length, headSize]; the {@code index}-th entry is the slot's
     */
    void put(int part, int slot, int at, float[] values, int index, int length, int rows) {
        int headSize = shape.headSize();
        for (int head = 0; head < shape.kvHeads(); head++) {
            buffers.get(part)
                    .put(
                            row(slot, head, at),
                            values,
                            (index * shape.kvHeads() + head) * length * headSize,
                            rows * headSize);
        }
    }

    /** Gives a slot the first rows of one of another cache of this shape, or of its own. */
    void copy(KeyValueCache of, int from, int to, int rows) {
        for (int part = 0; part < buffers.size(); part++) {
            for (int head = 0; head < shape.kvHeads(); head++) {
                buffers.get(part)
                        .put(row(to, head, 0), of.buffers.get(part), of.row(from, head, 0), rows * shape.headSize());
            }
        }
    }

    /** Copies of a slot's first rows: of each buffer [kvHeads, rows, headSize]. */
    float[][] take(int slot, int rows) {
        int floats = rows * shape.headSize();
        float[][] parts = new float[buffers.size()][shape.kvHeads() * floats];
        for (int i = 0; i < parts.length; i++) {
            for (int head = 0; head < shape.kvHeads(); head++) {
                buffers.get(i).get(row(slot, head, 0), parts[i], head * floats, floats);
            }
        }
        return parts;
    }

    /**
     * Restores rows that {@link #take} returned into a slot.
     *
     * @param taken number of rows taken
     * @param rows number of leading rows to restore
     */
    void give(int slot, float[][] parts, int taken, int rows) {
        for (int i = 0; i < parts.length; i++) {
            for (int head = 0; head < shape.kvHeads(); head++) {
                buffers.get(i)
                        .put(row(slot, head, 0), parts[i], head * taken * shape.headSize(), rows * shape.headSize());
            }
        }
    }

    private int row(int slot, int head, int at) {
        return ((slot * shape.kvHeads() + head) * capacity + at) * shape.headSize();
    }

    /**
     * Writes what a call computed behind what is there.
     *
     * @param count   steps of the call: the length of the returned windows
     * @param lengths tokens per slot before the call; all but the last have been fed
     * @param steps   tokens each slot took
     */
    void append(Session.Result result, int count, int[] lengths, int[] steps) {
        for (int i = 0; i < buffers.size(); i++) {
            float[] window = result.floats(DecodeGraph.window(i / 2, i % 2));
            for (int slot = 0; slot < steps.length; slot++) {
                if (steps[slot] > 0) {
                    put(i, slot, lengths[slot] - 1, window, slot, count, steps[slot]);
                }
            }
        }
    }

    @Override
    public void close() {
        feeds.close();
    }
}
