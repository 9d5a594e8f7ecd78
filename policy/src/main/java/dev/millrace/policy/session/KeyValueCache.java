package dev.millrace.policy.session;

import dev.millrace.policy.decoder.CacheGraph;
import dev.millrace.policy.decoder.DecodeGraph;
import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.ort.Place;
import dev.millrace.policy.ort.Session;
import dev.millrace.policy.ort.Tensor;
import java.nio.FloatBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.LongStream;
import org.jspecify.annotations.Nullable;

/**
 * Keys and values of every token fed so far, in the memory of the graphs: for each layer two tensors {@code [slots,
 * kvHeads, capacity, headSize]}, that graphs read and write in place.
 *
 * <p>The last row of a slot is a scratch row that is never read.
 */
final class KeyValueCache implements AutoCloseable {
    private final Engine engine;
    private final DecoderShape shape;
    private final int slots;
    private final int capacity;
    private final boolean inHost;
    private final List<Tensor> parts = new ArrayList<>();
    private final List<FloatBuffer> buffers = new ArrayList<>(); // the parts' memory, in the host's
    private final Map<Integer, Map<String, Tensor>> views = new ConcurrentHashMap<>(); // by the number of slots
    private @Nullable Session copying;
    private @Nullable Session taking;
    private @Nullable Session giving;

    KeyValueCache(Engine engine, DecoderShape shape, int slots, int capacity) {
        this(engine, shape, slots, capacity, engine.isInPlace());
    }

    /** @param inHost whether rows are moved in the host's memory, and not by graphs */
    KeyValueCache(Engine engine, DecoderShape shape, int slots, int capacity, boolean inHost) {
        this.engine = engine;
        this.shape = shape;
        this.slots = slots;
        this.capacity = capacity;
        this.inHost = inHost;
        long floats = (long) slots * shape.kvHeads() * capacity * shape.headSize();
        if (floats > Integer.MAX_VALUE / Float.BYTES) {
            throw new IllegalArgumentException("the cache of one layer would hold " + floats
                    + " floats, more than one buffer's "
                    + Integer.MAX_VALUE / Float.BYTES + ": slots=" + slots + ", capacityTokens=" + capacity
                    + "; take fewer slots per session");
        }
        for (int i = 0; i < 2 * shape.layers(); i++) {
            if (engine.isInPlace()) {
                FloatBuffer buffer = PositionTables.direct((int) floats);
                buffers.add(buffer);
                parts.add(Tensor.of(buffer, dims(slots)));
            } else {
                parts.add(engine.memory().zeros(dims(slots)));
            }
        }
    }

    int capacity() {
        return capacity;
    }

    private long[] dims(int of) {
        return new long[] {of, shape.kvHeads(), capacity, shape.headSize()};
    }

    /** The caches of the first slots, by their names in graphs that read them. */
    private Map<String, Tensor> read(int first) {
        return views.computeIfAbsent(first, absent -> {
            Map<String, Tensor> named = new HashMap<>();
            for (int i = 0; i < parts.size(); i++) {
                named.put(DecodeGraph.cache(i / 2, i % 2), parts.get(i).view(dims(first)));
            }
            return named;
        });
    }

    /** The same of all slots. */
    void bind(Session.Binding binding) {
        bind(binding, slots);
    }

    /** Lets a graph read the caches of the first slots, and write them in place. */
    void bind(Session.Binding binding, int first) {
        Map<String, Tensor> caches = read(first);
        caches.forEach(binding::input);
        for (int i = 0; i < parts.size(); i++) {
            Tensor part = Objects.requireNonNull(caches.get(DecodeGraph.cache(i / 2, i % 2)));
            binding.output(DecodeGraph.grown(i / 2, i % 2), part);
        }
    }

    void copy(KeyValueCache of, int from, int to, int rows) {
        if (rows == 0) {
            return;
        }
        if (inHost) {
            for (int part = 0; part < buffers.size(); part++) {
                for (int head = 0; head < shape.kvHeads(); head++) {
                    buffers.get(part)
                            .put(
                                    row(to, head, 0),
                                    of.buffers.get(part),
                                    of.row(from, head, 0),
                                    rows * shape.headSize());
                }
            }
            return;
        }
        try (Session.Binding binding = copying().bind();
                Feeds feeds = rows(0, rows)
                        .longs(CacheGraph.FROM, new long[] {from}, 1)
                        .longs(CacheGraph.TO, new long[] {to}, 1)) {
            feeds.map().forEach(binding::input);
            of.read(of.slots).forEach(binding::input);
            write(binding);
        }
    }

    /** Copies of a slot's first rows: of each part [kvHeads, rows, headSize]. */
    float[][] take(int slot, int rows) {
        int floats = rows * shape.headSize();
        float[][] taken = new float[parts.size()][shape.kvHeads() * floats];
        if (inHost) {
            for (int i = 0; i < taken.length; i++) {
                for (int head = 0; head < shape.kvHeads(); head++) {
                    buffers.get(i).get(row(slot, head, 0), taken[i], head * floats, floats);
                }
            }
            return taken;
        }
        Session graph = taking();
        try (Session.Binding binding = graph.bind();
                Feeds feeds = rows(0, rows).longs(CacheGraph.FROM, new long[] {slot}, 1)) {
            feeds.map().forEach(binding::input);
            read(slots).forEach(binding::input);
            graph.outputs().forEach(name -> binding.output(name, Place.HOST));
            try (Session.Result result = binding.run()) {
                for (int i = 0; i < taken.length; i++) {
                    taken[i] = result.floats(DecodeGraph.grown(i / 2, i % 2));
                }
            }
        }
        return taken;
    }

    /**
     * Restores rows that {@link #take} returned into a slot.
     *
     * @param rows number of leading rows to restore
     */
    void give(int slot, float[][] given, int taken, int rows) {
        if (rows == 0) {
            return;
        }
        int headSize = shape.headSize();
        if (inHost) {
            for (int i = 0; i < given.length; i++) {
                for (int head = 0; head < shape.kvHeads(); head++) {
                    buffers.get(i).put(row(slot, head, 0), given[i], head * taken * headSize, rows * headSize);
                }
            }
            return;
        }
        Session graph = giving();
        try (Session.Binding binding = graph.bind();
                Feeds feeds = rows(0, rows).longs(CacheGraph.TO, new long[] {slot}, 1)) {
            for (int i = 0; i < given.length; i++) {
                float[] leading = new float[shape.kvHeads() * rows * headSize];
                for (int head = 0; head < shape.kvHeads(); head++) {
                    System.arraycopy(
                            given[i], head * taken * headSize, leading, head * rows * headSize, rows * headSize);
                }
                feeds.floats(DecodeGraph.cache(i / 2, i % 2), leading, 1, shape.kvHeads(), rows, headSize);
            }
            feeds.map().forEach(binding::input);
            write(binding);
        }
    }

    /** Clears rows from an index on: non-finite values must not be read again, not even with a weight of 0. */
    void clear(int slot, int from) {
        int floats = (capacity - from) * shape.headSize();
        if (inHost) {
            for (FloatBuffer buffer : buffers) {
                for (int head = 0; head < shape.kvHeads(); head++) {
                    buffer.put(row(slot, head, from), new float[floats]);
                }
            }
            return;
        }
        Session graph = giving();
        try (Session.Binding binding = graph.bind();
                Feeds feeds = rows(from, capacity).longs(CacheGraph.TO, new long[] {slot}, 1)) {
            for (int i = 0; i < parts.size(); i++) {
                feeds.floats(
                        DecodeGraph.cache(i / 2, i % 2),
                        new float[shape.kvHeads() * floats],
                        1,
                        shape.kvHeads(),
                        capacity - from,
                        shape.headSize());
            }
            feeds.map().forEach(binding::input);
            write(binding);
        }
    }

    private static Feeds rows(int from, int to) {
        return new Feeds().longs(CacheGraph.ROWS, LongStream.range(from, to).toArray(), to - from);
    }

    private void write(Session.Binding binding) {
        for (int i = 0; i < parts.size(); i++) {
            binding.input(CacheGraph.WRITTEN + DecodeGraph.cache(i / 2, i % 2), parts.get(i));
            binding.output(DecodeGraph.grown(i / 2, i % 2), parts.get(i));
        }
        binding.run().close();
    }

    private synchronized Session copying() {
        if (copying == null) {
            copying = engine.compileForAnySize(CacheGraph.copy(shape));
        }
        return copying;
    }

    private synchronized Session taking() {
        if (taking == null) {
            taking = engine.compileForAnySize(CacheGraph.take(shape));
        }
        return taking;
    }

    private synchronized Session giving() {
        if (giving == null) {
            giving = engine.compileForAnySize(CacheGraph.give(shape));
        }
        return giving;
    }

    private int row(int slot, int head, int at) {
        return ((slot * shape.kvHeads() + head) * capacity + at) * shape.headSize();
    }

    @Override
    public void close() {
        views.values().forEach(of -> of.values().forEach(Tensor::close));
        parts.forEach(Tensor::close);
        Arrays.asList(copying, taking, giving).forEach(session -> {
            if (session != null) {
                session.close();
            }
        });
    }
}
