package dev.millrace.policy.session;

import ai.onnxruntime.OnnxJavaType;
import ai.onnxruntime.OnnxTensor;
import ai.onnxruntime.OrtEnvironment;
import ai.onnxruntime.OrtException;
import dev.millrace.policy.decoder.TensorSpec;
import dev.millrace.policy.weights.TensorSet;
import java.nio.ByteBuffer;
import java.nio.FloatBuffer;
import java.nio.LongBuffer;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;

/** Named tensors for a call, closed together. Direct buffers are read (or written) in place, arrays are copied. */
final class Feeds implements AutoCloseable {
    private final OrtEnvironment environment;
    private final Map<String, OnnxTensor> tensors = new LinkedHashMap<>();
    private final Map<String, OnnxTensor> all;

    Feeds(OrtEnvironment environment) {
        this(environment, Map.of());
    }

    /** @param borrowed fed as well, but closed by its owner */
    Feeds(OrtEnvironment environment, Map<String, OnnxTensor> borrowed) {
        this.environment = environment;
        this.all = new LinkedHashMap<>(borrowed);
    }

    Feeds floats(String name, FloatBuffer values, long... dims) {
        try {
            return keep(name, OnnxTensor.createTensor(environment, values, dims));
        } catch (OrtException e) {
            throw new InferenceException("could not make the tensor " + name + ": " + e.getMessage(), e);
        }
    }

    Feeds floats(String name, float[] values, long... dims) {
        return floats(name, FloatBuffer.wrap(values), dims);
    }

    /** Eight-bit integers, in place. */
    Feeds integers(String name, ByteBuffer values, long... dims) {
        try {
            return keep(name, OnnxTensor.createTensor(environment, values.duplicate(), dims, OnnxJavaType.INT8));
        } catch (OrtException e) {
            throw new InferenceException("could not make the tensor " + name + ": " + e.getMessage(), e);
        }
    }

    Feeds longs(String name, long[] values, long... dims) {
        try {
            return keep(name, OnnxTensor.createTensor(environment, LongBuffer.wrap(values), dims));
        } catch (OrtException e) {
            throw new InferenceException("could not make the tensor " + name + ": " + e.getMessage(), e);
        }
    }

    /** Every tensor of a set, in place. */
    Feeds set(TensorSet set, String prefix) {
        for (TensorSpec spec : set.specs()) {
            floats(prefix + spec.name(), set.tensor(spec.name()), spec.dimsArray());
        }
        return this;
    }

    private Feeds keep(String name, OnnxTensor tensor) {
        tensors.put(name, tensor);
        all.put(name, tensor);
        return this;
    }

    Map<String, OnnxTensor> map() {
        return Collections.unmodifiableMap(all);
    }

    @Override
    public void close() {
        tensors.values().forEach(OnnxTensor::close);
    }
}
