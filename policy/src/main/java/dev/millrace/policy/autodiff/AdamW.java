package dev.millrace.policy.autodiff;

import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.decoder.TensorSpec;
import dev.millrace.policy.onnx.Dim;
import dev.millrace.policy.onnx.ElementType;
import dev.millrace.policy.onnx.GraphBuilder;
import dev.millrace.policy.onnx.GraphPart;
import dev.millrace.policy.onnx.Operators;
import dev.millrace.policy.onnx.Shape;
import dev.millrace.policy.onnx.Value;
import dev.millrace.policy.weights.Bfloat16;
import dev.millrace.policy.weights.DeviceValues;
import dev.millrace.policy.weights.Dtype;
import dev.millrace.policy.weights.Gradients;
import dev.millrace.policy.weights.Parameters;
import dev.millrace.policy.weights.TensorSet;
import dev.millrace.policy.weights.Weights;
import java.nio.FloatBuffer;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * AdamW (Loshchilov and Hutter, 2019): {@code w <- w - lr (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + eps) - lr wd w}.
 *
 * <p>For weights narrower than float32 the optimizer keeps float32 masters: it updates these and rounds the weights to
 * the nearest values of their type, ties to even. Masters start as the weights of the first step.
 *
 * <p>Minimises: the gradient is of a loss. Decay applies to matrices, the embedding among them; norms and biases are not
 * decayed. The arithmetic is float32 in a fixed order, so that the same state, weights and gradients give the same
 * bits; each value is updated independently, so any number of processors may share the work. If the gradient is on a
 * device, so are state and weights from the first step on. Not thread-safe: one owner.
 */
public final class AdamW {
    private static final int CHUNK = 4096;
    /** Elements per task; fewer are not worth a second processor. */
    private static final int PIECE = 1 << 18;

    private static final String WEIGHT = "weight";
    private static final String FIRST = "first";
    private static final String SECOND = "second";
    private static final String ROUNDED = "rounded";
    private static final String STEP_SIZE = "step_size";
    private static final String ROOT_CORRECTION = "root_correction";
    private static final String KEEP = "keep";

    private static final ThreadLocal<Scratch> SCRATCH = ThreadLocal.withInitial(Scratch::new);

    private final Config config;
    private final List<TensorSpec> specs;
    private @Nullable TensorSet first;
    private @Nullable TensorSet second;
    private @Nullable TensorSet masters;
    private long steps;

    private final float[] w = new float[CHUNK];

    private static final class Scratch {
        private final float[] g = new float[CHUNK];
        private final float[] w = new float[CHUNK];
        private final float[] m = new float[CHUNK];
        private final float[] v = new float[CHUNK];
    }

    /**
     * Hyperparameters that are constant over the steps.
     *
     * @param beta1       decay of the first moment, at least 0 and below 1
     * @param beta2       decay of the second moment, at least 0 and below 1
     * @param epsilon     added to the root of the second moment, above 0
     * @param weightDecay decoupled decay per unit of learning rate, at least 0
     */
    public record Config(double beta1, double beta2, double epsilon, double weightDecay) {
        public Config {
            momentDecay(beta1, "beta1");
            momentDecay(beta2, "beta2");
            if (!(epsilon > 0 && epsilon < Double.POSITIVE_INFINITY)) {
                throw new IllegalArgumentException("epsilon must be finite and above 0: epsilon=" + epsilon);
            }
            if (!(weightDecay >= 0 && weightDecay < Double.POSITIVE_INFINITY)) {
                throw new IllegalArgumentException(
                        "weightDecay must be finite and at least 0: weightDecay=" + weightDecay);
            }
        }

        private static void momentDecay(double beta, String name) {
            if (!(beta >= 0 && beta < 1)) {
                throw new IllegalArgumentException(name + " must be at least 0 and below 1: " + name + "=" + beta);
            }
        }
    }

    /**
     * State that a policy version carries so that training can continue from it.
     *
     * @param first  m, one tensor per parameter, named as the parameter
     * @param second v, likewise
     * @param masters likewise, the float32 weights before rounding; empty before the first step, and without rounding
     */
    public record State(long steps, TensorSet first, TensorSet second, Optional<TensorSet> masters) {
        /** State of an optimizer without rounding. */
        public State(long steps, TensorSet first, TensorSet second) {
            this(steps, first, second, Optional.empty());
        }

        public State {
            if (steps < 0) {
                throw new IllegalArgumentException("steps must be at least 0: steps=" + steps);
            }
        }
    }

    /** Initial state for all weights of a decoder. */
    public AdamW(Config config, DecoderShape shape) {
        this(config, shape.tensors());
    }

    /** Before the first step. */
    public AdamW(Config config, List<TensorSpec> specs) {
        this.config = config;
        this.specs = List.copyOf(specs);
    }

    /** The live state: shares memory with the optimizer; copy the sets to keep them. */
    public State state() {
        return new State(steps, first(), second(), Optional.ofNullable(masters));
    }

    /** Restores a copy of a state of the same shape. */
    public void restore(State state) {
        adopt(new State(
                state.steps(),
                state.first().copy(),
                state.second().copy(),
                state.masters().map(TensorSet::copy)));
    }

    /**
     * Restores a state of the same shape and takes ownership of it. A state before the first step is all zeros and may
     * have any shape.
     */
    public void adopt(State state) {
        if (state.steps() == 0) {
            first = null;
            second = null;
            masters = null;
            steps = 0;
            return;
        }
        if (!state.first().specs().equals(specs) || !state.second().specs().equals(specs)) {
            throw new IllegalArgumentException("the optimiser's state is of another shape: it has "
                    + state.first().specs().size() + " tensors, and " + specs.size() + " are trained");
        }
        first = state.first();
        second = state.second();
        masters = state.masters().orElse(null);
        steps = state.steps();
    }

    private TensorSet first() {
        if (first == null) {
            first = new TensorSet(specs);
        }
        return first;
    }

    private TensorSet second() {
        if (second == null) {
            second = new TensorSet(specs);
        }
        return second;
    }

    /**
     * Takes one step; overwrites the trained weights in place, and merges an adapter.
     *
     * @param learningRate finite and at least 0
     * @throws IllegalArgumentException if a gradient is NaN or infinite; nothing is changed then
     */
    public void step(Weights weights, Gradients gradients, double learningRate) {
        if (!(learningRate >= 0 && learningRate < Double.POSITIVE_INFINITY)) {
            throw new IllegalArgumentException(
                    "learningRate must be finite and at least 0: learningRate=" + learningRate);
        }
        Parameters trained = weights.trained();
        if (!trained.specs().equals(specs) || !gradients.specs().equals(specs)) {
            throw new IllegalArgumentException("weights, gradients and optimiser must have one shape: they have "
                    + trained.specs().size() + ", " + gradients.specs().size() + " and " + specs.size() + " tensors");
        }
        refuseNonFinite(gradients);
        TensorSet stepped = stepped(trained);
        steps++;
        Optional<DeviceValues> there = gradients.tensors().newer();
        if (there.isPresent()) {
            stepOnDevice(there.get(), stepped, trained, learningRate);
            weights.merge();
            return;
        }
        float stepSize = stepSize(learningRate);
        float rootCorrection = rootCorrection();
        for (TensorSpec spec : specs) {
            update(
                    stepped.tensor(spec.name()),
                    first().tensor(spec.name()),
                    second().tensor(spec.name()),
                    gradients.tensor(spec.name()),
                    stepSize,
                    rootCorrection,
                    keep(spec, learningRate));
            if (trained.dtype() == Dtype.BF16) {
                round(stepped.tensor(spec.name()), trained.tensor(spec.name()));
            }
        }
        weights.merge();
    }

    /** The same arithmetic on the gradient's device. */
    private void stepOnDevice(DeviceValues gradient, TensorSet stepped, Parameters trained, double learningRate) {
        boolean rounds = trained.dtype() == Dtype.BF16;
        Map<String, TensorSet> sets = new LinkedHashMap<>(Map.of(WEIGHT, stepped, FIRST, first(), SECOND, second()));
        if (rounds) {
            sets.put(ROUNDED, trained.tensors());
        }
        double stepSize = stepSize(learningRate);
        double rootCorrection = rootCorrection();
        gradient.update(
                graph(rounds),
                sets,
                Map.of(
                        STEP_SIZE, spec -> stepSize,
                        ROOT_CORRECTION, spec -> rootCorrection,
                        KEEP, spec -> keep(spec, learningRate)));
    }

    private GraphPart graph(boolean rounds) {
        Shape flat = Shape.of(Dim.symbol("N"));
        GraphBuilder graph = new GraphBuilder("adamw", true);
        Operators o = new Operators(graph);
        Value g = graph.input(DeviceValues.VALUES, ElementType.FLOAT, flat);
        Value w = graph.input(WEIGHT, ElementType.FLOAT, flat);
        Value m = graph.input(FIRST, ElementType.FLOAT, flat);
        Value v = graph.input(SECOND, ElementType.FLOAT, flat);
        Value stepSize = graph.input(STEP_SIZE, ElementType.FLOAT, Shape.of(Dim.ONE));
        Value rootCorrection = graph.input(ROOT_CORRECTION, ElementType.FLOAT, Shape.of(Dim.ONE));
        Value keep = graph.input(KEEP, ElementType.FLOAT, Shape.of(Dim.ONE));
        Value moment = o.add(o.mul(m, (float) config.beta1), o.mul(g, (float) (1 - config.beta1)));
        Value square = o.add(o.mul(v, (float) config.beta2), o.mul(o.mul(g, (float) (1 - config.beta2)), g));
        Value root = o.add(o.mul(o.sqrt(square), rootCorrection), graph.scalar((float) config.epsilon));
        Value next = o.sub(o.mul(w, keep), o.div(o.mul(moment, stepSize), root));
        graph.output(DeviceValues.next(FIRST), moment);
        graph.output(DeviceValues.next(SECOND), square);
        graph.output(DeviceValues.next(WEIGHT), next);
        if (rounds) {
            graph.output(DeviceValues.next(ROUNDED), o.cast(o.cast(next, ElementType.BFLOAT16), ElementType.FLOAT));
        }
        return graph.whole();
    }

    private float stepSize(double learningRate) {
        return (float) (learningRate / (1 - Math.pow(config.beta1, steps)));
    }

    private float rootCorrection() {
        return (float) (1 / Math.sqrt(1 - Math.pow(config.beta2, steps)));
    }

    private float keep(TensorSpec spec, double learningRate) {
        return (float) (1 - (spec.dims().size() > 1 ? learningRate * config.weightDecay : 0));
    }

    /** The values to update: the trained values themselves, or their masters. */
    private TensorSet stepped(Parameters trained) {
        if (trained.dtype() == Dtype.F32) {
            return trained.tensors();
        }
        if (masters == null) {
            if (steps > 0) {
                throw new IllegalStateException("after " + steps + " steps the optimiser's state has no masters of the "
                        + trained.dtype() + " weights; it is another run's, or of other weights");
            }
            masters = trained.tensors().copy();
        }
        return masters;
    }

    private void round(FloatBuffer master, FloatBuffer weight) {
        for (int from = 0; from < master.limit(); from += CHUNK) {
            int count = Math.min(CHUNK, master.limit() - from);
            master.get(from, w, 0, count);
            for (int i = 0; i < count; i++) {
                w[i] = Bfloat16.value(Bfloat16.of(w[i]));
            }
            weight.put(from, w, 0, count);
        }
    }

    private void update(
            FloatBuffer weight,
            FloatBuffer moment,
            FloatBuffer square,
            FloatBuffer gradient,
            float stepSize,
            float rootCorrection,
            float keep) {
        int pieces = (gradient.limit() + PIECE - 1) / PIECE;
        IntStream range = IntStream.range(0, pieces);
        (pieces > 1 ? range.parallel() : range).forEach(piece -> {
            Scratch of = SCRATCH.get();
            int end = Math.min(gradient.limit(), (piece + 1) * PIECE);
            for (int from = piece * PIECE; from < end; from += CHUNK) {
                int count = Math.min(CHUNK, end - from);
                weight.get(from, of.w, 0, count);
                moment.get(from, of.m, 0, count);
                square.get(from, of.v, 0, count);
                gradient.get(from, of.g, 0, count);
                moments(of, count);
                weights(of, count, stepSize, rootCorrection, keep);
                weight.put(from, of.w, 0, count);
                moment.put(from, of.m, 0, count);
                square.put(from, of.v, 0, count);
            }
        });
    }

    // Two plain loops over local arrays: the compiler turns each of them into vector instructions.

    private void moments(Scratch of, int count) {
        float[] g = of.g;
        float[] m = of.m;
        float[] v = of.v;
        float b1 = (float) config.beta1;
        float b2 = (float) config.beta2;
        float new1 = (float) (1 - config.beta1);
        float new2 = (float) (1 - config.beta2);
        for (int i = 0; i < count; i++) {
            m[i] = b1 * m[i] + new1 * g[i];
            v[i] = b2 * v[i] + new2 * g[i] * g[i];
        }
    }

    private void weights(Scratch of, int count, float stepSize, float rootCorrection, float keep) {
        float[] w = of.w;
        float[] m = of.m;
        float[] v = of.v;
        float epsilon = (float) config.epsilon;
        for (int i = 0; i < count; i++) {
            w[i] = keep * w[i] - stepSize * m[i] / ((float) Math.sqrt(v[i]) * rootCorrection + epsilon);
        }
    }

    private static void refuseNonFinite(Gradients gradients) {
        if (gradients.tensors().newer().map(DeviceValues::isFinite).orElse(false)) {
            return;
        }
        for (TensorSpec spec : gradients.specs()) {
            FloatBuffer gradient = gradients.tensors().values(spec.name());
            IntStream.range(0, (gradient.limit() + PIECE - 1) / PIECE)
                    .parallel()
                    .map(piece -> firstNonFinite(gradient, piece))
                    .filter(at -> at >= 0)
                    .min()
                    .ifPresent(at -> {
                        throw new IllegalArgumentException("the gradient of " + spec.name() + " must be finite: "
                                + gradient.get(at) + " at element " + at);
                    });
        }
    }

    private static int firstNonFinite(FloatBuffer gradient, int piece) {
        float[] g = SCRATCH.get().g;
        int end = Math.min(gradient.limit(), (piece + 1) * PIECE);
        for (int from = piece * PIECE; from < end; from += CHUNK) {
            int count = Math.min(CHUNK, end - from);
            gradient.get(from, g, 0, count);
            for (int i = 0; i < count; i++) {
                if (!Float.isFinite(g[i])) {
                    return from + i;
                }
            }
        }
        return -1;
    }
}
