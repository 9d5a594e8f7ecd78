package dev.millrace.policy.session;

import dev.millrace.policy.onnx.proto.ModelProto;
import dev.millrace.policy.ort.Session;
import dev.millrace.policy.weights.Weights;

/**
 * A compiled graph and its way to read weights. Run by one thread, or by two that together use at most two versions'
 * weights, while another may {@link #prepare} weights.
 */
interface WeightedGraph extends AutoCloseable {
    /** Makes what a call with these weights needs, if there is anything to make. */
    void prepare(Weights weights);

    /** Forgets what was made: weights may have been written meanwhile. For the thread that runs it. */
    void forget();

    /** What runs a call with these weights, until the next call of this. */
    Session session(Weights weights);

    /** Adds what a call has to be fed of the weights. */
    Feeds feed(Feeds feeds, Weights weights);

    @Override
    void close();

    /** Weights are inputs: one session for all of them, which is fed all of them in every call, in place. */
    final class Fed implements WeightedGraph {
        private final PreparedWeights prepared;
        private final Session session;

        Fed(Engine engine, PreparedWeights prepared, ModelProto model, boolean plansMemory) {
            this.prepared = prepared;
            this.session = plansMemory ? engine.compile(model) : engine.compileForAnySize(model);
        }

        @Override
        public void prepare(Weights weights) {
            // fed as they are
        }

        @Override
        public void forget() {
            // nothing was made
        }

        @Override
        public Session session(Weights weights) {
            return session;
        }

        @Override
        public Feeds feed(Feeds feeds, Weights weights) {
            return prepared.feed(feeds, weights);
        }

        @Override
        public void close() {
            session.close();
        }
    }
}
