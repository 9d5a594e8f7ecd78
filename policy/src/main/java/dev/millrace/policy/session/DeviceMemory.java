package dev.millrace.policy.session;

import dev.millrace.policy.decoder.TensorSpec;
import dev.millrace.policy.onnx.Dim;
import dev.millrace.policy.onnx.ElementType;
import dev.millrace.policy.onnx.GraphBuilder;
import dev.millrace.policy.onnx.GraphPart;
import dev.millrace.policy.onnx.Operators;
import dev.millrace.policy.onnx.Shape;
import dev.millrace.policy.onnx.Value;
import dev.millrace.policy.onnx.proto.ModelProto;
import dev.millrace.policy.ort.Place;
import dev.millrace.policy.ort.Session;
import dev.millrace.policy.ort.Tensor;
import dev.millrace.policy.weights.DeviceValues;
import dev.millrace.policy.weights.TensorSet;
import java.lang.ref.WeakReference;
import java.nio.FloatBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Function;
import java.util.function.ToDoubleFunction;
import org.jspecify.annotations.Nullable;

/**
 * Device memory: allocates tensors there, and copies values in and out.
 *
 * <p>A tensor set is copied in once for all readers: roles of one process share their weights. The last ones stay
 * cached. A set that was written meanwhile ({@link TensorSet#writes}) is copied again. Values written on the device
 * stay until their set is freed or written elsewhere. Thread-safe.
 */
final class DeviceMemory {
    /** Sets that stay without a reader: the version that generates, the next, and the learner's own. */
    private static final int KEPT = 3;
    /** Marks a stale copy: writes are counted from 0. */
    private static final long SPOILED = -1;

    private final Engine engine;
    private final Place place;
    private final Session zeros;
    private final Session same;
    private final Session narrowing;
    private final Session squares;
    private final Session scaled;
    private final Map<ModelProto, Session> updates = new ConcurrentHashMap<>();
    private final List<Copy> copies = new ArrayList<>(); // the last used at the end

    /** Compiles its graphs on an engine. */
    DeviceMemory(Engine engine) {
        this.engine = engine;
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
        GraphBuilder norms = new GraphBuilder("squares", true);
        Value rows = norms.input("in", ElementType.FLOAT, Shape.of(Dim.symbol("A"), Dim.symbol("B")));
        Operators ofNorms = new Operators(norms);
        norms.output("out", ofNorms.reduceSum(ofNorms.mul(rows, rows), false, 1));
        this.squares = engine.compileForAnySize(norms.model());
        GraphBuilder scale = new GraphBuilder("scaled");
        Value all = scale.input("in", ElementType.FLOAT, Shape.of(Dim.symbol("A")));
        Value factor = scale.input("factor", ElementType.FLOAT, Shape.of(Dim.ONE));
        scale.output("out", new Operators(scale).mul(all, factor));
        this.scaled = engine.compileForAnySize(scale.model());
    }

    /** A tensor of four axes; the caller closes it. */
    Tensor zeros(long... dims) {
        try (Tensor shape = Tensor.of(dims, dims.length)) {
            return zeros.run(Map.of("dims", shape), List.of("out"), Map.of(), place)
                    .tensor("out");
        }
    }

    /** A copy of a host's tensor of float32; the caller closes it. */
    private Tensor copyIn(Session graph, Tensor host) {
        return graph.run(Map.of("in", host), List.of("out"), Map.of(), place).tensor("out");
    }

    /** Writable values of a set; close them, or publish them to the set with {@link Copy#own}. */
    Copy forWriting(TensorSet set, boolean zero) {
        synchronized (copies) {
            tidy(); // those of what the set was before
        }
        Copy copy = new Copy(set, false);
        if (zero) {
            copy.tensors = zeros(set);
        } else {
            copy.tensors(set);
        }
        return copy;
    }

    private Map<String, Tensor> zeros(TensorSet like) {
        Map<String, Tensor> made = new LinkedHashMap<>();
        for (TensorSpec spec : like.specs()) {
            made.put(spec.name(), zeros(spec.elementCount(), 1, 1, 1).shaped(spec.dimsArray()));
        }
        return made;
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
     * A copy of a set's current values. The reader closes it after its last run.
     *
     * @param narrow whether its matrices, whose values are of bfloat16, are of that type there
     */
    Lease of(TensorSet set, boolean narrow) {
        Copy copy;
        synchronized (copies) {
            tidy();
            copy = copies.stream()
                    .filter(known -> known.isOf(set, narrow))
                    .findFirst()
                    .orElseGet(() -> new Copy(set, narrow));
            copies.remove(copy);
            copies.add(copy);
            copy.readers++;
            long unread = copies.stream().filter(Copy::isSpare).count();
            for (Copy old : List.copyOf(copies)) {
                if (unread > KEPT - 1 && old.isSpare()) {
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

    private void tidy() {
        copies.stream().filter(Copy::isForgotten).toList().forEach(this::drop);
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

    /** A set's tensors on the device while this is open. */
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

    /** A snapshot of one set, or the live set if it was written on the device. */
    final class Copy implements DeviceValues, AutoCloseable {
        private final WeakReference<TensorSet> of;
        private final List<TensorSpec> specs;
        private final boolean narrow;
        private volatile long writes;
        private volatile boolean owned;
        private @Nullable Map<String, Tensor> tensors;
        private int readers;
        private boolean finite; // no value is NaN or infinite, nor its square

        Copy(TensorSet set, boolean narrow) {
            this.narrow = narrow;
            this.of = new WeakReference<>(set);
            this.specs = set.specs();
            this.writes = set.writes();
        }

        boolean isOf(TensorSet set, boolean type) {
            return of.get() == set && narrow == type && writes == set.writes();
        }

        boolean isForgotten() {
            TensorSet set = of.get();
            return readers == 0 && (set == null || owned && writes != set.writes());
        }

        boolean isSpare() {
            return readers == 0 && !owned;
        }

        synchronized Map<String, Tensor> tensors(TensorSet set) {
            if (tensors == null) {
                tensors = copyOf(set, narrow);
            }
            return tensors;
        }

        /** Its tensors; missing if a step failed part-way. */
        Map<String, Tensor> tensors() {
            Map<String, Tensor> there = tensors;
            if (there == null || writes == SPOILED) {
                throw new IllegalStateException("a step failed on device " + engine.device() + " after it had written"
                        + " some tensors of this set; restore the state from the last version");
            }
            return there;
        }

        private Tensor flat(TensorSpec spec) {
            return Objects.requireNonNull(tensors().get(spec.name())).view(spec.elementCount());
        }

        /** Publishes the written values to the set. */
        void own() {
            TensorSet set = Objects.requireNonNull(of.get());
            synchronized (copies) { // nobody takes it for a stale one meanwhile
                set.isNewerOn(this);
                writes = set.writes();
                owned = true;
                if (!copies.contains(this)) {
                    copies.add(this);
                }
            }
        }

        @Override
        public void writeTo(Function<String, FloatBuffer> buffers) {
            for (TensorSpec spec : specs) {
                try (Tensor flat = flat(spec);
                        Tensor host = Tensor.of(buffers.apply(spec.name()), spec.elementCount())) {
                    same.run(Map.of("in", flat), List.of(), Map.of("out", host), place)
                            .close();
                }
            }
        }

        @Override
        public double squaredNorm() {
            double sum = 0;
            for (TensorSpec spec : specs) {
                List<Long> dims = spec.dims();
                long width = dims.get(dims.size() - 1);
                try (Tensor rows = Objects.requireNonNull(tensors().get(spec.name()))
                                .view(spec.elementCount() / width, width);
                        Session.Result result = squares.run(Map.of("in", rows))) {
                    for (float row : result.floats("out")) {
                        sum += row;
                    }
                }
            }
            finite = Double.isFinite(sum);
            return sum;
        }

        @Override
        public boolean isFinite() {
            return finite || Double.isFinite(squaredNorm());
        }

        @Override
        public void scale(float factor) {
            try (Tensor host = Tensor.of(new float[] {factor}, 1);
                    Tensor by = copyIn(same, host)) {
                for (TensorSpec spec : specs) {
                    try (Tensor flat = flat(spec)) {
                        scaled.run(Map.of("in", flat, "factor", by), List.of(), Map.of("out", flat), place)
                                .close();
                    }
                }
            }
            finite &= Math.abs(factor) <= 1;
            own();
        }

        @Override
        public void update(
                GraphPart graph, Map<String, TensorSet> sets, Map<String, ToDoubleFunction<TensorSpec>> scalars) {
            Session session = updates.computeIfAbsent(graph.model(), engine::compileForAnySize);
            Map<String, Copy> copiesOfSets = new LinkedHashMap<>();
            Map<Float, Tensor> values = new HashMap<>();
            try {
                sets.forEach((name, set) -> copiesOfSets.put(name, toWrite(set)));
                for (TensorSpec spec : specs) {
                    Map<String, Tensor> flat = new HashMap<>();
                    Map<String, Tensor> fed = new HashMap<>();
                    Map<String, Tensor> written = new HashMap<>();
                    try {
                        flat.put(VALUES, flat(spec));
                        copiesOfSets.forEach((name, copy) -> flat.put(name, copy.flat(spec)));
                        fed.putAll(flat);
                        scalars.forEach((name, value) ->
                                fed.put(name, values.computeIfAbsent((float) value.applyAsDouble(spec), this::scalar)));
                        fed.keySet().retainAll(graph.inputs());
                        for (String output : session.outputs()) {
                            written.put(
                                    output,
                                    Objects.requireNonNull(flat.get(output.substring(
                                            DeviceValues.next("").length()))));
                        }
                        session.run(fed, List.of(), written, place).close();
                    } finally {
                        flat.values().forEach(Tensor::close);
                    }
                }
                for (Copy written : copiesOfSets.values()) {
                    written.finite = false;
                    written.own();
                }
            } catch (RuntimeException e) {
                copiesOfSets.values().forEach(copy -> copy.writes = SPOILED);
                throw e;
            } finally {
                values.values().forEach(Tensor::close);
                copiesOfSets.values().forEach(DeviceMemory.this::release);
            }
        }

        private Tensor scalar(float value) {
            try (Tensor host = Tensor.of(new float[] {value}, 1)) {
                return copyIn(same, host);
            }
        }

        @Override
        public synchronized void close() {
            if (tensors != null) {
                tensors.values().forEach(Tensor::close);
                tensors = null;
            }
        }
    }

    /** A copy without other readers; to be released. */
    private Copy toWrite(TensorSet set) {
        Lease lease = of(set, false);
        synchronized (copies) {
            if (lease.copy.readers == 1) {
                return lease.copy;
            }
        }
        Copy alone = forWriting(set, false);
        alone.readers++;
        lease.close();
        return alone;
    }
}
