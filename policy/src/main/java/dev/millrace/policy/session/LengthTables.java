package dev.millrace.policy.session;

import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.decoder.SequenceGraph;
import java.nio.FloatBuffer;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** Inputs of sequence graphs that depend only on the padded length, cached per length. Thread-safe. */
final class LengthTables {
    private final DecoderShape shape;
    private final Map<Integer, Tables> tables = new ConcurrentHashMap<>();

    /** @param masks [length, length], by the name that {@link SequenceGraph} gives them */
    private record Tables(PositionTables positions, Map<String, FloatBuffer> masks) {}

    LengthTables(DecoderShape shape) {
        this.shape = shape;
    }

    /** Angles of the positions, [length, half a head]. */
    void feedAngles(int length, Feeds feeds) {
        int half = shape.headSize() / 2;
        Tables of = of(length);
        feeds.floats(SequenceGraph.COS, of.positions().cos(), length, half)
                .floats(SequenceGraph.SIN, of.positions().sin(), length, half);
    }

    void feedMasks(int length, Feeds feeds) {
        of(length).masks().forEach((name, mask) -> feeds.floats(name, mask.duplicate(), length, length));
    }

    String mask(int layer) {
        return shape.traits().isWindowed(layer) ? SequenceGraph.WINDOW_MASK : SequenceGraph.MASK;
    }

    private Tables of(int length) {
        return tables.computeIfAbsent(length, absent -> new Tables(new PositionTables(shape, length), masks(length)));
    }

    private Map<String, FloatBuffer> masks(int length) {
        Map<String, FloatBuffer> masks = new LinkedHashMap<>();
        if (SequenceGraph.hasFullLayers(shape)) {
            masks.put(SequenceGraph.MASK, PositionTables.causalMask(length));
        }
        if (SequenceGraph.hasWindowedLayers(shape)) {
            masks.put(
                    SequenceGraph.WINDOW_MASK,
                    PositionTables.windowMask(length, shape.traits().slidingWindow()));
        }
        return masks;
    }
}
