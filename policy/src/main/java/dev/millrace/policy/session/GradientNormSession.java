package dev.millrace.policy.session;

import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.decoder.SequenceGraph;
import dev.millrace.policy.decoder.SequenceGraph.Vocabulary;
import dev.millrace.policy.ort.Session;
import dev.millrace.policy.weights.Weights;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/**
 * The norm of each sequence's own gradient, {@code |d(Σ_t c_t log π(y_t)) / dW|} over all weights W, for many sequences at once.
 *
 * <p>Costs about as much as the batch's gradient, but never holds a gradient: memory in addition to the activations of
 * a micro-batch is at most as large as these. The padded length decides how a weight's norm is computed, so the first
 * micro-batch of a new kind compiles a graph. There are at most as many kinds as a decoder has sizes of matrices.
 *
 * <p>The caller's thread runs micro-batches in a fixed order: the same call gives the same bits. Safe for several
 * threads at once; the weights are read in place and must not change during a call.
 */
public final class GradientNormSession implements AutoCloseable {
    private final SequenceRunner runner;
    private final Set<String> outputs;

    /** @param tokenBudget padded tokens per micro-batch: bounds memory */
    public GradientNormSession(Engine engine, DecoderShape shape, int tokenBudget) {
        this(engine, shape, MicrobatchLimit.ofTokens(tokenBudget));
    }

    /** @param limit of a micro-batch, by {@link #bytes} */
    public GradientNormSession(Engine engine, DecoderShape shape, MicrobatchLimit limit) {
        this.runner = new SequenceRunner(
                engine,
                shape,
                limit.rows((sequences, length) -> bytes(shape, sequences, length)),
                new NormGraphs(engine, shape));
        this.outputs = ScoringSession.outputs(shape, SequenceGraph.SQUARED_NORMS);
    }

    /**
     * Estimates the bytes that this number of sequences with all tokens scored takes in addition to the weights, like
     * {@link PassMemory}. All their logits, and all values as wide, exist at once.
     *
     * @param length tokens of each; padded as a pass pads them
     */
    public static long bytes(DecoderShape shape, int sequences, int length) {
        int padded = MicroBatch.paddedLength(length);
        return SequenceGraph.gradientNorms(shape, Vocabulary.WHOLE, SequenceGraph.cheaperByGram(shape, padded, padded))
                .peakBytes(Map.of("B", (long) sequences, "L", (long) padded, "P", (long) padded), name -> false);
    }

    /** A graph for each choice between whole gradients and Gram matrices that a length has called for. */
    private static final class NormGraphs implements SequenceRunner.Graphs {
        private final Engine engine;
        private final DecoderShape shape;
        private final Map<Kind, Session> compiled = new ConcurrentHashMap<>();

        private record Kind(Vocabulary vocabulary, Set<String> byGram) {}

        NormGraphs(Engine engine, DecoderShape shape) {
            this.engine = engine;
            this.shape = shape;
        }

        @Override
        public Session of(MicroBatch micro) {
            return compiled.computeIfAbsent(
                    new Kind(micro.vocabulary(), SequenceGraph.cheaperByGram(shape, micro.length(), micro.aligned())),
                    kind -> engine.compileForAnySize(
                            SequenceGraph.gradientNorms(shape, kind.vocabulary(), kind.byGram())
                                    .model()));
        }

        @Override
        public MicroBatch laidOut(MicroBatch planned) {
            return planned.alignedRows();
        }

        @Override
        public void close() {
            for (Session session : compiled.values()) {
                session.close();
            }
        }
    }

    /**
     * One norm per sequence; 0 for one without a scored token.
     *
     * @param temperatures one per sequence, above 0; log-probs are those after temperature
     * @param coefficients c, one per packed token
     * @throws java.util.concurrent.CancellationException if the thread is interrupted, checked between micro-batches; the
     *     flag stays set
     * @throws NonFiniteScoreException naming sequence and token
     */
    public double[] norms(Weights weights, SequenceBatch batch, float[] temperatures, float[] coefficients) {
        GradientSession.requireFinite(batch, coefficients, "coefficients");
        double[] norms = new double[batch.sequenceCount()];
        runner.run(
                weights,
                batch,
                temperatures,
                (micro, feeds) ->
                        feeds.floats(SequenceGraph.LOG_PROB_COEFFICIENTS, micro.pick(coefficients), micro.rowCount()),
                outputs,
                (micro, result) -> put(micro, result.floats(SequenceGraph.SQUARED_NORMS), norms));
        return norms;
    }

    private static void put(MicroBatch micro, float[] summands, double[] norms) {
        int each = summands.length / micro.sequences().length;
        for (int row = 0; row < micro.sequences().length; row++) {
            double square = 0;
            for (int i = row * each; i < (row + 1) * each; i++) {
                square += summands[i];
            }
            norms[micro.sequences()[row]] =
                    Math.sqrt(Math.max(0, square)); // a sum that cancels may be slightly negative by rounding
        }
    }

    @Override
    public void close() {
        runner.close();
    }
}
