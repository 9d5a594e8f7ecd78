package dev.millrace.policy.session;

import dev.millrace.policy.onnx.proto.ModelProto;
import dev.millrace.policy.ort.Session;
import dev.millrace.policy.ort.Tensor;
import dev.millrace.policy.weights.Weights;
import java.util.Map;

/**
 * A compiled graph and its way to read weights. Run by one thread, or by two that together use at most two versions'
 * weights, while another may {@link #prepare} weights.
 */
interface WeightedGraph extends AutoCloseable {
    void prepare(Weights weights);

    /** Discards prepared forms: weights may have been written meanwhile. For the thread that runs it. */
    void forget();

    /** Returns a handle for calls with these weights; close it before a call with others. */
    Weighted with(Weights weights);

    @Override
    void close();

    /** A graph with weights. */
    record Weighted(Session session, Engine.Bound bound) implements AutoCloseable {
        Map<String, Tensor> tensors() {
            return bound.tensors();
        }

        @Override
        public void close() {
            bound.close();
        }
    }

    /** Weights are inputs: one session for all, which reads them in place or from the device. */
    final class Fed implements WeightedGraph {
        private final PreparedWeights prepared;
        private final Engine engine;
        private final Session session;

        Fed(Engine engine, PreparedWeights prepared, ModelProto model, boolean plansMemory) {
            this.prepared = prepared;
            this.engine = engine;
            this.session = plansMemory ? engine.compile(model) : engine.compileForAnySize(model);
        }

        @Override
        public void prepare(Weights weights) {
            prepared.on(engine, weights).close();
        }

        @Override
        public void forget() {
            // nothing was made
        }

        @Override
        public Weighted with(Weights weights) {
            return new Weighted(session, prepared.on(engine, weights));
        }

        @Override
        public void close() {
            session.close();
        }
    }
}
