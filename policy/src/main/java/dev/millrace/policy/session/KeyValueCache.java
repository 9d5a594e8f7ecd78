package dev.millrace.policy.session;

import ai.onnxruntime.OnnxTensor;
import ai.onnxruntime.OrtEnvironment;
import ai.onnxruntime.OrtException;
import ai.onnxruntime.OrtSession;
import dev.millrace.policy.decoder.DecodeGraph;
import dev.millrace.policy.decoder.DecoderShape;
import java.nio.FloatBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

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

    KeyValueCache(OrtEnvironment environment, DecoderShape shape, int slots, int capacity) {
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
        this.feeds = new Feeds(environment);
        for (int i = 0; i < 2 * shape.layers(); i++) {
            FloatBuffer buffer = PositionTables.direct((int) floats);
            buffers.add(buffer);
            feeds.floats(DecodeGraph.cache(i / 2, i % 2), buffer, slots, shape.kvHeads(), capacity, shape.headSize());
        }
    }

    Map<String, OnnxTensor> tensors() {
        return feeds.map();
    }

    /**
     * Writes what a call computed behind what is there.
     *
     * @param count   steps of the call: the length of the returned windows
     * @param lengths tokens per slot before the call; all but the last have been fed
     * @param steps   tokens each slot took
     */
    void append(OrtSession.Result result, int count, int[] lengths, int[] steps) throws OrtException {
        int headSize = shape.headSize();
        for (int i = 0; i < buffers.size(); i++) {
            float[] window = SequenceRunner.floats(result, DecodeGraph.window(i / 2, i % 2));
            FloatBuffer buffer = buffers.get(i);
            for (int slot = 0; slot < slots; slot++) {
                for (int head = 0; head < shape.kvHeads() && steps[slot] > 0; head++) {
                    int row = slot * shape.kvHeads() + head;
                    buffer.put(
                            (row * capacity + lengths[slot] - 1) * headSize,
                            window,
                            row * count * headSize,
                            steps[slot] * headSize);
                }
            }
        }
    }

    @Override
    public void close() {
        feeds.close();
    }
}
