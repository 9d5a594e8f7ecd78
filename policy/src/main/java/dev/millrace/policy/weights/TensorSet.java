package dev.millrace.policy.weights;

import dev.millrace.policy.decoder.TensorSpec;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * Named float32 tensors, each in one direct little-endian buffer that ONNX Runtime reads in place. Newer values may be
 * on a device ({@link #isNewerOn}); the first access to a tensor here fetches all of them.
 *
 * <p>The set owns its buffers and never replaces them; views handed out share the memory. A writer must have exclusive
 * use of the set: nothing here synchronizes, and a concurrent reader sees partly written tensors. To share tensors with
 * another thread and continue writing, share a {@link #copy()}.
 */
public final class TensorSet {
    private static final int ZEROS = 4096;

    private final List<TensorSpec> specs;
    private final Map<String, ByteBuffer> buffers = new LinkedHashMap<>();
    private volatile long writes;
    private volatile @Nullable Pending pending;

    /** Values that the buffers do not have yet. */
    interface Pending {
        void writeTo(Function<String, FloatBuffer> buffers);
    }

    /** All zeros. */
    public TensorSet(List<TensorSpec> specs) {
        if (ByteOrder.nativeOrder() != ByteOrder.LITTLE_ENDIAN) {
            throw new IllegalStateException("tensors are little-endian on the wire and read in place by ONNX Runtime;"
                    + " this machine is " + ByteOrder.nativeOrder());
        }
        this.specs = List.copyOf(specs);
        for (TensorSpec spec : specs) {
            ByteBuffer buffer =
                    ByteBuffer.allocateDirect(spec.elementCount() * Float.BYTES).order(ByteOrder.LITTLE_ENDIAN);
            if (buffers.put(spec.name(), buffer) != null) {
                throw new IllegalArgumentException("two tensors are named " + spec.name());
            }
        }
    }

    /** Names and shapes, in the order of every iteration. */
    public List<TensorSpec> specs() {
        return specs;
    }

    /**
     * A writable view of one tensor, row-major, with its own position. Get a new view for each write: see {@link
     * #writes}.
     */
    @SuppressWarnings("NonAtomicVolatileUpdate") // one writer at a time
    public FloatBuffer tensor(String name) {
        FloatBuffer view = values(name); // first fetches newer values from the device
        writes++;
        return view;
    }

    /** The same, for reading alone. */
    public FloatBuffer values(String name) {
        return floats(buffer(name));
    }

    private static FloatBuffer floats(ByteBuffer buffer) {
        return buffer.duplicate().order(ByteOrder.LITTLE_ENDIAN).asFloatBuffer();
    }

    /** Replaces the values; fetches them on the first access here. */
    @SuppressWarnings("NonAtomicVolatileUpdate") // one writer at a time
    public void isNewerOn(DeviceValues values) {
        pending = values;
        writes++;
    }

    /** The values on a device, while they are newer than those here. */
    public Optional<DeviceValues> newer() {
        return pending instanceof DeviceValues there ? Optional.of(there) : Optional.empty();
    }

    /** Makes every value 0. */
    @SuppressWarnings("NonAtomicVolatileUpdate") // one writer at a time
    void clear() {
        pending = buffers -> specs.parallelStream().forEach(spec -> {
            FloatBuffer tensor = buffers.apply(spec.name());
            float[] zeros = new float[Math.min(ZEROS, tensor.remaining())];
            while (tensor.hasRemaining()) {
                tensor.put(zeros, 0, Math.min(zeros.length, tensor.remaining()));
            }
        });
        writes++;
    }

    private void fetch() {
        if (pending != null) {
            synchronized (this) {
                Pending values = pending;
                if (values != null) {
                    values.writeTo(name -> floats(Objects.requireNonNull(buffers.get(name))));
                    pending = null;
                }
            }
        }
    }

    /** Number of writes; a holder of a copy detects by it that the copy is stale. */
    public long writes() {
        return writes;
    }

    /** A read-only view of one tensor's little-endian bytes, with its own position. */
    public ByteBuffer bytes(String name) {
        return buffer(name).asReadOnlyBuffer().order(ByteOrder.LITTLE_ENDIAN);
    }

    /** Overwrites one tensor with little-endian float32 bytes; consumes {@code source} entirely. */
    @SuppressWarnings("NonAtomicVolatileUpdate") // one writer at a time
    public void load(String name, ByteBuffer source) {
        ByteBuffer target = buffer(name).duplicate();
        writes++;
        if (source.remaining() != target.remaining()) {
            throw new IllegalArgumentException(
                    name + " takes " + target.remaining() + " bytes, not " + source.remaining());
        }
        target.put(source);
    }

    /** Overwrites every tensor with that of a set of the same specs. */
    public void copyFrom(TensorSet source) {
        if (!source.specs.equals(specs)) {
            throw new IllegalArgumentException(
                    "the tensors differ in name or shape: " + source.specs.size() + " tensors into " + specs.size());
        }
        for (TensorSpec spec : specs) {
            load(spec.name(), source.bytes(spec.name()));
        }
    }

    public TensorSet copy() {
        TensorSet copy = new TensorSet(specs);
        copy.copyFrom(this);
        return copy;
    }

    private ByteBuffer buffer(String name) {
        fetch();
        ByteBuffer buffer = buffers.get(name);
        if (buffer == null) {
            throw new IllegalArgumentException("there is no tensor " + name + " among " + buffers.keySet());
        }
        return buffer;
    }
}
