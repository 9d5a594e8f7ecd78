package dev.millrace.policy.session;

import dev.millrace.policy.decoder.TensorSpec;
import dev.millrace.policy.onnx.Dim;
import dev.millrace.policy.onnx.ElementType;
import dev.millrace.policy.onnx.GraphBuilder;
import dev.millrace.policy.onnx.Operators;
import dev.millrace.policy.onnx.Shape;
import dev.millrace.policy.onnx.Value;
import dev.millrace.policy.ort.Place;
import dev.millrace.policy.ort.Session;
import dev.millrace.policy.ort.Tensor;
import dev.millrace.policy.weights.TensorSet;
import java.lang.ref.WeakReference;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * The memory of a device other than the host: what is made there, what is copied in and out.
 *
 * <p>Sets of tensors are copied in once for all who read them there: roles of one process share their weights. The last ones
 * stay, for who comes back to them. A set that was written meanwhile ({@link TensorSet#writes}) is copied in anew. Thread-safe.
 */
final class DeviceMemory {
    /** Sets that stay without a reader: the version that generates, the next, and the learner's own. */
    private static final int KEPT = 3;

    private final Place place;
    private final Session zeros;
    private final Session same;
    private final Session narrowing;
    private final List<Copy> copies = new ArrayList<>(); // the last used at the end

    /** Compiles its graphs on an engine. */
    DeviceMemory(Engine engine) {
        this.place = engine.place();
        GraphBuilder zero = new GraphBuilder("zeros");
        Shape four = Shape.of(Dim.symbol("A"), Dim.symbol("B"), Dim.symbol("C"), Dim.symbol("D"));
        zero.output("out", new Operators(zero).zeros(zero.input("dims", ElementType.INT64, Shape.of(4)), four));
        this.zeros = engine.compileForAnySize(zero.model());
        GraphBuilder identity = new GraphBuilder("same");
        Value in = identity.input("in", ElementType.FLOAT, Shape.of(Dim.symbol("A")));
        identity.output("out", new Operators(identity).identity(in));
        this.same = engine.compileForAnySize(identity.model());
        GraphBuilder cast = new GraphBuilder("narrowing");
        Value wide = cast.input("in", ElementType.FLOAT, Shape.of(Dim.symbol("A")));
        cast.output("out", new Operators(cast).cast(wide, ElementType.BFLOAT16));
        this.narrowing = engine.compileForAnySize(cast.model());
    }

    /** A tensor of four axes; the caller closes it. */
    Tensor zeros(long... dims) {
        try (Tensor shape = Tensor.of(dims, dims.length)) {
            return zeros.run(Map.of("dims", shape), List.of("out"), Map.of(), place)
                    .tensor("out");
        }
    }

    /** Zeros in the shape of a set; the caller closes the tensors. */
    Map<String, Tensor> zeros(TensorSet like) {
        Map<String, Tensor> made = new LinkedHashMap<>();
        for (TensorSpec spec : like.specs()) {
            made.put(spec.name(), zeros(spec.elementCount(), 1, 1, 1).shaped(spec.dimsArray()));
        }
        return made;
    }

    /** A copy of a host's tensor of float32; the caller closes it. */
    private Tensor copyIn(Session graph, Tensor host) {
        return graph.run(Map.of("in", host), List.of("out"), Map.of(), place).tensor("out");
    }

    /** Writes a set's copy over the set. */
    void copyOut(Map<String, Tensor> copy, TensorSet into) {
        for (TensorSpec spec : into.specs()) {
            Tensor device = Objects.requireNonNull(copy.get(spec.name()));
            try (Tensor flat = device.view(spec.elementCount());
                    Tensor host = Tensor.of(into.tensor(spec.name()), spec.elementCount())) {
                same.run(Map.of("in", flat), List.of(), Map.of("out", host), place)
                        .close();
            }
        }
    }

    /** A copy of a set as it is now, to be written; the caller closes the tensors. */
    Map<String, Tensor> copyOf(TensorSet set) {
        return copyOf(set, false);
    }

    private Map<String, Tensor> copyOf(TensorSet set, boolean narrow) {
        Map<String, Tensor> made = new LinkedHashMap<>();
        try {
            for (TensorSpec spec : set.specs()) {
                try (Tensor host = Tensor.of(set.values(spec.name()), spec.elementCount())) {
                    Session graph = narrow && spec.dims().size() > 1 ? narrowing : same;
                    made.put(spec.name(), copyIn(graph, host).shaped(spec.dimsArray()));
                }
            }
            return made;
        } catch (RuntimeException e) {
            made.values().forEach(Tensor::close);
            throw e;
        }
    }

    /**
     * The copy of a set as it is now; to be closed by who reads it, after the last run.
     *
     * @param narrow whether its matrices, whose values are of bfloat16, are of that type there
     */
    Lease of(TensorSet set, boolean narrow) {
        Copy copy;
        synchronized (copies) {
            copies.stream().filter(Copy::isForgotten).toList().forEach(this::drop);
            copy = copies.stream()
                    .filter(known -> known.isOf(set, narrow))
                    .findFirst()
                    .orElseGet(() -> new Copy(set, narrow));
            copies.remove(copy);
            copies.add(copy);
            copy.readers++;
            long unread = copies.stream().filter(known -> known.readers == 0).count();
            for (Copy old : List.copyOf(copies)) {
                if (unread > KEPT - 1 && old.readers == 0) {
                    drop(old);
                    unread--;
                }
            }
        }
        try {
            return new Lease(copy, copy.tensors(set));
        } catch (RuntimeException e) {
            release(copy);
            throw e;
        }
    }

    private void drop(Copy copy) {
        copies.remove(copy);
        copy.close();
    }

    private void release(Copy copy) {
        synchronized (copies) {
            copy.readers--;
        }
    }

    /** A set's tensors on the device, for as long as this is open. */
    final class Lease implements Engine.Bound {
        private final Copy copy;
        private final Map<String, Tensor> tensors;

        private Lease(Copy copy, Map<String, Tensor> tensors) {
            this.copy = copy;
            this.tensors = tensors;
        }

        @Override
        public Map<String, Tensor> tensors() {
            return tensors;
        }

        @Override
        public void close() {
            release(copy);
        }
    }

    /** One set as it was at one time. */
    private final class Copy {
        private final WeakReference<TensorSet> of;
        private final long writes;
        private final boolean narrow;
        private @Nullable Map<String, Tensor> tensors;
        private int readers;

        Copy(TensorSet set, boolean narrow) {
            this.narrow = narrow;
            this.of = new WeakReference<>(set);
            this.writes = set.writes();
        }

        boolean isOf(TensorSet set, boolean type) {
            return of.get() == set && narrow == type && writes == set.writes();
        }

        boolean isForgotten() {
            return readers == 0 && of.get() == null;
        }

        synchronized Map<String, Tensor> tensors(TensorSet set) {
            if (tensors == null) {
                tensors = copyOf(set, narrow);
            }
            return tensors;
        }

        synchronized void close() {
            if (tensors != null) {
                tensors.values().forEach(Tensor::close);
                tensors = null;
            }
        }
    }
}
