package dev.millrace.policy.session;

import dev.millrace.policy.decoder.TensorSpec;
import dev.millrace.policy.ort.Tensor;
import dev.millrace.policy.weights.TensorSet;
import java.nio.ByteBuffer;
import java.nio.FloatBuffer;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;

/** Named tensors for a call, closed together. Direct buffers are read (or written) in place, arrays are copied. */
final class Feeds implements Engine.Bound {
    private final Map<String, Tensor> tensors = new LinkedHashMap<>();
    private final Map<String, Tensor> all;

    Feeds() {
        this(Map.of());
    }

    /** @param borrowed fed as well, but closed by its owner */
    Feeds(Map<String, Tensor> borrowed) {
        this.all = new LinkedHashMap<>(borrowed);
    }

    Feeds floats(String name, FloatBuffer values, long... dims) {
        return keep(name, Tensor.of(values, dims));
    }

    Feeds floats(String name, float[] values, long... dims) {
        return keep(name, Tensor.of(values, dims));
    }

    /** Eight-bit integers, in place. */
    Feeds integers(String name, ByteBuffer values, long... dims) {
        return keep(name, Tensor.of(values, dims));
    }

    Feeds longs(String name, long[] values, long... dims) {
        return keep(name, Tensor.of(values, dims));
    }

    /** Every tensor of a set, in place. */
    Feeds set(TensorSet set, String prefix) {
        for (TensorSpec spec : set.specs()) {
            floats(prefix + spec.name(), set.values(spec.name()), spec.dimsArray());
        }
        return this;
    }

    private Feeds keep(String name, Tensor tensor) {
        tensors.put(name, tensor);
        all.put(name, tensor);
        return this;
    }

    @Override
    public Map<String, Tensor> tensors() {
        return map();
    }

    Map<String, Tensor> map() {
        return Collections.unmodifiableMap(all);
    }

    @Override
    public void close() {
        tensors.values().forEach(Tensor::close);
    }
}
