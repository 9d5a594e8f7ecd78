package dev.millrace.policy.ort;

import com.sun.jna.Memory;
import com.sun.jna.Native;
import com.sun.jna.Pointer;
import com.sun.jna.ptr.IntByReference;
import com.sun.jna.ptr.LongByReference;
import dev.millrace.policy.onnx.ElementType;
import java.nio.Buffer;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/**
 * A value of a graph, in the memory of the host or of a device: made once, and bound as an input or as an output as often as
 * wanted. Closing it frees memory allocated by the runtime, but not a buffer used in place.
 *
 * <p>Not thread-safe where it is written (bound as an output); any number of threads may read it.
 */
public final class Tensor implements AutoCloseable {
    private final Pointer value;
    private final Place place;
    private final @Nullable Object memory; // must live as long as this
    private final boolean ownsMemory;
    private @Nullable Facts facts;
    private boolean closed;

    /** Type and shape; queried once for runtime values. */
    private record Facts(int type, long[] dims) {
        long count() {
            return Arrays.stream(dims).reduce(1, Math::multiplyExact);
        }
    }

    private Tensor(Pointer value, Place place, @Nullable Object memory, boolean ownsMemory, @Nullable Facts facts) {
        this.value = value;
        this.place = place;
        this.memory = memory;
        this.ownsMemory = ownsMemory;
        this.facts = facts;
    }

    /** Takes ownership of a run's result. */
    static Tensor of(Pointer value, Place place) {
        return new Tensor(value, place, null, false, null);
    }

    /** Wraps a direct buffer in place, otherwise copies; from the buffer's position. */
    public static Tensor of(FloatBuffer values, long... dims) {
        if (values.isDirect()) {
            return inPlace(values, (long) values.position() * Float.BYTES, values.remaining(), ElementType.FLOAT, dims);
        }
        ByteBuffer copy = direct(Math.multiplyExact(values.remaining(), Float.BYTES));
        copy.asFloatBuffer().put(values.duplicate());
        return inPlace(copy, 0, values.remaining(), ElementType.FLOAT, dims);
    }

    /** A copy. */
    public static Tensor of(float[] values, long... dims) {
        return of(FloatBuffer.wrap(values), dims);
    }

    /** A copy. */
    public static Tensor of(long[] values, long... dims) {
        ByteBuffer copy = direct(Math.multiplyExact(values.length, Long.BYTES));
        copy.asLongBuffer().put(values);
        return inPlace(copy, 0, values.length, ElementType.INT64, dims);
    }

    /** Eight-bit integers of a direct buffer, in place. */
    public static Tensor of(ByteBuffer direct, long... dims) {
        return inPlace(direct, direct.position(), direct.remaining(), ElementType.INT8, dims);
    }

    private static ByteBuffer direct(int bytes) {
        return ByteBuffer.allocateDirect(bytes).order(ByteOrder.nativeOrder());
    }

    private static Tensor inPlace(Buffer buffer, long offset, long count, ElementType type, long[] dims) {
        Facts facts = new Facts(type.number(), dims.clone());
        if (facts.count() != count) {
            throw new IllegalArgumentException(
                    "a tensor of " + Arrays.toString(dims) + " has " + facts.count() + " values, not " + count);
        }
        Pointer data = Native.getDirectBufferPointer(buffer).share(offset);
        return new Tensor(withData(Place.HOST, data, facts, type.bytes()), Place.HOST, buffer, false, facts);
    }

    private static Pointer withData(Place place, Pointer data, Facts facts, int elementBytes) {
        Memory shape = new Memory(Math.max(1, facts.dims().length) * (long) Long.BYTES);
        shape.write(0, facts.dims(), 0, facts.dims().length);
        return Ort.get()
                .create(
                        Ort.TENSOR_WITH_DATA,
                        place.info(),
                        data,
                        facts.count() * elementBytes,
                        shape,
                        (long) facts.dims().length,
                        facts.type());
    }

    /** The same values with another shape; the result takes ownership. */
    public Tensor shaped(long... dims) {
        return view(true, dims);
    }

    /** A view of the first values with this shape; close it before this. */
    public Tensor view(long... dims) {
        return view(false, dims);
    }

    private Tensor view(boolean owns, long... dims) {
        Facts part = new Facts(facts().type(), dims.clone());
        if (part.count() > facts().count() || owns && part.count() != facts().count()) {
            throw new IllegalArgumentException(
                    "a view of " + Arrays.toString(dims) + " of a tensor of " + Arrays.toString(facts().dims()));
        }
        Pointer view = withData(place, data(), part, elementType(part.type()).bytes());
        return new Tensor(view, place, this, owns, part);
    }

    private static ElementType elementType(int number) {
        return Arrays.stream(ElementType.values())
                .filter(type -> type.number() == number)
                .findFirst()
                .orElseThrow(() -> new IllegalStateException("no graph here uses elements of type " + number));
    }

    Pointer value() {
        if (closed) {
            throw new IllegalStateException("the tensor is closed");
        }
        return value;
    }

    public boolean isClosed() {
        return closed;
    }

    public long[] dims() {
        return facts().dims().clone();
    }

    public int count() {
        return Math.toIntExact(facts().count());
    }

    /** A copy of the values of a tensor of the host. */
    public float[] floats() {
        require(ElementType.FLOAT);
        int count = count();
        return count == 0 ? new float[0] : data().getFloatArray(0, count);
    }

    /** A copy of the values of a tensor of the host. */
    public long[] longs() {
        require(ElementType.INT64);
        int count = count();
        return count == 0 ? new long[0] : data().getLongArray(0, count);
    }

    private void require(ElementType type) {
        if (!place.isHost()) {
            throw new IllegalStateException(
                    "the values are in the memory of " + place + "; let a run write them to the host");
        }
        if (facts().type() != type.number()) {
            throw new IllegalStateException("the tensor has elements of type " + facts().type() + ", not of " + type);
        }
    }

    private Pointer data() {
        return Ort.get().create(Ort.TENSOR_DATA, value());
    }

    private Facts facts() {
        if (facts == null) {
            Ort ort = Ort.get();
            Pointer info = ort.create(Ort.TENSOR_TYPE_AND_SHAPE, value());
            try {
                IntByReference type = new IntByReference();
                ort.call(Ort.TENSOR_ELEMENT_TYPE, info, type);
                LongByReference rank = new LongByReference();
                ort.call(Ort.TENSOR_DIMENSION_COUNT, info, rank);
                long[] dims = new long[Math.toIntExact(rank.getValue())];
                if (dims.length > 0) {
                    Memory into = new Memory((long) dims.length * Long.BYTES);
                    ort.call(Ort.TENSOR_DIMENSIONS, info, into, (long) dims.length);
                    into.read(0, dims, 0, dims.length);
                }
                facts = new Facts(type.getValue(), dims);
            } finally {
                ort.release(Ort.RELEASE_TYPE_AND_SHAPE, info);
            }
        }
        return facts;
    }

    @Override
    public void close() {
        if (!closed) {
            closed = true;
            Ort.get().release(Ort.RELEASE_VALUE, value);
            if (ownsMemory && memory instanceof Tensor whole) {
                whole.close();
            }
        }
    }
}
